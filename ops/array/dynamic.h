/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of DynamicPartition and DynamicStitch share on all devices. Numbers of rows are
 * on the host; of the data their shapes are looked at alone. Each returns 0 or an error.
 */
#ifndef TF_OPS_ARRAY_DYNAMIC_H
#define TF_OPS_ARRAY_DYNAMIC_H

#include "exec/device/kernel.h"

/* The shape of the outputs, but for the rows that each has: `counts`, of which there are n_out. */
int dynamic_partition_counts(struct kernel_call *call, struct shape *rows, int64_t *counts);

/* The shape of the output: its rows are one more than the largest number. */
int dynamic_stitch_shape(struct kernel_call *call, struct shape *shape);

/* Elements of a row of that shape. */
int64_t dynamic_row_count(const struct shape *rows);

#endif
