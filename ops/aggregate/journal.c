/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker writes before each push, so that it can recognize its push after being killed:
 * resource/journal.h.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

#define NO_GRADIENT "it is about what a step leaves behind"
#define CONTAINER "container: string = \"\""
#define FLAGS (OP_STATEFUL | OP_NO_GRADIENT)

static int heads_shape(struct infer *infer)
{
    infer->out[0] = shape_matrix(-1, 2);
    return 0;
}

const struct op_def op_JournalHeads = {
    .name = "JournalHeads",
    .outputs = "heads: int64",
    .attrs = CONTAINER,
    .doc =
        "The copies that the worker's journal has: rows of the clock's incarnation and the step.",
    .detail = "There are two at most, that of the last push and of the one before. A worker "
              "without a job directory\nhas no journal: no rows.",
    .flags = FLAGS | OP_SHAPED_BY_DATA,
    .round = ROUND_OTHER,
    .cost = cost_elements,
    .shape = heads_shape,
    .no_gradient = NO_GRADIENT,
};

#define JOURNAL(op, ...)                                                                           \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .flags = FLAGS,                                                 \
                                   .round = ROUND_OTHER,                                           \
                                   .cost = cost_elements,                                          \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

JOURNAL(JournalBegin, .inputs = "clock: int64, seq: int64, own: bool", .attrs = CONTAINER,
        .doc = "From now on the journal is for this incarnation of the clock.",
        .detail =
            "The inputs are ClockJoin's. Of what it has the copy of the step seq stays, if it is "
            "the worker's own\nthat counts; else nothing does.",
        .shape = infer_all_scalars);

JOURNAL(JournalRead, .outputs = "value: dtype, open: bool",
        .attrs = "dtype: float16|bfloat16|float32|float64, shape: shape, of: string, " CONTAINER,
        .doc = "What the copy that JournalBegin has kept has under the name `of`.",
        .detail =
            "open: something was added to it (JournalAdd), so that what becomes of it depends on "
            "whether the\npush counts.",
        .half = HALF_KEPT, .shape = infer_output_attribute);

JOURNAL(JournalWrite, .inputs = "value: T",
        .attrs = "T: float16|bfloat16|float32|float64, of: string, " CONTAINER,
        .doc = "Writes a value, under the name `of`, to the copy of this step.",
        .detail = "The copy is in place of the older one, and there when it is committed.",
        .half = HALF_KEPT);

JOURNAL(JournalAdd, .inputs = "value: float32", .attrs = "of: string, " CONTAINER,
        .doc = "Adds to what JournalWrite wrote in this step under the name `of`.",
        .half = HALF_KEPT);

JOURNAL(JournalCommit, .attrs = CONTAINER,
        .doc = "All values of this step are written: the copy is there.");
