/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenBLAS and oneDNN use GCC's OpenMP runtime, so our own loops do, too: another runtime would be
 * a second pool of threads on the same cores. A compiler turns a pragma into calls of its own
 * runtime (clang: LLVM's), so regions are started here by the call that GCC generates for `#pragma
 * omp parallel`.
 */
#include "ops/math/parallel_cpu.h"

#include <omp.h>

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);

struct team_region {
    team_body *body;
    void *context;
};

static void enter(void *data)
{
    const struct team_region *region = data;
    region->body(region->context, omp_get_thread_num(), omp_get_num_threads());
}

void team_run(int threads, team_body *body, void *context)
{
    struct team_region region = {body, context};
    GOMP_parallel(enter, &region, (unsigned)threads, 0);
}
