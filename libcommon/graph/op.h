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

struct infer;
struct grad;

enum op_flag {
    OP_STATEFUL = 1 << 0,      /* has state or an effect: never merged, folded or computed twice */
    OP_COMMUTATIVE = 1 << 1,   /* inputs may be sorted when comparing nodes */
    OP_CONTROL_FLOW = 1 << 2,  /* Switch, Merge, Enter, Exit, NextIteration, LoopCond */
    OP_NO_GRADIENT = 1 << 3,   /* declared not differentiable: contributes nothing, silently */
    OP_UNINITIALIZED = 1 << 4, /* may take a variable that has no value yet */
    OP_SOURCE = 1 << 5,        /* Placeholder: a value must be fed */
    OP_READS_REF = 1 << 6,     /* its ref inputs are only looked at; other ops write theirs */
    OP_SHAPE_ONLY = 1 << 7,    /* depends on the shapes of its inputs, not on values */
    OP_ASYNC = 1 << 8, /* may wait for what no input brings: a value sent, a worker, a round */
    /* The shape of an output depends on elements of the inputs, on a file or on what arrives. What
     * an input is there to say (a shape, a size, axes) does not count: it is often a constant. */
    OP_SHAPED_BY_DATA = 1 << 9,
    OP_FED = 1 << 10, /* a place to be fed: a value from outside may stand for its output */
};

struct op_def {
    const char *name;
    const char *inputs, *outputs, *attrs; /* NULL: none */
    const char *doc;                      /* one line, a sentence */
    const char *detail;                   /* further lines for the reference, or NULL */
    unsigned flags;                       /* enum op_flag */
    int version;                          /* of the op's meaning; 0 is the first */
    uint32_t keeps; /* bit i: tensors of argument i are kept beyond the run (kernel_keep_input) */

    /* Sets the output shapes (infer.h); 0 or an error. NULL: nothing is known. */
    int (*shape)(struct infer *infer);

    /* Appends the nodes that compute the inputs' gradients (pass/gradient/grad.h). NULL without
     * OP_NO_GRADIENT: asking for a gradient through the op is an error. */
    int (*gradient)(struct grad *grad);
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

/* All ops, sorted by name. */
size_t registry_count(const struct registry *registry);
const struct op *registry_at(const struct registry *registry, size_t index);

/* The op that was most likely meant, or NULL. */
const char *registry_nearest(const struct registry *registry, const char *name);

#endif
