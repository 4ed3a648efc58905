/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_ARRAY_INDICES_CUDA_CUH
#define OPS_ARRAY_INDICES_CUDA_CUH

#include "ops/array/launchers_cuda.h"
#include "ops/device/types_cuda.cuh"

DEVICE_INLINE int64_t index_at(const cuda_indices &indices, int64_t i)
{
    switch (indices.type) {
    case CUDA_INT64:
        return static_cast<const int64_t *>(indices.data)[i];
    case CUDA_INT8:
        return static_cast<const int8_t *>(indices.data)[i];
    case CUDA_UINT8:
        return static_cast<const uint8_t *>(indices.data)[i];
    default:
        return static_cast<const int32_t *>(indices.data)[i];
    }
}

#endif
