/* SPDX-License-Identifier: Apache-2.0
 *
 * What the headers of CUDA launchers share. A launcher is an extern "C" function of a `.cu` file
 * that puts kernels into a stream and returns at once: a cudaError_t as an int, 0 when all is well.
 * Its header is plain C, for files that know nothing of CUDA, as the `.cu` files know nothing of
 * graphs and tensors. Pointers are the device's, but for those of argument structs.
 */
#ifndef TF_OPS_DEVICE_LAUNCH_CUDA_H
#define TF_OPS_DEVICE_LAUNCH_CUDA_H

#include <stdint.h>

#include "exec/device/step_block.h"

/* Before what both kinds of files see. */
#ifdef __cplusplus
#define CUDA_C extern "C"
#else
#define CUDA_C extern
#endif

struct CUstream_st; /* what a cudaStream_t points to */

/* Errors of launchers' own, out of cudaError_t. */
#define CUDA_INVALID_VALUE 1 /* no kernel for that op and those types */

#define CUDA_RANK_MAX 8

/*      constant       in kernels     computed in */
#define CUDA_TYPES(X)                                                                              \
    X(CUDA_FLOAT32, float, float)                                                                  \
    X(CUDA_FLOAT64, double, double)                                                                \
    X(CUDA_FLOAT16, __half, float)                                                                 \
    X(CUDA_BFLOAT16, __nv_bfloat16, float)                                                         \
    X(CUDA_INT8, int8_t, int32_t)                                                                  \
    X(CUDA_INT16, int16_t, int32_t)                                                                \
    X(CUDA_INT32, int32_t, int32_t)                                                                \
    X(CUDA_INT64, int64_t, int64_t)                                                                \
    X(CUDA_UINT8, uint8_t, int32_t)                                                                \
    X(CUDA_UINT16, uint16_t, int32_t)                                                              \
    X(CUDA_UINT32, uint32_t, int64_t)                                                              \
    X(CUDA_UINT64, uint64_t, uint64_t)                                                             \
    X(CUDA_BOOL, bool, bool)                                                                       \
    X(CUDA_COMPLEX64, float2, float2)

enum cuda_type {
#define X(constant, type, wide) constant,
    CUDA_TYPES(X)
#undef X
        N_CUDA_TYPES
};

/* Returns the bytes of an element of a float type. */
static inline int cuda_float_bytes(enum cuda_type type)
{
    return type == CUDA_FLOAT64 ? 8 : type == CUDA_FLOAT32 ? 4 : 2;
}

/* Where kernels leave an error that they find, and who they are. The error with the lowest element
 * stays. One that was there before is left alone. */
struct cuda_fault {
    struct fault *at; /* NULL: nobody wants to know */
    uint32_t item;
    uint16_t input;
};

/* Leaves the fault in the block, unless it is none or there is one; both are in the device's
 * memory. Enqueued; a cudaError_t, 0 when all is well. */
CUDA_C int cuda_leave_fault(struct step_block *block, const struct fault *fault,
                            struct CUstream_st *stream);

#endif
