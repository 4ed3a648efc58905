/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing rows of a variable.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"
#include "ops/array/reshape.h"
#include "ops/lacking.h"

#define NO_GRADIENT "it changes a variable"

static int scatter_shape(struct infer *infer)
{
    const struct shape *ref = infer_shape(infer, 0), *indices = infer_shape(infer, 1);
    const struct shape *updates = infer_shape(infer, 2);
    int code = infer_rank_at_least(infer, 0, 1);
    infer->out[0] = *ref;
    if (code || ref->rank < 0 || indices->rank < 0)
        return code;
    struct shape wanted;
    if (reshape_join(indices, ref, 1, &wanted, infer->err))
        return infer->err->code;
    if (!shape_compatible(&wanted, updates))
        return infer_fail(infer, "updates must be %s (indices, then a row of ref), not %s",
                          shape_text(&wanted), shape_text(updates));
    return 0;
}

/* The changed rows are read, with the updates, and written; the others are not touched. */
static void scatter_cost(const struct cost_query *query, struct op_cost *cost)
{
    const struct node_output *updates = cost_input(query, 2);
    cost->operations = cost_count(&updates->shape, query->assume);
    cost->bytes =
        3 * cost_bytes(updates, query->assume) + cost_bytes(cost_input(query, 1), query->assume);
}

#define SCATTER(op, its_attrs, its_doc, ...)                                                       \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .attrs = its_attrs,                                             \
                                   .doc = its_doc,                                                 \
                                   .inputs = "ref: Ref(T), indices: Tindices, updates: T",         \
                                   .outputs = "output_ref: Ref(T)",                                \
                                   .flags = OP_STATEFUL | OP_NO_GRADIENT,                          \
                                   .rule = "output_ref[<indices>,r...] = indices[i...] "           \
                                           "updates[i...,r...]",                                   \
                                   .half = HALF_KEPT,                                              \
                                   .cost = scatter_cost,                                           \
                                   .shape = scatter_shape,                                         \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

SCATTER(ScatterAdd, "T: real, Tindices: int32|int64, use_locking: bool = false",
        "Adds rows to the rows of a variable with these numbers.",
        .detail =
            "Numbers may repeat: all their rows are added, in order. One outside of the variable "
            "is an error, and the variable stays as it is."
            "\n" NO_COMPLEX);

SCATTER(ScatterSub, "T: real, Tindices: int32|int64, use_locking: bool = false",
        "Subtracts rows from the rows of a variable with these numbers.",
        .detail = "As ScatterAdd."
                  "\n" NO_COMPLEX);

SCATTER(ScatterUpdate, "T: numeric|bool, Tindices: int32|int64, use_locking: bool = true",
        "Replaces the rows of a variable with these numbers.",
        .detail =
            "If a number repeats, its last row counts. One outside of the variable is an error, "
            "and the variable stays as it is."
            "\n" NO_STRINGS);
