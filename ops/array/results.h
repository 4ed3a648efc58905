/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of all devices check of rows by number, and make of them. Each function returns 0 or
 * an error, unless it says otherwise.
 */
#ifndef TF_OPS_ARRAY_RESULTS_H
#define TF_OPS_ARRAY_RESULTS_H

#include "exec/device/kernel.h"

/* Checks an input on the host, and names the first index (int32 or int64) outside [0, n). */
int rows_check(struct kernel_call *call, int input, int64_t n);

/* ---- DynamicPartition and DynamicStitch: numbers of rows are on the host ---- */

/* Finds the shape of the outputs, except for each one's number of rows: `counts`, n_out of them. */
int dynamic_partition_counts(struct kernel_call *call, struct shape *rows, int64_t *counts);

/* Makes the output, which has one row more than the largest number; NULL with call->err set. */
struct tensor *dynamic_stitch_output(struct kernel_call *call);

#endif
