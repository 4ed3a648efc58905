/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool with a byte for each window, which says where its largest value is, and its gradient from
 * those bytes (ops/nn/pool.c), with the CPU's bits.
 */
#ifndef TF_OPS_NN_POOL_PLACE_CUDA_H
#define TF_OPS_NN_POOL_PLACE_CUDA_H

#include "ops/nn/pool_cuda.h"

struct cuda_pool_place {
    enum cuda_type type; /* a float */
    int masked;          /* forward: no place where the largest value is not above 0 */
    int64_t planes, block;
    struct cuda_window y, x;
    const void *image, *gradient; /* forward: the image; backward: what flows back */
    uint8_t *place;               /* written by the forward pass */
    void *result;                 /* like the output; backward: like the image */
};

CUDA_C int cuda_max_pool_place(const struct cuda_pool_place *call, struct CUstream_st *stream);
CUDA_C int cuda_max_pool_place_grad(const struct cuda_pool_place *call, struct CUstream_st *stream);

#endif
