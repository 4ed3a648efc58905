/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's stream of random words on the device, which has the step's part of the seed.
 */
#ifndef OPS_RANDOM_STREAM_CUDA_CUH
#define OPS_RANDOM_STREAM_CUDA_CUH

#include "ops/device/types_cuda.cuh"
#include "ops/random/launchers_cuda.h"

#define RANDOM_FUNCTION static __device__ __forceinline__
#include "ops/random/distribution.h"
#include "ops/random/philox.h"

DEVICE_INLINE struct philox_stream stream_of(const struct cuda_random_place &place)
{
    const random_seeds &seeds = place.seeds;
    const struct philox_place at = {place.step->seed, seeds.seed,
                                    seeds.seed2,      static_cast<uint64_t>(place.step->number),
                                    place.iteration,  seeds.alike ? 0 : place.step->replica};
    return philox_stream_at(&at);
}

#endif
