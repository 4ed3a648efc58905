/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op means: its inputs, outputs, attributes, the shapes of its results, its gradient. How
 * it is computed is in kernels (exec/device/kernel.h), which the declaration does not know.
 *
 * A declaration is a constant, written so:
 *
 *     const struct op_def op_MatMul = {
 *         .name = "MatMul",
 *         .inputs = "a: T, b: T",
 *         .outputs = "product: T",
 *         .attrs = "transpose_a: bool = false, transpose_b: bool = false, T: floating|int32|int64",
 *         .doc = "Product of two matrices, each transposed first if asked for.",
 *         .shape = matmul_shape,
 *         .cost = matmul_cost,
 *         .gradient = matmul_gradient,
 *     };
 *
 * Grammar. An argument is `name: TYPE`, where TYPE is a type ("int32"), a type attribute ("T"), a
 * list of N tensors of one type ("N*T"), a list of tensors whose types are a list(type) attribute
 * ("Tlist..."), and Ref(TYPE) for a variable. An attribute is `name: KIND`, then optionally
 * `= default`, then `>= minimum` (of an int, or of a list's length). KIND is int, float, bool,
 * string, type, shape, tensor, list(KIND), a set of strings {"SAME","VALID"}, or a set of types:
 * names and classes (floating, integer, real, numeric, any) joined by |; list(that) as well.
 * Type attributes and N are inferred from the inputs when a node is made.
 */
#ifndef TF_GRAPH_OP_H
#define TF_GRAPH_OP_H

#include "graph/attr.h"

struct graph;
struct infer;
struct node;
struct grad;
struct cost_query;
struct op_cost;

enum op_flag {
    OP_STATEFUL = 1 << 0,      /* has state or an effect: never merged, folded or computed twice */
    OP_COMMUTATIVE = 1 << 1,   /* inputs may be sorted when comparing nodes */
    OP_CONTROL_FLOW = 1 << 2,  /* Switch, Merge, Enter, Exit, NextIteration, LoopCond */
    OP_NO_GRADIENT = 1 << 3,   /* declared not differentiable: contributes nothing, silently */
    OP_UNINITIALIZED = 1 << 4, /* may take a variable that has no value yet */
    OP_SOURCE = 1 << 5,        /* Placeholder: a value must be fed */
    OP_READS_REF = 1 << 6,     /* its ref inputs are only looked at; other ops write theirs */
    OP_SHAPE_ONLY = 1 << 7,    /* depends on the shapes of its inputs, not on values */
    /* May wait for what no input brings: a value sent, a worker, a round, a copy to the host. */
    OP_ASYNC = 1 << 8,
    /* The shape of an output depends on elements of the inputs, on a file or on what arrives. An
     * input that gives a shape, a size or axes does not count: it is often a constant. */
    OP_SHAPED_BY_DATA = 1 << 9,
    OP_FED = 1 << 10,      /* a place to be fed: a value from outside may stand for its output */
    OP_VIEW = 1 << 11,     /* output 0 has the elements of input 0, in their order */
    OP_PASSES = 1 << 12,   /* a view in the same shape */
    OP_PERMUTES = 1 << 13, /* input 1 says in which order the dimensions of input 0 come */
    OP_CHECKS = 1 << 14,   /* hands input 0 on, or fails */
    OP_RANDOM = 1 << 15, /* draws by seed, seed2 and step; no state, though every node is its own */
    OP_OVERWRITES = 1 << 16, /* the variable of input 0 becomes input 1; what it was is not read */
    OP_INVOLUTION = 1 << 17, /* f(f(x)) is x, bit for bit */
    OP_IDEMPOTENT = 1 << 18, /* f(f(x, a), b) is f(x, b), bit for bit; a and b only say how */
    OP_SUMS = 1 << 19,       /* output 0 is the sum of all inputs */
};

/* How an op treats rows, the parts of a tensor along dimension 0. A pass that cuts tensors by rows
 * can then compute each part alone. */
enum op_rows {
    ROWS_ANY,    /* nothing is known */
    ROWS_ALIKE,  /* element by element, with broadcasting: also row by row */
    ROWS_LOOKUP, /* row i of the output is row input1[i] of input 0 */
    ROWS_SUM,    /* row i of the output sums the rows k of input 0 of which input1[k] is i; input 2
                    says how many rows there are */
    ROWS_DISTINCT, /* output 0: the different rows of input 0; output 1: where each came to be */
    ROWS_MADE,     /* input 0 is a shape; an element depends on nothing else but its number, which
                      attribute `offset`, if there is one, is added to */
    ROWS_UPDATE,   /* changes variables element by element; scalars count for all elements */
    ROWS_SCATTER,  /* changes rows input1[i] of the variable of input 0 by rows i of input 2 */
    ROWS_ASK,      /* asks about a variable: yes if the answer is yes for each part */
};

/* When output 0 is an input, bit for bit. */
enum op_same {
    SAME_NEVER,
    SAME_ALWAYS,
    SAME_TYPE,     /* if it has input 0's type already */
    SAME_ALONE,    /* if there is one input */
    SAME_OPERAND,  /* if all elements of input 1 are `neutral`; of a commutative op, of either */
    SAME_ARGUMENT, /* if input 1 is empty, or all its elements are `neutral` */
    SAME_EMPTY,    /* if input 1 is empty */
};

struct op_identity {
    enum op_same when;
    double neutral;   /* of floats -0.0 is not 0.0 */
    dtype_set types;  /* of output 0; 0: all */
    const char *says; /* "adds nothing" */
};

/* How an op's float32 changes with computing in floats of 16 bits (pass/half). */
enum op_half {
    HALF_UNSAID,   /* as HALF_KEPT; no op of ours that takes both types says nothing */
    HALF_KEPT,     /* its types stay, and nothing follows of it for others */
    HALF_ALLOWED,  /* worth it wherever it stands: products */
    HALF_INFERRED, /* good enough between such */
    HALF_CLEAR,    /* hands values on, or compares them: takes the type of those around it */
    HALF_AROUND,   /* stays float32, but what is before and behind it need not */
    HALF_DENIED,   /* stays float32, and so does what is inferred from its result: sums, powers */
};

/* A worker's part in a round of several workers' updates. */
enum op_round {
    ROUND_NONE,
    ROUND_OTHER,  /* has to do with workers: one joins, leaves, a round ends */
    ROUND_REDUCE, /* reduces the values of all workers, which all of them get */
    ROUND_ROUTE,  /* brings what workers have to each other, within the step */
    ROUND_BEGIN,  /* waits for the members of a round */
    ROUND_PUSH,   /* stages values of a worker; its output is a token */
    ROUND_COMMIT, /* pushes a worker's step: inputs from 1 on are tokens of what was staged */
    ROUND_TAKE,   /* reduces what the members of a round staged */
};

/* For an op that steps the variable of input 0 down a gradient; its slots are the other references.
 * The gradient may be of some rows of these (graph/update_rows.h). */
struct op_descent {
    int gradient, rate; /* which inputs they are; 0: the op is no such */
    bool is_plain;      /* var -= rate * gradient */
};

/* The elements of input 0 that those of output 0 are made of, along an axis that both have:
 * elements [a, b) of [a * stride - before, (b - 1) * stride - before + size), as far as there are
 * such. The others are padding, `before` and `after` the input. */
struct op_window_axis {
    int axis;
    int64_t size, stride, before, after;
};

/* For a product of two matrices: the axis of each that is summed over. The others are the axes of
 * output 0, that of input 0 first. */
struct op_product {
    int summed[2];
};

/* How an op applies a value for each channel, the last axis of input 0, which with attribute
 * data_format "NCHW" is axis 1. */
enum op_channels {
    CHANNELS_NONE,
    CHANNELS_ADD, /* element by element, with the channel's element of input 1 */
    CHANNELS_SUM, /* the sum over all other axes of input 0 */
};

/* The two axes of an image. */
struct op_window {
    struct op_window_axis y, x;
};

/* How the parts of a tensor lie to the windows of an op, or of the op that it is a gradient of. */
enum op_lie {
    LIES_WHOLE,       /* any window may need all of it */
    LIES_IN,          /* as the images that windows look at */
    LIES_OUT,         /* an element for each window, along the same axes */
    LIES_FILTERS,     /* a filter for each window: axes 0 and 1 are their height and width */
    LIES_SIZES,       /* the shape of what lies as the images, as a vector */
    LIES_FILTER_SIZES /* the shape of the filters */
};

/* The result of some of the windows. An output that lies as the images is a sum: of what each
 * window gives the cells that it looks at. A whole one is a sum over all windows. */
struct op_tiles {
    bool is_known; /* false: nothing is */
    enum op_lie inputs[4], output;

    /* NULL: op_def.window. As there, of what lies as the images and of what lies as windows do. */
    bool (*window)(const struct graph *graph, const struct node *node, struct op_window *window);
};

/* How the elements of input 0 are reduced along the axes that input 1 lists (attribute keep_dims:
 * these stay, with length 1), or, of an op of one input, of all of them. */
enum op_reduction {
    REDUCTION_NONE, /* it is no reduction, or nothing is known */
    REDUCTION_ANY,
    REDUCTION_SUM, /* of something of each: of parts of the input it is the sum of those of parts */
    REDUCTION_MEAN,
};

/* Ops that compute the same as a pool and its gradient, and keep only the place of each window's
 * value, not the image: `with_place` for the pool, `gradient` for the gradient; `mask` is the op
 * whose masking by the image the places can hold. The kernels of both are looked for by name. */
struct op_places {
    const char *pool, *with_place, *gradient, *mask;
};

struct op_def {
    const char *name;
    const char *inputs, *outputs, *attrs; /* NULL: none */
    const char *doc;                      /* one line, a sentence */
    const char *detail;                   /* further lines for the reference, or NULL */
    unsigned flags;                       /* enum op_flag */
    int version;                          /* of the op's meaning; 0 is the first */
    uint32_t keeps; /* bit i: tensors of argument i are kept beyond the run (kernel_keep_input) */
    enum op_rows rows;
    enum op_round round;
    enum op_half half;
    enum op_channels channels;
    enum op_reduction reduction;
    struct op_identity identity;
    struct op_descent descent;
    const struct op_places *places; /* of a pool's gradient; NULL: it needs the image */
    const char *by_reciprocal; /* the op that does the same with 1 / input 1, if that is exact */

    /* Returns whether output 0 is a sum over the rows of inputs 0 and 1, a term for each two of
     * them: of several parts, one after the other, it is the sum of what it is of each. NULL: it
     * never is.
     */
    bool (*sums_rows)(const struct node *node);

    /* Describes the node as a product of two matrices. NULL: the op makes none. */
    void (*product)(const struct node *node, struct op_product *product);

    /* The window of input 0 that an element of output 0 depends on. A pass that cuts images along
     * their height or width can then compute each part from the input that it needs. False: nothing
     * is known, as the shapes that it follows from are not. NULL: any element may depend on any,
     * but see `rows`. */
    bool (*window)(const struct graph *graph, const struct node *node, struct op_window *window);
    struct op_tiles tiles;

    /* Sets the output shapes (infer.h); 0 or an error. NULL: nothing is known. */
    int (*shape)(struct infer *infer);

    /* Infers the value of output 0, int32 or int64, as a vector from the known values of the inputs
     * (infer_value_shape): elements are 0 or more, unknown ones SHAPE_UNKNOWN; those that output
     * 0's type cannot hold count as unknown. False: nothing is known. NULL: nothing ever is but its
     * length. */
    bool (*value)(const struct infer *infer, struct shape *value);

    /* Returns the cost of a run, from shapes (op_cost.h). */
    void (*cost)(const struct cost_query *query, struct op_cost *cost);

    /* Appends the nodes that compute the inputs' gradients (pass/gradient/grad.h). NULL without
     * OP_NO_GRADIENT: asking for a gradient through the op is an error. */
    void (*gradient)(struct grad *grad);
    const char *no_gradient; /* why it has none: "its result changes in steps" */
};

/* A declaration, parsed. */

struct op_arg {
    const char *name;
    enum dtype type;    /* when fixed, else DTYPE_INVALID */
    int type_attr;      /* index into attrs, or -1 */
    int number_attr;    /* index of N, or -1 */
    int type_list_attr; /* index of a list(type), or -1 */
    bool is_ref;
};

struct op_attr {
    const char *name;
    enum attr_kind kind;
    dtype_set types;            /* allowed, of a type or list(type) */
    const char *const *strings; /* allowed, NULL-terminated; NULL: any */
    bool has_minimum, has_default;
    bool inferred; /* from the inputs */
    int64_t minimum;
    struct attr_value default_value;
};

struct op {
    const struct op_def *def;
    const struct op_arg *inputs, *outputs;
    const struct op_attr *attrs;
    int n_inputs, n_outputs, n_attrs;
};

int op_find_attr(const struct op *op, const char *name); /* index, or -1 */

/* ---- registry: ops from one or more tables ---- */

struct registry;

struct registry *registry_new(void);
void registry_free(struct registry *registry);

/* Adds a table; the declarations must outlive the registry. A malformed declaration or a name taken
 * is ERR_INTERNAL naming the op. May be called more than once, before the registry is shared. */
int registry_add(struct registry *registry, const struct op_def *const *ops, size_t n,
                 struct error *err);

/* Thread-safe once filled. NULL when there is no such op. */
const struct op *registry_find(const struct registry *registry, const char *name);

/* The number of ops, and all of them sorted by name. */
size_t registry_count(const struct registry *registry);
const struct op *registry_at(const struct registry *registry, size_t index);

/* The op that was most likely meant, or NULL. */
const char *registry_nearest(const struct registry *registry, const char *name);

/* ERR_DATA: there is no such op; and which one may have been meant, or how users bring theirs. */
int registry_unknown(const struct registry *registry, const char *name, struct error *err);

#endif
