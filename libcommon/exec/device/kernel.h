/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: how an op is computed on a device.
 *
 * There are three stages. *Which kernels exist* is data (struct kernel_row) that every tool links,
 * so that tf-place knows the GPU's kernels without CUDA. *Preparing* happens once per plan: shapes
 * are known as far as they can be, constants are visible, algorithms and layouts are chosen, and
 * scratch is requested. *Running* happens in every step: it parses and looks up nothing, and
 * allocates nothing from the system.
 *
 * Nothing here assumes that tensors are in host memory or that the work is over when run returns: a
 * kernel returns DONE, ENQUEUED (ordered on its device's stream) or PENDING (it calls kernel_done
 * once, later, from any thread). Arguments that its row puts into host memory are the exception: a
 * kernel that returns ENQUEUED has read its host inputs and filled its host outputs.
 *
 * Threads: prepare is called by one thread at a time per plan. run may be called by several threads
 * at once for the same prepared kernel (steps may overlap): its state is read-only in run; each
 * call has its own scratch for everything that changes.
 */
#ifndef TF_EXEC_KERNEL_H
#define TF_EXEC_KERNEL_H

#include "graph/graph.h"

struct device;
struct kernel_code;
struct fault;
struct step;
struct step_block;
struct variable;
struct variable_store;

enum kernel_flag {
    KERNEL_CHEAP = 1 << 0,       /* costs less than handing it to another thread */
    KERNEL_ASYNC = 1 << 1,       /* may return PENDING */
    KERNEL_LAYOUT = 1 << 2,      /* understands its device's layouts; others get row-major inputs */
    KERNEL_ELEMENTWISE = 1 << 3, /* of one or two inputs; FusedElementwise has loops for it */
    /* Its work must not be captured (struct device): it uses temporary memory of the device, or
     * depends on host data of the step. */
    KERNEL_UNCAPTURED = 1 << 4,
    /* A bias or an activation, of input 0. Ops named by `with_epilogue` contain its loop. */
    KERNEL_EPILOGUE = 1 << 5,
    /* An update: joining several is worth keeping their gradients until all are there. */
    KERNEL_JOINED = 1 << 7,
    KERNEL_EMPTY = 1 << 6, /* does nothing: items that wait for it go on without a call */
};

/* The declaration of a kernel. `types` restricts type attributes: "T=floating|int64 Tidx=int32", by
 * types and classes of types as in declarations (graph/op.h); NULL: any. host_inputs, host_outputs:
 * names of the declaration's arguments, "begin size", that are in host memory even if the device
 * has memory of its own (shapes, axes, predicates); "*": all; NULL: none. */
struct kernel_row {
    const char *op;
    const char *device; /* "CPU", "CUDA" */
    const char *code;   /* name of the struct kernel_code in the device's module */
    const char *types;
    unsigned flags;
    const char *host_inputs, *host_outputs;
    /* The op that is this one followed by biases and activations, on this device. It has this op's
     * inputs and attributes first, then `args`, a bias each, and `epilogue`, the ops. NULL:
     * none. */
    const char *with_epilogue;
    /* The op that is the sum of N such matrix products and of M <= 1 tensors, on this device. Its
     * inputs are the tensor, the left operands and the right ones; it has this op's attributes. */
    const char *with_sum;
    /* The op that makes several such updates at once on this device, or one by a narrower gradient
     * (FusedApply). NULL: none. */
    const char *with_others;
    /* The op that is this update by a gradient that is a matrix product. It has the update's
     * references, scalars, the operands, and all attributes. NULL: none. */
    const char *with_product;
    const struct kernel_code *own; /* the code itself, if it is in no module; else NULL */
};

struct kernel_table {
    const struct kernel_row *rows;
    size_t n;
};

/* The row for a node on a device type: the first that fits; NULL: there is none. */
const struct kernel_row *kernel_find(const struct kernel_table *table, const struct node *node,
                                     const char *device);

/* The types of an op's type attribute that some row of the device type accepts; a row that names
 * none takes all declared ones. */
dtype_set kernel_types(const struct kernel_table *table, const struct op *op,
                       const struct op_attr *attr, const char *device);

