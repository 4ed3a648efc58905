/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the headers of CUDA launchers. A launcher is an extern "C" function of a `.cu` file
 * that puts kernels into a stream and returns at once: a cudaError_t as an int, 0 on success. Its
 * header is plain C, for files that do not use CUDA, as the `.cu` files do not use graphs and
 * tensors. Pointers are to device memory, except those to argument structs.
 */
#ifndef TF_OPS_DEVICE_LAUNCH_CUDA_H
#define TF_OPS_DEVICE_LAUNCH_CUDA_H

#include <stdint.h>

#include "exec/device/step_block.h"

/* Linkage of functions that both kinds of files see. */
#ifdef __cplusplus
#define CUDA_C extern "C"
#else
#define CUDA_C extern
#endif

struct CUstream_st; /* what a cudaStream_t points to */

/* Errors that launchers return themselves, from cudaError_t. */
#define CUDA_INVALID_VALUE 1 /* no kernel for that op and those types */

#define CUDA_RANK_MAX 8

/*      CUDA_...  in kernels     computed in */
#define CUDA_TYPES(X)                                                                              \
    X(FLOAT32, float, float)                                                                       \
    X(FLOAT64, double, double)                                                                     \
    X(FLOAT16, __half, float)                                                                      \
    X(BFLOAT16, __nv_bfloat16, float)                                                              \
    X(INT8, int8_t, int32_t)                                                                       \
    X(INT16, int16_t, int32_t)                                                                     \
    X(INT32, int32_t, int32_t)                                                                     \
    X(INT64, int64_t, int64_t)                                                                     \
    X(UINT8, uint8_t, int32_t)                                                                     \
    X(UINT16, uint16_t, int32_t)                                                                   \
    X(UINT32, uint32_t, int64_t)                                                                   \
    X(UINT64, uint64_t, uint64_t)                                                                  \
    X(BOOL, bool, bool)                                                                            \
    X(COMPLEX64, float2, float2)

enum cuda_type {
#define X(name, type, wide) CUDA_##name,
    CUDA_TYPES(X)
#undef X
        N_CUDA_TYPES
};

/* Returns the bytes of an element of a float type. */
static inline int cuda_float_bytes(enum cuda_type type)
{
    return type == CUDA_FLOAT64 ? 8 : type == CUDA_FLOAT32 ? 4 : 2;
}

/* Where kernels report an error, and which item and input they are. The error with the lowest
 * element wins; one from before the kernel stays. */
struct cuda_fault {
    struct fault *at; /* NULL: errors are not reported */
    uint32_t item;
    uint16_t input;
};

/* Copies the fault into the block, unless it is empty or the block has one; both are in device
 * memory. Enqueued; returns a cudaError_t, 0 on success. */
CUDA_C int cuda_leave_fault(struct step_block *block, const struct fault *fault,
                            struct CUstream_st *stream);

#endif
