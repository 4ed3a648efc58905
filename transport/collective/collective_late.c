/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of values that go by rows, when all are known who take part. They are the same list in all
 * members, in which those of one owner, or from one member to another, take turns: so all begin
 * with them at about the same pace, and no link waits for another.
 */
#include "base/memory.h"
#include "base/vec.h"
#include "transport/collective/collective_private.h"

struct row_flow { /* rows of one member, or of their sum, to another, or to all */
    struct block next;
    int64_t left; /* elements */
};

struct late_blocks {
    struct process_group *group;
    struct collective_round *round;
    int value;
    VEC(struct row_flow) flows;
    VEC(struct block) blocks;
    size_t n_missing;
};

/* ---- who sends what to whom ---- */

/* Where rows of `from` begin in what `to` gets. */
static int64_t place_of(const struct collective_routing *routing, int from, int to)
{
    int64_t rows = 0;
    for (int k = 0; k < from; k++)
        rows += collective_rows_of(routing, k, to).count;
    return rows;
}

/* `from` to `to`, as places among the members; each of them by rank in the block. */
static void add_flow(struct late_blocks *late, int from, int to, bool to_all)
{
    const struct collective_round *m = late->round;
    const struct routed_value *routed = &m->routed[late->value];
    struct row_range rows = collective_rows_of(&routed->routing, from, to);
    bool adds = collective_adds(m->kinds[late->value]);
    int receiver = to_all ? TO_ALL : m->members[to];
    bool comes_here = receiver == TO_ALL || receiver == late->group->interface.rank;
    struct row_flow flow = {
        .next = {.value = late->value,
                 .owner = m->members[adds ? to : from],
                 .to = receiver,
                 .first = rows.first * routed->unit,
                 .at =
                     adds || !comes_here ? 0 : place_of(&routed->routing, from, to) * routed->unit},
        .left = rows.count * routed->unit};
    if (flow.left)
        vec_push(&late->flows, flow);
}

static void find_flows(struct late_blocks *late)
{
    const struct collective_round *m = late->round;
    const struct routed_value *routed = &m->routed[late->value];
    bool adds = collective_adds(m->kinds[late->value]);
    bool to_all = !collective_parts(m->kinds[late->value]) && routed->routing.root < 0;
    int n = m->n_members, n_turns = adds || to_all ? 1 : n;
    for (int turn = 0; turn < n_turns; turn++)
        for (int from = 0; from < n; from++) {
            int to = (from + turn) % n;
            bool is_own = !adds && !to_all && from == to;
            if (!is_own && !rows_were_brought(late->group, m, late->value, from))
                add_flow(late, adds ? 0 : from, to, to_all);
        }
}

/* ---- blocks ---- */

static void add_block(struct late_blocks *late, struct row_flow *flow)
{
    const struct process_group *group = late->group;
    int64_t most = BLOCK_BYTES / (int64_t)dtype_bytes(late->round->own[late->value].type);
    bool adds = collective_adds(late->round->kinds[late->value]);
    int rank = group->interface.rank;
    struct block block = flow->next;
    block.count = flow->left < most ? flow->left : most;
    block.done = !adds && block.owner != rank && block.to != rank && block.to != TO_ALL;
    if (adds && block.owner == rank)
        block.parts = mem_array((size_t)group->interface.size, sizeof *block.parts);
    vec_push(&late->blocks, block);
    late->n_missing += !block.done;
    flow->next.first += block.count;
    flow->next.at += block.count;
    flow->left -= block.count;
}

static void cut_flows(struct late_blocks *late)
{
    while (late->flows.n) {
        size_t left = 0;
        for (size_t i = 0; i < late->flows.n; i++) {
            add_block(late, &late->flows.items[i]);
            if (late->flows.items[i].left)
                late->flows.items[left++] = late->flows.items[i];
        }
        late->flows.n = left;
    }
}

void late_cut(struct process_group *group, struct collective_round *m)
{
    struct late_blocks late = {.group = group, .round = m};
    for (late.value = 0; late.value < m->n; late.value++) {
        if (!m->routed[late.value].is_routed)
            continue;
        find_flows(&late);
        cut_flows(&late);
    }
    vec_release(&late.flows);
    pthread_mutex_lock(&group->lock);
    m->late = late.blocks.items;
    m->n_late = late.blocks.n;
    m->n_missing += late.n_missing;
    pthread_mutex_unlock(&group->lock);
}
