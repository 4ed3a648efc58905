/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/parallel_cpu.h"

#include <omp.h>

#include "ops/math/worth_cpu.h"

/* Long loops are cut at multiples of this, so that two threads never share a cache line. */
#define PARALLEL_ALIGN 64

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
    int flags = 0;
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(| : flags)
    for (int i = 0; i < threads; i++) {
        int64_t begin = i * chunk, end = begin + chunk < n ? begin + chunk : n;
        if (begin < end)
            flags |= body(context, begin, end);
    }
    return flags;
}
