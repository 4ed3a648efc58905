/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasting on the device. The host merges dimensions that all inputs traverse alike. In most
 * cases one dimension remains, along which each input advances by one element or stays: this is a
 * loop over packs. Otherwise each thread finds its element's place by division.
 */
#ifndef OPS_MATH_BROADCAST_CUDA_CUH
#define OPS_MATH_BROADCAST_CUDA_CUH

#include "ops/device/types_cuda.cuh"
#include "ops/math/broadcast_cuda.h"

struct walk_plan {
    int64_t count;
    bool flat;  /* one dimension, steps of 0 or 1, as in advances[] */
    bool packs; /* flat, and all advancing inputs are aligned for packs */
    bool small; /* indices are less than 2^31 */
    bool advances[CUDA_BROADCAST_INPUTS];
    int rank;
    int64_t dims[CUDA_RANK_MAX]; /* innermost first */
    int64_t strides[CUDA_BROADCAST_INPUTS][CUDA_RANK_MAX];
};

/* Returns whether dimension d continues the outermost one so far. */
static inline bool walk_continues(const walk_plan &plan, const cuda_broadcast &of, int d)
{
    int last = plan.rank - 1;
    for (int i = 0; i < CUDA_BROADCAST_INPUTS; i++)
        if (of.strides[i][d] != plan.strides[i][last] * plan.dims[last])
            return false;
    return true;
}

static inline walk_plan plan_walk(const cuda_broadcast &of)
{
    walk_plan plan = {};
    plan.count = 1;
    for (int d = of.rank - 1; d >= 0; d--) {
        plan.count *= of.dims[d];
        if (of.dims[d] == 1)
            continue;
        if (plan.rank && walk_continues(plan, of, d)) {
            plan.dims[plan.rank - 1] *= of.dims[d];
            continue;
        }
        plan.dims[plan.rank] = of.dims[d];
        for (int i = 0; i < CUDA_BROADCAST_INPUTS; i++)
            plan.strides[i][plan.rank] = of.strides[i][d];
        plan.rank++;
    }
    plan.flat = plan.rank <= 1;
    int64_t largest = plan.count;
    for (int i = 0; i < CUDA_BROADCAST_INPUTS; i++) {
        int64_t reach = 0;
        for (int d = 0; d < plan.rank; d++)
            reach += (plan.dims[d] - 1) * plan.strides[i][d];
        largest = reach > largest ? reach : largest;
        plan.advances[i] = plan.rank == 1 && plan.strides[i][0] == 1;
        plan.flat = plan.flat && (!plan.rank || plan.strides[i][0] == 0 || plan.advances[i]);
    }
    plan.small = largest < INT32_MAX;
    plan.packs = plan.flat;
    return plan;
}

template <typename Index> DEVICE_INLINE void place_by(const walk_plan &plan, Index i, int64_t *at)
{
    Index place[CUDA_BROADCAST_INPUTS] = {};
    for (int d = 0; d < plan.rank; d++) {
        Index dim = static_cast<Index>(plan.dims[d]), rest = i / dim, index = i - rest * dim;
        for (int k = 0; k < CUDA_BROADCAST_INPUTS; k++)
            place[k] += index * static_cast<Index>(plan.strides[k][d]);
        i = rest;
    }
    for (int k = 0; k < CUDA_BROADCAST_INPUTS; k++)
        at[k] = place[k];
}

/* Finds the inputs' indices for output element i. */
DEVICE_INLINE void place_of(const walk_plan &plan, int64_t i, int64_t at[CUDA_BROADCAST_INPUTS])
{
    if (plan.flat)
        for (int k = 0; k < CUDA_BROADCAST_INPUTS; k++)
            at[k] = plan.advances[k] ? i : 0;
    else if (plan.small)
        place_by(plan, static_cast<uint32_t>(i), at);
    else
        place_by(plan, i, at);
}

/* Loads N elements of an input from element i on, or N copies of its single element. */
template <int N, typename T>
DEVICE_INLINE pack<T, N> load_operand(const T *x, bool advances, int64_t i)
{
    if (advances)
        return load_pack<N>(x + i);
    pack<T, N> all;
    for (int k = 0; k < N; k++)
        all.at[k] = x[0];
    return all;
}

#endif