/* Returns whether any row has the op on that device type, for any types. */
bool kernel_exists(const struct kernel_table *table, const char *op, const char *device);

/* Returns whether input or output i of the node is in host memory whatever the device's memory is:
 * if the row's `names` say so, and for strings and resources. References never are: a variable is
 * on its device. An op that depends on shapes only (OP_SHAPE_ONLY) gets its inputs where they
 * are. */
bool kernel_on_host(const char *names, const struct node *node, const struct op_arg *args, int i);

enum kernel_result {
    KERNEL_DONE = 0,
    KERNEL_ENQUEUED = -1,
    KERNEL_PENDING = -2,
    /* > 0: an enum error_code, explained by call->err */
};

/* How an output's memory relates to the inputs'; set by prepare. */
enum kernel_forward {
    FORWARD_NONE,  /* memory of its own */
    FORWARD_REUSE, /* one output may overwrite input `from` if nothing else, no input, needs it */
    FORWARD_ALIAS, /* is input `from`, perhaps seen with another shape; run copies nothing */
    FORWARD_SHARE, /* is reference-counted memory of another owner (kernel_share_output) */
};

struct kernel_output {
    enum kernel_forward forward;
    int from;
    const struct layout *layout; /* set by run for this output; NULL: row-major */
};

/* The inputs and results of prepare. Valid only during the call. */
struct kernel_setup {
    const struct node *node;      /* NULL, as `row`, for a device's relayout kernel */
    const struct kernel_row *row; /* through which the kernel was found */
    int form;                     /* the code's */
    struct device *device;
    struct variable_store *variables; /* and other resources (exec/state/resource.h); NULL: none */
    int n_in, n_out;
    const struct node_output *in_types; /* types and shapes, as far as known */
    const struct node_output *out_types;
    const struct tensor *const *in_values; /* constant inputs (host), else NULL */
    const struct layout *const
        *in_layouts;    /* as inputs arrive, with KERNEL_LAYOUT; NULL: row-major */
    bool shapes_known;  /* of every input and output */
    int threads;        /* size of the team that run may use */
    bool layouts;       /* outputs may have one */
    bool deterministic; /* bits must not depend on `threads` */
    bool exact;         /* as in struct device_options */

    void *state;          /* passed to run and release; released if prepare fails, too */
    size_t scratch_bytes; /* the device's memory, aligned to MEM_ALIGNMENT, given to each run */
    struct kernel_output *out; /* n_out, zeroed */
    const char *name;          /* shown by --dump-plan; default: the row's code */
    struct error *err;
};

struct kernel_call;

/* Replaces the executor as the maker of a call's outputs: as kernel_alloc_output and
 * kernel_alias_output. */
struct kernel_outputs {
    struct tensor *(*alloc)(struct kernel_call *call, int i, const struct shape *shape);
    struct tensor *(*alias)(struct kernel_call *call, int i, int from, const struct shape *shape);
};

/* How an executor learns that a pending call is over. */
struct executor {
    void (*done)(struct executor *executor, int result);
};

/* The arguments of run. */
struct kernel_call {
    const struct node *node;
    void *state;
    void *scratch;
    size_t scratch_bytes; /* at least what prepare requested */
    int form;             /* the code's */
    int n_in, n_out;
    bool shapes_known; /* all inputs have the shapes for which the plan knew those of all outputs,
                        * and which the op's shape function has passed */
    struct tensor *const
        *in; /* row-major unless KERNEL_LAYOUT; a ref input: the variable's value */
    struct tensor *const *out; /* made by kernel_alloc_output or kernel_alias_output */
    struct variable *const
        *refs; /* per input: the variable of a ref input, else NULL; NULL: none */
    struct device *device;
    struct step *step;
    /* The step in the device's memory (exec/device/step_block.h), for enqueued work; NULL on a
     * device whose memory is the host's. */
    struct step_block *step_block;
    uint64_t iteration; /* 0 outside loops; else a hash of all enclosing iterations */
    int threads;
    uint32_t item;                        /* names the call in a fault of the step block */
    struct error *err;                    /* without the node's name, which the executor adds */
    struct executor *executor;            /* the executor's data of the call begin with it */
    const struct kernel_outputs *outputs; /* NULL: the executor makes them */
};

