/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/parallel_cpu.h"

/* Long loops are split at multiples of this, so that two threads never share a cache line. */
#define PARALLEL_ALIGN 64

struct parallel_loop {
    parallel_body *body;
    void *context;
    int64_t n, chunk;
    int chunks, flags;
};

static void run_member(void *context, int member, int members)
{
    struct parallel_loop *loop = context;
    int flags = 0;
    for (int i = member; i < loop->chunks; i += members) {
        int64_t begin = i * loop->chunk, end = begin + loop->chunk;
        if (begin < loop->n)
            flags |= loop->body(loop->context, begin, end < loop->n ? end : loop->n);
    }
    if (flags)
        __atomic_fetch_or(&loop->flags, flags, __ATOMIC_RELAXED);
}

int parallel_for(int threads, int64_t n, int64_t grain, parallel_body *body, void *context)
{
    int64_t useful = n / PARALLEL_WORTH(grain);
    if (threads > useful)
        threads = (int)useful;
    if (threads <= 1)
        return n > 0 ? body(context, 0, n) : 0;
    int64_t chunk = (n + threads - 1) / threads;
    if (chunk > PARALLEL_ALIGN * 16)
        chunk = (chunk + PARALLEL_ALIGN - 1) / PARALLEL_ALIGN * PARALLEL_ALIGN;
    struct parallel_loop loop = {.body = body, .context = context, .n = n, .chunk = chunk};
    loop.chunks = threads;
    team_run(threads, run_member, &loop);
    return loop.flags;
}
