/* SPDX-License-Identifier: Apache-2.0
 *
 * Values private to each worker, which checkpoints include: resource/worker_value.h.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

#define NO_GRADIENT "it is about what a step leaves behind"

#define WORKER_VALUE(op, ...)                                                                      \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .flags = OP_STATEFUL | OP_NO_GRADIENT,                          \
                                   .round = ROUND_OTHER,                                           \
                                   .half = HALF_KEPT,                                              \
                                   .cost = cost_elements,                                          \
                                   .no_gradient = NO_GRADIENT,                                     \
                                   __VA_ARGS__}

WORKER_VALUE(
    WorkerValueGive, .inputs = "value: T", .outputs = "token: int64",
    .attrs = "T: float16|bfloat16|float32|float64, of: string, container: string = \"\"",
    .doc = "A worker gives a device what it keeps for itself, for a checkpoint.",
    .detail = "It is kept under the name `of` and the worker's number, in place of what was given "
              "before. The\ntoken, for ClockRest, is the step's number.",
    .keeps = 1 << 0, .shape = infer_output_scalar);

WORKER_VALUE(
    WorkerValueTake, .outputs = "value: dtype",
    .attrs = "dtype: float16|bfloat16|float32|float64, shape: shape, of: string, "
             "container: string = \"\", workers: int = 0 >= 0",
    .doc = "What the worker has given last, or zeros.",
    .detail =
        "Of n workers it gets, and keeps from then on, the sum of its own and of what those "
        "had given\nwho are not there any more: worker + n, worker + 2 n, ... 0: n is not known.",
    .shape = infer_output_attribute);
