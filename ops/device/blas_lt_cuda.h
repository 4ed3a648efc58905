/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of floats by cuBLASLt, where the caller chooses the algorithm and the memory of
 * each product. The library is found by name when the first product is requested. Only
 * ops/device/gemm_cuda.c calls it; the tests' own module implements the same calls with loops.
 */
#ifndef TF_OPS_DEVICE_BLAS_LT_CUDA_H
#define TF_OPS_DEVICE_BLAS_LT_CUDA_H

#include "ops/device/blas_cuda.h"

#define CUDA_LT_ALIGNMENT 16            /* of matrices, in bytes */
#define CUDA_LT_WORKSPACE_ALIGNMENT 256 /* of workspace, in bytes */
#define CUDA_LT_ALGORITHMS 8            /* number of candidates for a product */

/* How the sum of an element of the result may be split into parts that are computed in parallel. If
 * the parts lie in the workspace, in the type of the sums, a separate step adds them in order: a
 * product has the same bits each time. If the parts are added in the result itself, the library
 * only promises that they are added one after the other, but not in which order. These parts, and
 * others, have the result's type: with 16 bits, partial sums would be rounded. */
enum cuda_lt_sums { CUDA_LT_IN_ORDER, CUDA_LT_IN_ANY_ORDER };

struct cuda_lt_algorithm {
    int id; /* the library's number */
    size_t workspace_bytes;
    uint64_t code[8]; /* the library's description of it */
};

/* The memory and stream that a product runs with. */
struct cuda_lt_room {
    struct CUstream_st *stream;
    void *workspace; /* aligned as stated above */
    size_t bytes;    /* at least the algorithm's */
};

/* The library functions that are called. Functions that return an int return a cublasStatus_t. A
 * product is identified by its sizes and `tf32`; accumulation and addresses do not matter, if they
 * are aligned as stated above. */
struct cuda_lt {
    struct cuda_library_calls calls; /* without `use` */
    int (*version)(void);            /* 130100: 13.1.0 */
    /* Finds the algorithms within `limit` bytes that the library ranks best for the shapes, best
     * first; always the same ones. At most CUDA_LT_ALGORITHMS: *n. */
    int (*find)(void *handle, const struct cuda_gemm *gemm, enum cuda_lt_sums sums, size_t limit,
                struct cuda_lt_algorithm *found, int *n);
    int (*gemm)(void *handle, const struct cuda_gemm *gemm,
                const struct cuda_lt_algorithm *algorithm, const struct cuda_lt_room *room);
};

extern const struct cuda_lt cuda_lt_real;

#endif
