/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan/plan.h"
#include "ops/random/draw.h"
#include "ops/random/philox.h"

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
