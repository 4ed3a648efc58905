/* SPDX-License-Identifier: Apache-2.0
 *
 * A parallel loop like those of kernels, to prove that ThreadSanitizer sees the work of its
 * members. usage: race none|sum|overlap     (sum: all add to one variable; overlap: parts share an
 * element)
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ops/math/parallel_cpu.h"

#define N (8 * PARALLEL_GRAIN_MOVE)

struct work {
    int64_t sum;
    int32_t out[N + 1];
    int64_t parts[N];
    bool sums, overlaps;
};

static int body(void *context, int64_t begin, int64_t end)
{
    struct work *work = context;
    int64_t last = work->overlaps ? end + 1 : end;
    for (int64_t i = begin; i < last; i++)
        work->out[i] = (int32_t)i;
    for (int64_t i = begin; i < end; i++)
        work->parts[begin] += i;
    if (work->sums)
        work->sum += work->parts[begin];
    return 0;
}

int main(int argc, char **argv)
{
    static struct work work;
    work.sums = argc > 1 && !strcmp(argv[1], "sum");
    work.overlaps = argc > 1 && !strcmp(argv[1], "overlap");
    parallel_for(4, N, PARALLEL_GRAIN_MOVE, body, &work);
    int64_t sum = work.sum;
    for (int64_t i = 0; i < N; i++)
        sum += work.sums ? 0 : work.parts[i];
    printf("%lld\n", (long long)sum);
    return 0;
}
