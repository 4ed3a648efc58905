/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op means: its inputs, outputs, attributes, the shapes of its results, its gradient. The
 * computation is in kernels (exec/device/kernel.h), which the declaration does not know.
 *
 * A declaration is a constant, written so:
 *
 *     const struct op_def op_MatMul = {
 *         .name = "MatMul",
 *         .inputs = "a: T, b: T",
 *         .outputs = "product: T",
 *         .attrs = "transpose_a: bool = false, transpose_b: bool = false, T: floating|int32|int64",
 *         .doc = "Product of two matrices, each transposed first if asked for.",
 *         .rule = "product[i,o] += a[i,k]~transpose_a b[k,o]~transpose_b",
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
struct index_rule;
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
    OP_READS_REF = 1 << 6,     /* its ref inputs are only read; other ops write theirs */
    OP_SHAPE_ONLY = 1 << 7,    /* depends on the shapes of its inputs, not on values */
    /* May wait for more than its inputs: a value sent, a worker, a round, a copy to the host. */
    OP_ASYNC = 1 << 8,
    /* An output's shape depends on elements of the inputs, on a file or on received data. Inputs
     * that give a shape, a size or axes do not count: they are often constant. */
    OP_SHAPED_BY_DATA = 1 << 9,
    OP_FED = 1 << 10,        /* may be fed: a value from outside may replace its output */
    OP_VIEW = 1 << 11,       /* output 0 has the elements of input 0, in their order */
    OP_PASSES = 1 << 12,     /* a view of the same shape */
    OP_PERMUTES = 1 << 13,   /* input 1 is the permutation of input 0's dimensions */
    OP_CHECKS = 1 << 14,     /* returns input 0, or fails */
    OP_RANDOM = 1 << 15,     /* draws by seed, seed2 and step; stateless, but never merged */
    OP_OVERWRITES = 1 << 16, /* input 0's variable becomes input 1; its old value is not read */
    OP_INVOLUTION = 1 << 17, /* f(f(x)) is x, bit for bit */
    OP_IDEMPOTENT = 1 << 18, /* f(f(x, a), b) is f(x, b), bit for bit; a and b are only options */
    OP_SUMS = 1 << 19,       /* output 0 is the sum of all inputs */
};

/* How an op treats rows, that is, slices along dimension 0, as follows of its rule. A pass that
 * partitions tensors by rows can then compute each part separately. */
enum op_rows {
    ROWS_ANY,      /* nothing is known */
    ROWS_ALIKE,    /* "each": element-wise with broadcasting, therefore also row by row */
    ROWS_LOOKUP,   /* "out[...] = in[<ids>,...] ids[...]" */
    ROWS_SUM,      /* "out[<ids>,...] += in[...] ids[...]"; input 2 is the number of rows */
    ROWS_DISTINCT, /* "out[k], place[i] = in[i]": the unique rows, and where each is among them */
    ROWS_MADE,     /* "out[...] = shape#": an element depends only on its index, to which attribute
                    * `offset`, if present, is added */
    ROWS_UPDATE,   /* "each", into a variable; scalars apply to all elements */
    ROWS_SCATTER,  /* "variable[<ids>,...] = ids[...] in[...]" */
    ROWS_ASK,      /* "answer[] all= variable[...]": true if it is true for each part */
};

/* The condition under which output 0 is an input, bit for bit. */
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
    double neutral;   /* for floats, -0.0 is not 0.0 */
    dtype_set types;  /* of output 0; 0: all */
    const char *says; /* for messages: "adds nothing" */
};

/* How mixed precision (pass/half) may change an op's float32 to 16-bit floats. */
enum op_half {
    HALF_UNSAID,   /* as HALF_KEPT; every built-in op that takes both types declares another */
    HALF_KEPT,     /* its types stay; this has no effect on others */
    HALF_ALLOWED,  /* always worth 16 bits: products */
    HALF_INFERRED, /* 16 bits are precise enough next to those */
    HALF_CLEAR,    /* passes values on, or compares them: takes the type of its neighbours */
    HALF_AROUND,   /* stays float32, without effect on its neighbours */
    HALF_DENIED,   /* stays float32, as do ops inferred from its result: sums, powers */
};

