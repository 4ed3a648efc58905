/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/program.h"

#include "base/memory.h"

static uint64_t bit(int member)
{
    return (uint64_t)1 << member;
}

/* Whose values are in each member's piece, since flows before were done. */
static void follow(uint64_t *held, const struct schedule_flow *flow, uint64_t all)
{
    held[flow->to] = flow->operation == SCHEDULE_COPY ? all : held[flow->to] | held[flow->from];
}

void program_make(const struct sum_schedule *s, int member, int piece,
                  struct chunk_program *program)
{
    uint64_t held[SCHEDULE_MEMBERS_MAX], all = 0;
    for (int k = 0; k < s->n_members; k++)
        all |= held[k] = bit(k);
    for (size_t i = 0; i < s->flows.n; i++) {
        const struct schedule_flow *flow = &s->flows.items[i];
        if (flow->piece != piece)
            continue;
        bool is_whole = held[flow->from] == all;
        follow(held, flow, all);
        struct chunk_action send = {ACT_SEND, flow->to, is_whole};
        struct chunk_action take = {flow->operation == SCHEDULE_COPY ? ACT_COPY : ACT_ADD,
                                    flow->from, held[member] == all};
        if (flow->from == member || flow->to == member)
            vec_push(&program->actions, flow->from == member ? send : take);
    }
}
