/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/program.h"

#include "base/memory.h"

#define PROGRAM(awaited, ...)                                                                      \
    {                                                                                              \
        .actions = (struct chunk_action[]){__VA_ARGS__},                                           \
        .n = sizeof((struct chunk_action[]){__VA_ARGS__}) / sizeof(struct chunk_action),           \
        .awaits = awaited,                                                                         \
    }

const struct chunk_program program_owner = PROGRAM(false, {ACT_SUM, PROGRAM_PEER, true});
const struct chunk_program program_member =
    PROGRAM(true, {ACT_SEND, PROGRAM_PEER, false}, {ACT_COPY, PROGRAM_PEER, true});
const struct chunk_program program_source = PROGRAM(false, {ACT_SEND, PROGRAM_PEER, true});
const struct chunk_program program_destination = PROGRAM(true, {ACT_COPY, PROGRAM_PEER, true});

static uint64_t bit(int member)
{
    return (uint64_t)1 << member;
}

void program_make(const struct sum_schedule *s, int member, int piece,
                  struct chunk_program *program)
{
    uint64_t held[SCHEDULE_MEMBERS_MAX], all = 0; /* whose values are in each member's piece */
    for (int k = 0; k < s->n_members; k++)
        all |= held[k] = bit(k);
    *program =
        (struct chunk_program){.actions = mem_array(s->flows.n + 1, sizeof *program->actions)};
    for (size_t i = 0; i < s->flows.n; i++) {
        const struct schedule_flow *flow = &s->flows.items[i];
        if (flow->piece != piece)
            continue;
        bool copies = flow->operation == SCHEDULE_COPY, is_whole = held[flow->from] == all;
        held[flow->to] = copies ? all : held[flow->to] | held[flow->from];
        if (flow->from == member)
            program->actions[program->n++] = (struct chunk_action){ACT_SEND, flow->to, is_whole};
        else if (flow->to == member)
            program->actions[program->n++] =
                (struct chunk_action){copies ? ACT_COPY : ACT_ADD, flow->from, held[member] == all};
        program->awaits |= flow->to == member;
    }
}

void program_release(struct chunk_program *program)
{
    mem_free(program->actions);
    *program = (struct chunk_program){0};
}
