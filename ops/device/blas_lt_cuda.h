/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of floats by cuBLASLt, of which one says by which algorithm and with what memory
 * each is computed. The library is found by its name when the first product is asked for. Only
 * ops/device/gemm_cuda.c calls it, and the tests' own module answers the same calls with loops.
 */
#ifndef TF_OPS_DEVICE_BLAS_LT_CUDA_H
#define TF_OPS_DEVICE_BLAS_LT_CUDA_H

#include "ops/device/blas_cuda.h"

#define CUDA_LT_ALIGNMENT 16            /* bytes, that matrices begin at */
#define CUDA_LT_WORKSPACE_ALIGNMENT 256 /* and memory to work in */
#define CUDA_LT_ALGORITHMS 8            /* as many are looked at for a product */

/* How the sum of an element of a result may be cut into parts that are computed side by side. Parts
 * that lie in memory to work in, in the type they are added in, are added in their order by a step
 * of its own: a product has the same bits each time. The library says of those that are added in
 * the place of the result only that one goes after the other, not which. They, and others, have the
 * result's type: where that has 16 bits sums would be rounded before they are over. */
enum cuda_lt_sums { CUDA_LT_IN_ORDER, CUDA_LT_IN_ANY_ORDER };

struct cuda_lt_algorithm {
    int id; /* the library's */
    size_t workspace_bytes;
    uint64_t code[8]; /* all that the library has to know of it */
};

/* The memory and stream that a product runs with. */
struct cuda_lt_room {
    struct CUstream_st *stream;
    void *workspace; /* aligned as is said above */
    size_t bytes;    /* at least the algorithm's */
};

/* The functions that are called of the library. Functions that return an int return a
 * cublasStatus_t. A product is its sizes and `tf32`; whether it accumulates is no matter, nor where
 * matrices are, if they are aligned as is said above. */
struct cuda_lt {
    int (*load)(struct error *err); /* ERR_UNAVAILABLE says what is missing */
    int (*version)(void);           /* 130100: 13.1.0 */
    int (*handle_new)(void **handle);
    void (*handle_free)(void *handle);
    /* Finds those of the algorithms that need no more memory that the library takes for the best by
     * the shapes, the first one first: always the same ones. At most CUDA_LT_ALGORITHMS: *n. */
    int (*find)(void *handle, const struct cuda_gemm *gemm, enum cuda_lt_sums sums, size_t limit,
                struct cuda_lt_algorithm *found, int *n);
    /* Measures how long one product takes: it is computed several times, and waited for. */
    int (*time)(void *handle, const struct cuda_gemm *gemm,
                const struct cuda_lt_algorithm *algorithm, const struct cuda_lt_room *room,
                float *milliseconds);
    int (*gemm)(void *handle, const struct cuda_gemm *gemm,
                const struct cuda_lt_algorithm *algorithm, const struct cuda_lt_room *room);
    const char *(*error_text)(int status);
};

extern const struct cuda_lt cuda_lt_real;

#endif
