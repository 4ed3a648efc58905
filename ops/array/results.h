/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of arguments shared by declarations and kernels of several devices, and the resulting
 * shapes. Each returns 0 or an error; of inputs that are not on the host only the shape is checked.
 */
#ifndef TF_OPS_ARRAY_RESULTS_H
#define TF_OPS_ARRAY_RESULTS_H

#include "exec/device/kernel.h"

int result_of_gather(struct kernel_call *call, struct shape *shape);

/* UnsortedSegmentSum: the segments are dimension 0. */
int result_of_segments(struct kernel_call *call, struct shape *shape);

/* OneHot: the depth becomes dimension `at`. */
int result_of_one_hot(struct kernel_call *call, int64_t axis, struct shape *shape, int *at);

/* Returns whether each dimension of the input is `multiples` times the result's. */
bool tile_grad_fits(const struct shape *in, const struct shape *shape, const int64_t *multiples);
int result_of_tile_grad(struct kernel_call *call, struct shape *shape, int64_t *multiples);

/* Range: a vector of n elements. */
int result_of_range(struct kernel_call *call, int64_t *n);

/* Checks an input on the host, and names the first index (int32 or int64) outside [0, n). */
int rows_check(struct kernel_call *call, int input, int64_t n);

/* Counts the elements of start, start + delta, ... before limit; the three are scalars of one type.
 * ERR_DATA if delta is 0 or leads away from the limit. */
int range_count(const struct tensor *start, const struct tensor *limit, const struct tensor *delta,
                int64_t *n, struct error *err);

/* ---- DynamicPartition and DynamicStitch: numbers of rows are on the host ---- */

/* Finds the shape of the outputs, except for each one's number of rows: `counts`, n_out of them. */
int dynamic_partition_counts(struct kernel_call *call, struct shape *rows, int64_t *counts);

/* Finds the shape of the output, which has one row more than the largest number. */
int dynamic_stitch_shape(struct kernel_call *call, struct shape *shape);

#endif
