/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a graph that needs no feeds: one step, on the CPU, which is opened for the first value.
 * Constant folding computes with this.
 */
#ifndef TF_EXEC_EVALUATE_H
#define TF_EXEC_EVALUATE_H

#include "exec/device/device.h"

struct evaluator {
    const struct kernel_table *kernels;
    struct device *device; /* NULL at first */
};

/* `evaluator` is a struct evaluator. values[i] become host tensors that the caller releases. */
int evaluator_run(void *evaluator, const struct graph *graph, const struct edge *edges, int n,
                  struct tensor *values, struct error *err);
void evaluator_release(struct evaluator *evaluator);

#endif
