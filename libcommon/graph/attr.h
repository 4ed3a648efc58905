/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed attributes of nodes. Values are immutable once in a graph and live in the graph's arena.
 *
 * Text form, the same in dumps, options and declarations:
 *   int 3   float 0.5   bool true   string "SAME"   type float32   shape [2,?] (? alone: unknown)
 *   tensor: a literal as of tensor_print; lists: [a,b,...] of these
 */
#ifndef TF_GRAPH_ATTR_H
#define TF_GRAPH_ATTR_H

#include "base/arena.h"
#include "tensor/tensor.h"

enum attr_kind {
    ATTR_NONE,
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_BOOL,
    ATTR_STRING,
    ATTR_TYPE,
    ATTR_SHAPE,
    ATTR_TENSOR,
    ATTR_LIST_INT, /* a list kind is its element's kind + (ATTR_LIST_INT - ATTR_INT) */
    ATTR_LIST_FLOAT,
    ATTR_LIST_BOOL,
    ATTR_LIST_STRING,
    ATTR_LIST_TYPE,
    ATTR_LIST_SHAPE,
};

struct attr_value {
    enum attr_kind kind;
    int n; /* items of a list */
    union {
        int64_t i;
        double f;
        bool b;
        const char *s;
        enum dtype type;
        const struct shape *shape;
        const struct tensor *tensor; /* host, row-major */
        const int64_t *ints;
        const double *floats;
        const bool *bools;
        const char *const *strings;
        const enum dtype *types;
        const struct shape *shapes;
    };
};

struct attr {
    const char *name;
    struct attr_value value;
};

const char *attr_kind_name(enum attr_kind kind); /* "int", "list(int)" */
bool attr_kind_parse(const char *text, size_t n, enum attr_kind *kind);

/* Values that borrow what they point to. */
#define attr_int(value) ((struct attr_value){.kind = ATTR_INT, .i = (value)})
#define attr_float(value) ((struct attr_value){.kind = ATTR_FLOAT, .f = (value)})
#define attr_bool(value) ((struct attr_value){.kind = ATTR_BOOL, .b = (value)})
#define attr_string(value) ((struct attr_value){.kind = ATTR_STRING, .s = (value)})
#define attr_type(value) ((struct attr_value){.kind = ATTR_TYPE, .type = (value)})
#define attr_shape(value) ((struct attr_value){.kind = ATTR_SHAPE, .shape = (value)})
#define attr_tensor(value) ((struct attr_value){.kind = ATTR_TENSOR, .tensor = (value)})
#define attr_ints(values, count)                                                                   \
    ((struct attr_value){.kind = ATTR_LIST_INT, .n = (count), .ints = (values)})

/* Returns an item of a list, as a value of its own that borrows from it. */
struct attr_value attr_item(const struct attr_value *list, int i);
/* Adds an item of the list's kind; the list's memory grows in the arena. */
void attr_add(struct arena *arena, struct attr_value *list, const struct attr_value *item);

/* Deep copy into an arena; tensor data is copied. */
struct attr_value attr_copy(struct arena *arena, const struct attr_value *value);

bool attr_equal(const struct attr_value *a, const struct attr_value *b);
uint64_t attr_hash(const struct attr_value *value, uint64_t seed);

/* limit: elements of a tensor that are printed, < 0 for all. */
void attr_print(struct str *out, const struct attr_value *value, int64_t limit);

/* Parses a value of the given kind at `text`; returns its end or NULL with the error set.
 * `type` is the element type of a tensor literal (DTYPE_INVALID: inferred). */
const char *attr_parse(struct arena *arena, const char *text, enum attr_kind kind, enum dtype type,
                       struct attr_value *value, struct error *err);

#endif
