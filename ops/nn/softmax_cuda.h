/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and cross entropies of rows. Elements of 16 bits are computed in float32, sums are in
 * float64 and in an order that the length of a row decides.
 */
#ifndef TF_OPS_NN_SOFTMAX_CUDA_H
#define TF_OPS_NN_SOFTMAX_CUDA_H

#include <stdbool.h>

#include "ops/device/launch_cuda.h"

enum cuda_softmax_form {
    CUDA_SOFTMAX,
    CUDA_LOG_SOFTMAX,
    CUDA_CROSS_ENTROPY, /* y: what flows back, softmax - labels */
    CUDA_SPARSE_CROSS_ENTROPY,
};

struct cuda_softmax {
    enum cuda_softmax_form form;
    enum cuda_type type; /* a float */
    int64_t rows, n;
    const void *x;
    const void *labels;      /* [rows, n], or, sparse, [rows] class numbers */
    bool wide_classes;       /* of int64; else of int32 */
    void *y;                 /* [rows, n]; may be x */
    void *loss;              /* [rows], of cross entropies */
    struct cuda_fault fault; /* FAULT_LABEL of what is no class */
};

CUDA_C int cuda_softmax(const struct cuda_softmax *call, struct CUstream_st *stream);

#endif
