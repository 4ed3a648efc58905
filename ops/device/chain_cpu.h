/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel as a short chain of oneDNN primitives with reorders between them, made once in prepare,
 * and run in every step without allocating. Operands are numbered: the kernel's inputs, then its
 * outputs, then temporaries, which lie in the kernel's scratch together with what the primitives
 * need for themselves. The first failure sticks; chain_finish reports it.
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
                 int output); /* returns the operand number; an input keeps its own */
int chain_temporary(struct chain *chain, size_t bytes);

/* Adds the primitive; takes ownership of `desc`, which may be NULL after a failure. */
void chain_add(struct chain *chain, dnnl_primitive_desc_t desc, const struct chain_arg *args,
               int n_args);
void chain_reorder(struct chain *chain, int from, const dnnl_memory_desc_t *from_desc, int to,
                   const dnnl_memory_desc_t *to_desc);

/* Returns the operand in the layout that the primitive wants: itself, or a temporary filled by a
 * reorder. */
int chain_wanted(struct chain *chain, int operand, const dnnl_memory_desc_t *has,
                 const dnnl_memory_desc_t *wants);
/* The reverse for a result: returns where the primitive writes; chain_deliver then reorders. */
int chain_result(struct chain *chain, int operand, const dnnl_memory_desc_t *has,
                 const dnnl_memory_desc_t *wants);
void chain_deliver(struct chain *chain, int made, const dnnl_memory_desc_t *has, int operand,
                   const dnnl_memory_desc_t *wants);

/* Makes a primitive's description from an operation's; NULL without an error if oneDNN has none.
 * `forward`: a hint, or NULL. Attributes: scratchpad by the user. */
dnnl_primitive_desc_t chain_try(struct chain *chain, const void *op_desc,
                                const_dnnl_primitive_desc_t forward);
void chain_check(struct chain *chain, dnnl_status_t status, const char *what);

/* Sets state and scratch_bytes, or frees the chain and returns the error. */
int chain_finish(struct chain *chain, struct kernel_setup *setup);
void chain_free(void *chain);

/* The complete run of a kernel that is only its chain, with one output of the shape in the plan. */
int chain_run_call(struct chain *chain, struct kernel_call *call, const struct shape *shape);

/* ---- inputs that arrive in another layout than a kernel wants ---- */

struct arrivals {
    struct chain *chain; /* NULL: all have the wanted layouts */
    int n;
    int moved[CHAIN_OPERANDS]; /* operand number of the copy in scratch, or -1 */
};

/* `wanted`: per input, NULL for row-major. Sets setup->scratch_bytes to what the copies need; a
 * kernel's own scratch memory follows them. */
int arrivals_prepare(struct arrivals *arrivals, struct kernel_setup *setup,
                     const struct layout *const *wanted);
/* Reorders the inputs that need it; data[i] is then input i in the wanted layout. */
int arrivals_run(const struct arrivals *arrivals, struct kernel_call *call, const void **data);
/* A kernel's `release`, for a state that begins with its arrivals and owns nothing else. */
void arrivals_release(void *state);

#endif
