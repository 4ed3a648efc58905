/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/random/stream.h"

#include <string.h>

#include "exec/plan/plan.h"
#include "ops/random/draw.h"

struct philox_stream random_stream(const struct kernel_call *call)
{
    const struct random_seeds *seeds = call->state;
    struct philox_place at = {.seed = call->step->seed,
                              .op_seed = seeds->seed,
                              .op_seed2 = seeds->seed2,
                              .step = (uint64_t)call->step->number,
                              .iteration = call->iteration,
                              .replica = seeds->alike ? 0 : call->step->replica};
    return philox_stream_at(&at);
}

void random_words(const struct philox_stream *stream, int64_t i, uint32_t words[2])
{
    uint32_t block[4];
    philox_block(stream, (uint64_t)i / 2, block);
    memcpy(words, block + 2 * (i % 2), 2 * sizeof *words);
}

int64_t random_offset(const struct kernel_call *call)
{
    return ((const struct random_seeds *)call->state)->offset;
}
