/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel as a short chain of oneDNN primitives with changes of layout between them: made once in
 * prepare, run in every step without allocating. Operands are numbered: the kernel's inputs, then
 * its outputs, then temporaries, which lie in the kernel's scratch together with what the
 * primitives need for themselves. The first failure sticks; chain_finish reports it.
 *
 * A chain may be run by several threads at once.
 */
#ifndef TF_OPS_DEVICE_CHAIN_CPU_H
#define TF_OPS_DEVICE_CHAIN_CPU_H

#include "ops/device/cpu.h"

#define CHAIN_ARGS 8
#define CHAIN_OPERANDS 32

struct chain;

struct chain_arg {
    int arg; /* DNNL_ARG_... */
    int operand;
};

struct chain *chain_new(struct kernel_setup *setup);
int chain_output(const struct chain *chain,
                 int output); /* operand number; that of an input is its own */
int chain_temporary(struct chain *chain, size_t bytes);

/* Adds the primitive; takes `desc`, which may be NULL after a failure. */
void chain_add(struct chain *chain, dnnl_primitive_desc_t desc, const struct chain_arg *args,
               int n_args);
void chain_reorder(struct chain *chain, int from, const dnnl_memory_desc_t *from_desc, int to,
                   const dnnl_memory_desc_t *to_desc);

/* The operand as the primitive wants it: itself, or a temporary that a reorder fills. */
int chain_wanted(struct chain *chain, int operand, const dnnl_memory_desc_t *has,
                 const dnnl_memory_desc_t *wants);
/* The reverse for a result: where the primitive is to write; chain_deliver then reorders. */
int chain_result(struct chain *chain, int operand, const dnnl_memory_desc_t *has,
                 const dnnl_memory_desc_t *wants);
void chain_deliver(struct chain *chain, int made, const dnnl_memory_desc_t *has, int operand,
                   const dnnl_memory_desc_t *wants);

/* A primitive's description from an operation's; NULL without an error when oneDNN has none.
 * `forward`: a hint, or NULL. Attributes: scratchpad by the user. */
dnnl_primitive_desc_t chain_try(struct chain *chain, const void *op_desc,
                                const_dnnl_primitive_desc_t forward);
void chain_check(struct chain *chain, dnnl_status_t status, const char *what);

/* Sets state and scratch_bytes, or frees the chain and returns the error. */
int chain_finish(struct chain *chain, struct kernel_setup *setup);
void chain_free(void *chain);

/* Data of inputs and outputs in order. Returns 0 or an error code. */
int chain_run(struct chain *chain, void *const *data, void *scratch, struct error *err);

/* The whole run of a kernel that is nothing else than its chain: one output, shaped like the plan
 * says. */
int chain_run_call(struct chain *chain, struct kernel_call *call, const struct shape *shape);

/* ---- inputs that arrive in another layout than a kernel wants ---- */

struct arrivals {
    struct chain *chain; /* NULL: all are as wanted */
    int n;
    int moved[CHAIN_OPERANDS]; /* operand number of the copy in scratch, or -1 */
};

/* `wanted`: per input, NULL for row-major. Sets setup->scratch_bytes to what the copies need; what
 * a kernel itself needs lies behind them. */
int arrivals_prepare(struct arrivals *arrivals, struct kernel_setup *setup,
                     const struct layout *const *wanted);
/* Moves what is to be moved; data[i] is then input i as wanted. */
int arrivals_run(const struct arrivals *arrivals, struct kernel_call *call, const void **data);
/* Frees a state that begins with its arrivals and holds nothing else: a kernel's `release`. */
void arrivals_release(void *state);

#endif
