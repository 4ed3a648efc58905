/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of arguments shared by declarations and kernels of several devices, and the resulting
 * shapes. Each returns 0 or an error; of inputs that are not on the host only the shape is checked.
 */
#ifndef TF_OPS_ARRAY_RESULTS_H
#define TF_OPS_ARRAY_RESULTS_H

#include "exec/device/kernel.h"

/* OneHot: the depth becomes dimension `at`. */
int result_of_one_hot(struct kernel_call *call, int64_t axis, struct shape *shape, int *at);

/* Checks an input on the host, and names the first index (int32 or int64) outside [0, n). */
int rows_check(struct kernel_call *call, int input, int64_t n);

/* ---- DynamicPartition and DynamicStitch: numbers of rows are on the host ---- */

/* Finds the shape of the outputs, except for each one's number of rows: `counts`, n_out of them. */
int dynamic_partition_counts(struct kernel_call *call, struct shape *rows, int64_t *counts);

/* Makes the output, which has one row more than the largest number; NULL with call->err set. */
struct tensor *dynamic_stitch_output(struct kernel_call *call);

#endif
