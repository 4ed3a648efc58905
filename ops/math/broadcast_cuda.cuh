/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasting on the device. In most cases one dimension remains, along which each input advances
 * by one element or stays: this is a loop over packs. Otherwise each thread finds its element's
 * place by division.
 */
#ifndef OPS_MATH_BROADCAST_CUDA_CUH
#define OPS_MATH_BROADCAST_CUDA_CUH

#include "ops/device/types_cuda.cuh"
#include "ops/math/broadcast.h"

template <typename Index> DEVICE_INLINE void place_by(const broadcast &plan, Index i, int64_t *at)
{
    Index place[BROADCAST_INPUTS_MAX] = {};
    for (int d = plan.rank - 1; d >= 0; d--) {
        Index dim = static_cast<Index>(plan.dims[d]), rest = i / dim, index = i - rest * dim;
        for (int k = 0; k < BROADCAST_INPUTS_MAX; k++)
            place[k] += index * static_cast<Index>(plan.strides[k][d]);
        i = rest;
    }
    for (int k = 0; k < BROADCAST_INPUTS_MAX; k++)
        at[k] = place[k];
}

/* Finds the inputs' indices for output element i, from which N elements are computed: several only
 * if one dimension remains. */
template <int N>
DEVICE_INLINE void place_of(const broadcast &plan, int64_t i, int64_t at[BROADCAST_INPUTS_MAX])
{
    if (N > 1 || plan.rank == 1)
        for (int k = 0; k < BROADCAST_INPUTS_MAX; k++)
            at[k] = plan.strides[k][0] ? i : 0;
    else if (plan.count < INT32_MAX)
        place_by(plan, static_cast<uint32_t>(i), at);
    else
        place_by(plan, i, at);
}

/* Loads N elements from x on, or N copies of x if the input stays. */
template <int N, typename T> DEVICE_INLINE pack<T, N> load_operand(const T *x, bool advances)
{
    if constexpr (N > 1)
        if (!advances) {
            pack<T, N> all;
            for (int k = 0; k < N; k++)
                all.at[k] = *x;
            return all;
        }
    return load_pack<N>(x);
}

/* On the host: returns whether packs of n elements can be loaded from an input. */
template <typename T> static bool is_packed(const broadcast &plan, int input, const void *x, int n)
{
    return plan.rank == 1 && (!broadcast_advances(&plan, input) || is_aligned(x, n * sizeof(T)));
}

#endif