struct kernel_code {
    int (*prepare)(struct kernel_setup *setup); /* NULL: nothing to prepare */
    int (*run)(struct kernel_call *call);       /* enum kernel_result or an error code */
    void (*release)(void *state);               /* NULL: mem_free of state */
    int form; /* identifies kernels that share these: setup->form and call->form */
};

/* The prepare of a kernel whose output 0 is input 0. */
static inline int kernel_prepare_alias(struct kernel_setup *setup)
{
    setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

/* In a prepare, lets output 0 overwrite input `from`, if the output is known to have the input's
 * shape and size, and no earlier input was offered. */
static inline void kernel_offer_reuse(struct kernel_setup *setup, int from)
{
    const struct node_output *in = &setup->in_types[from], *out = &setup->out_types[0];
    if (setup->out[0].forward != FORWARD_NONE || !shape_is_known(&out->shape) ||
        !shape_equal(&in->shape, &out->shape) || dtype_bytes(in->type) != dtype_bytes(out->type))
        return;
    setup->out[0].forward = FORWARD_REUSE;
    setup->out[0].from = from;
}

/* Output `i` with the given shape: planned memory if the plan has some (the shape must be the
 * planned one), else memory of the step. Outputs that a kernel does not make are dead (Switch).
 * Returns NULL with call->err set. Types come from the node. */
struct tensor *kernel_alloc_output(struct kernel_call *call, int i, const struct shape *shape);

/* As kernel_alloc_output, but also NULL if the output has no elements. The kernel then returns
 * call->err->code in either case: without an error that is KERNEL_DONE. */
static inline struct tensor *kernel_alloc_nonempty(struct kernel_call *call, int i,
                                                   const struct shape *shape)
{
    struct tensor *out = kernel_alloc_output(call, i, shape);
    return out && tensor_count(out) ? out : NULL;
}

/* Makes output i the same memory as input `from`, seen with `shape` of equal count (NULL: the
 * input's). Never copies. An output of a ref type stands for the variable of input `from`. */
struct tensor *kernel_alias_output(struct kernel_call *call, int i, int from,
                                   const struct shape *shape);

/* Makes output i the reference-counted memory of `value`, which has the output's type and is in its
 * memory (the host's or the device's); an output with a place in the plan gets a copy, as of memory
 * that is not counted. NULL with call->err set. */
struct tensor *kernel_share_output(struct kernel_call *call, int i, const struct tensor *value);

/* Keeps the input in its memory beyond the call; the caller releases it. Counted memory is shared,
 * also a variable's (exec/state/variable.h); other memory (a feed, a constant, a plan's) may change
 * after the call, and is copied. */
int kernel_keep_input(struct kernel_call *call, int i, struct tensor *kept);

/* As kernel_keep_input, but the call drops the input, which stays valid while it is kept: a sole
 * holder may then write to it. */
int kernel_take_input(struct kernel_call *call, int i, struct tensor *taken);

/* Shares an input that the op was not declared to keep, if its memory is counted and no other
 * process reads it; the caller releases it. A sole holder may later write in place. False: it must
 * be copied. */
bool kernel_share_input(struct kernel_call *call, int i, struct tensor *shared);

/* Host memory for the duration of the call, if its size is unknown in prepare. NULL with call->err
 * set. Not for enqueued work. */
void *kernel_temporary(struct kernel_call *call, size_t bytes);

/* Device memory for all work that the call enqueues. */
void *kernel_device_temporary(struct kernel_call *call, size_t bytes);

/* Sets the text (the executor puts node and op in front) and returns ERR_DATA. */
#define kernel_fail(call, ...) error_set((call)->err, ERR_DATA, __VA_ARGS__)
#define kernel_setup_fail(setup, ...) error_set((setup)->err, ERR_DATA, __VA_ARGS__)

/* For kernels on the host: sets the message of a data error, the same as for a device that finds
 * it, and returns ERR_DATA. The fault's item is set here. */
int kernel_fault(struct kernel_call *call, const struct fault *fault);

/* Finishes a PENDING call: 0 or an error code (call->err set). Any thread, exactly once. */
void kernel_done(struct kernel_call *call, int result);

#endif