/* The role of an op in a round of several workers' updates. */
enum op_round {
    ROUND_NONE,
    ROUND_OTHER,  /* concerns workers otherwise: one joins, leaves, a round ends */
    ROUND_REDUCE, /* reduces the values of all workers; all of them get the result */
    ROUND_ROUTE,  /* exchanges the workers' values within the step */
    ROUND_BEGIN,  /* waits for the members of a round */
    ROUND_PUSH,   /* stages values of a worker; its output is a token */
    ROUND_COMMIT, /* pushes a worker's step: inputs 1 and up are tokens of staged values */
    ROUND_TAKE,   /* reduces what the members of a round have staged */
};

/* For an op that applies a gradient to the variable of input 0; its slots are the other references.
 * The gradient may cover only some of their rows (graph/update_rows.h). */
struct op_descent {
    int gradient, rate; /* their inputs; gradient 0: not such an op */
    bool is_plain;      /* var -= rate * gradient */
};

/* The elements of images that those of the windows' output are made of, along an axis that both
 * have: elements [a, b) of [a * stride - before, (b - 1) * stride - before + size), as far as there
 * are such. The others are padding, `before` and `after` the input. */
struct op_window_axis {
    int axis;
    int64_t size, stride, before, after;
};

/* The two axes of an image. */
struct op_window {
    struct op_window_axis y, x;
};

/* Ops that compute the same as a pool and its gradient, but keep only the position of each window's
 * value, not the image: `with_place` for the pool, `gradient` for the gradient. `mask` is the op
 * whose masking by the image the positions can replace. Kernels of both are looked up by name. */
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
    uint32_t keeps; /* bit i: tensors of argument i may be kept after the run (kernel_keep_input) */
    const char *rule; /* of its axes (index_rule.h); NULL: any element may depend on any other */
    enum op_round round;
    enum op_half half;
    struct op_identity identity;
    struct op_descent descent;
    const struct op_places *places; /* of a pool's gradient; NULL: none, it needs the image */
    const char *by_reciprocal; /* the op that does the same with 1 / input 1 where that is exact */

    /* The windows y^ and x^ of the rule, from the shape of what has these axes and that of what has
     * axes that are needed whole, as filters have. False: nothing is known, as these shapes are
     * not. */
    bool (*window)(const struct node *node, const struct shape *image, const struct shape *filters,
                   struct op_window *window);

    /* Sets the output shapes (infer.h); 0 or an error. NULL: nothing is known. */
    int (*shape)(struct infer *infer);

    /* Infers the value of output 0, int32 or int64, as a vector from the known values of the inputs
     * (infer_value_shape): elements are 0 or more, unknown ones SHAPE_UNKNOWN, as are those that
     * output 0's type cannot hold. Returns false if nothing is known. NULL: never more than its
     * length is known. */
    bool (*value)(const struct infer *infer, struct shape *value);

    /* Returns the cost of a run, from shapes (op_cost.h). NULL: an operation per element. */
    void (*cost)(const struct cost_query *query, struct op_cost *cost);

    /* Appends the nodes that compute the inputs' gradients (pass/gradient/grad.h). NULL without
     * OP_NO_GRADIENT: a gradient through the op is an error. */
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
    const struct index_rule *rule; /* NULL: none */
    enum op_rows rows;             /* which follow of the rule */
    const struct op_arg *inputs, *outputs;
    const struct op_attr *attrs;
    int n_inputs, n_outputs, n_attrs;
};

int op_find_attr(const struct op *op, const char *name); /* index, or -1 */
/* Sets ERR_DATA: the op declares no attribute of this name. */
int op_unknown_attr(const struct op *op, const char *name, struct error *err);

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

/* Returns the most similar name of an op, or NULL. */
const char *registry_nearest(const struct registry *registry, const char *name);

/* Sets ERR_DATA: no such op; says which may have been meant, or how users add their own. */
int registry_unknown(const struct registry *registry, const char *name, struct error *err);

#endif
