/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/random/stream.h"

#include "base/memory.h"
#include "exec/plan/plan.h"

#define PARALLEL_COUNT 16384

struct seeds {
    uint64_t seed, seed2;
    int64_t offset;
};

int random_prepare(struct kernel_setup *setup)
{
    struct seeds *seeds = mem_alloc(sizeof *seeds);
    seeds->seed = (uint64_t)node_int(setup->node, "seed");
    seeds->seed2 = (uint64_t)node_int(setup->node, "seed2");
    const struct attr_value *offset = node_attr(setup->node, "offset");
    seeds->offset = offset ? offset->i : 0;
    setup->state = seeds;
    return 0;
}

struct philox_stream random_stream(const struct kernel_call *call)
{
    const struct seeds *seeds = call->state;
    struct philox_place at = {.seed = call->step->seed,
                              .op_seed = seeds->seed,
                              .op_seed2 = seeds->seed2,
                              .step = (uint64_t)call->step->number,
                              .iteration = call->iteration,
                              .replica = call->step->replica};
    return philox_stream_at(&at);
}

int64_t random_offset(const struct kernel_call *call)
{
    return ((const struct seeds *)call->state)->offset;
}

void random_parallel(struct kernel_call *call, int64_t n, int64_t grain,
                     void (*draw)(void *context, int64_t first, int64_t last), void *context)
{
    int threads = call->threads;
    if (threads == 1 || n < PARALLEL_COUNT) {
        draw(context, 0, n);
        return;
    }
    int64_t grains = (n + grain - 1) / grain;
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++) {
        int64_t first = grains * t / threads * grain, last = grains * (t + 1) / threads * grain;
        if (first < n)
            draw(context, first, last < n ? last : n);
    }
}
