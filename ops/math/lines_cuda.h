/* SPDX-License-Identifier: Apache-2.0
 *
 * Along an axis: ArgMax and ArgMin, Cumsum and Cumprod.
 */
#ifndef TF_OPS_MATH_LINES_CUDA_H
#define TF_OPS_MATH_LINES_CUDA_H

#include <stdbool.h>

#include "ops/device/launch_cuda.h"

/* An array seen as [outer, n, inner]: outer * inner lines of n elements, `inner` apart. */
struct cuda_lines {
    int64_t outer, n, inner;
};

struct cuda_arg {
    bool max;
    bool narrow; /* positions of int32; else of int64 */
    enum cuda_type type;
    struct cuda_lines lines; /* n >= 1 */
    const void *x;
    void *y; /* [outer, inner] */
};

struct cuda_scan {
    bool product, exclusive, reverse;
    enum cuda_type type;
    struct cuda_lines lines;
    const void *x;
    void *y; /* may be x */
};

/* Of equal ones the first; a NaN wins over what is none. */
CUDA_C int cuda_arg(const struct cuda_arg *call, struct CUstream_st *stream);
/* float32 and shorter are carried in float64. */
CUDA_C int cuda_scan(const struct cuda_scan *call, struct CUstream_st *stream);

#endif
