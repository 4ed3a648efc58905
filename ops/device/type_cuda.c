/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/kernel_cuda.h"

enum cuda_type cuda_type_of(enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return CUDA_FLOAT32;
    case FLOAT64:
        return CUDA_FLOAT64;
    case FLOAT16:
        return CUDA_FLOAT16;
    case BFLOAT16:
        return CUDA_BFLOAT16;
    case INT8:
        return CUDA_INT8;
    case INT16:
        return CUDA_INT16;
    case INT32:
        return CUDA_INT32;
    case INT64:
        return CUDA_INT64;
    case UINT8:
        return CUDA_UINT8;
    case UINT16:
        return CUDA_UINT16;
    case UINT32:
        return CUDA_UINT32;
    case UINT64:
        return CUDA_UINT64;
    case BOOL:
        return CUDA_BOOL;
    case COMPLEX64:
        return CUDA_COMPLEX64;
    default:
        return N_CUDA_TYPES;
    }
}
