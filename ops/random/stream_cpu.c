/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/parallel_cpu.h"
#include "ops/random/stream.h"

#define PARALLEL_COUNT 16384

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
