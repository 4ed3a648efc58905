/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a single op: a graph of it alone is built, run and discarded.
 */
#ifndef TF_OPS_EAGER_H
#define TF_OPS_EAGER_H

#include "exec/device/device.h"
#include "graph/op.h"

/* An input: a tensor, or the text of one ("[[1,2],[3,4]]"). A text gets the type of its argument:
 * from the attribute, else from the other inputs, else from its form. */
struct eager_input {
    struct tensor tensor; /* with data, or a type and a shape of no elements */
    const char *literal;  /* NULL: use the tensor */
};

struct eager_attr {
    const char *name, *value; /* "transpose_b", "true"; strings without quotes */
};

struct eager_call {
    const char *op;
    const struct eager_input *inputs;
    int n_inputs; /* lists flattened */
    const struct eager_attr *attrs;
    int n_attrs;
    struct device *device;
    uint64_t seed;
};

struct eager_result {
    const struct op *op;
    struct tensor *outputs; /* host; released by eager_release */
    const char **names;     /* of the outputs, as declared; numbered in lists */
    int n;
    struct arena arena;
};

/* Runs the op. ERR_USAGE: an op or attribute does not exist (with a suggestion), or the number of
 * inputs is wrong; ERR_DATA: the inputs do not fit or the kernel fails. */
int eager_run(const struct eager_call *call, struct eager_result *result, struct error *err);
void eager_release(struct eager_result *result);

/* Finds the op of that name; NULL with ERR_USAGE and a suggestion. */
const struct op *eager_find(const char *name, struct error *err);

/* Returns whether a text is meant as a tensor: a number, a list, true, false, a quoted string. */
bool eager_is_literal(const char *text);

#endif
