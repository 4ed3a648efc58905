/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/random/stream.h"

#include <string.h>

#include "exec/plan/plan.h"
#include "ops/math/team_cpu.h"
#include "ops/random/draw.h"

#define PARALLEL_COUNT 16384

struct philox_stream random_stream(const struct kernel_call *call)
{
    const struct random_seeds *seeds = call->state;
    struct philox_place at = {.seed = call->step->seed,
                              .op_seed = seeds->seed,
                              .op_seed2 = seeds->seed2,
                              .step = (uint64_t)call->step->number,
                              .iteration = call->iteration,
                              .replica = call->step->replica};
    return philox_stream_at(&at);
}

void random_words(const struct philox_stream *stream, int64_t i, uint32_t words[2])
{
    uint32_t block[4];
    philox_block(stream, (uint64_t)i / 2, block);
    memcpy(words, block + 2 * (i % 2), 2 * sizeof *words);
}

int64_t random_find_class(const double *sums, int64_t n, double x)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sums[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int64_t random_offset(const struct kernel_call *call)
{
    return ((const struct random_seeds *)call->state)->offset;
}

struct stream_draw {
    void (*draw)(void *context, int64_t first, int64_t last);
    void *context;
    int64_t n, grain;
};

static void draw_part(void *context, int part, int parts)
{
    const struct stream_draw *all = context;
    int64_t grain = all->grain, grains = (all->n + grain - 1) / grain;
    int64_t first = grains * part / parts * grain, last = grains * (part + 1) / parts * grain;
    if (first < all->n)
        all->draw(all->context, first, last < all->n ? last : all->n);
}

void random_parallel(struct kernel_call *call, int64_t n, int64_t grain,
                     void (*draw)(void *context, int64_t first, int64_t last), void *context)
{
    struct stream_draw all = {draw, context, n, grain};
    if (call->threads == 1 || n < PARALLEL_COUNT)
        draw(context, 0, n);
    else
        team_run(call->threads, draw_part, &all);
}
