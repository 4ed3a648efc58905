/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of values that go by rows, when all are known who take part. They are the same list in all
 * members, in which those of one owner, or from one member to another, take turns: so all begin
 * with them at about the same pace, and no link waits for another. A member has those of the list
 * that it sends or gets; the number of each follows from what all members said.
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
    uint64_t index;             /* of the value's first block */
    bool is_to_all;             /* its flows are */
    uint64_t n_flows;           /* of all members, */
    int64_t longest;            /* and the rows of the longest */
    VEC(struct row_flow) flows; /* that begin or end here */
    VEC(struct block) blocks;
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
    int rank = late->group->interface.rank, receiver = to_all ? TO_ALL : m->members[to];
    bool comes_here = receiver == TO_ALL || receiver == rank;
    if (!rows.count || !routed->unit)
        return;
    uint64_t number = late->n_flows++;
    late->longest = rows.count > late->longest ? rows.count : late->longest;
    if (!adds && !comes_here && m->members[from] != rank)
        return;
    struct block next = {.index = number,
                         .value = late->value,
                         .owner = m->members[adds ? to : from],
                         .to = receiver,
                         .first = rows.first * routed->unit};
    if (!adds && comes_here)
        next.at = place_of(&routed->routing, from, to) * routed->unit;
    vec_push(&late->flows, ((struct row_flow){.next = next, .left = rows.count * routed->unit}));
}

static void find_flows(struct late_blocks *late)
{
    const struct collective_round *m = late->round;
    const struct routed_value *routed = &m->routed[late->value];
    bool adds = collective_adds(m->kinds[late->value]);
    bool to_all = !collective_parts(m->kinds[late->value]) && routed->routing.root < 0;
    int n = m->n_members, n_turns = adds || to_all ? 1 : n;
    late->is_to_all = to_all;
    for (int turn = 0; turn < n_turns; turn++)
        for (int from = 0; from < n; from++) {
            int to = (from + turn) % n;
            bool is_own = !adds && !to_all && from == to;
            if (!is_own && !rows_were_brought(late->group, m, late->value, from))
                add_flow(late, adds ? 0 : from, to, to_all);
        }
}

/* ---- blocks ---- */

/* What a server passes on is cut where it is not too small, so that the first blocks are on their
 * way to the others while the last ones still come. Of flows that are all found, as all members
 * have to cut alike. */
static int64_t most_elements(const struct late_blocks *late)
{
    const struct routed_value *routed = &late->round->routed[late->value];
    int64_t bytes = (int64_t)dtype_bytes(late->round->own[late->value].type);
    int64_t most = BLOCK_BYTES / bytes, least = RELAY_LEAST_BYTES / bytes;
    if (!late->is_to_all || !served_relay(late->group, late->round, 0))
        return most;
    int64_t each = late->longest > most ? most : late->longest * routed->unit / BLOCKS_EACH;
    return each > most ? most : each > least ? each : least;
}

static void add_block(struct late_blocks *late, struct row_flow *flow)
{
    const struct process_group *group = late->group;
    int64_t most = most_elements(late);
    struct block block = flow->next;
    block.count = flow->left < most ? flow->left : most;
    uint64_t turn = block.index / late->n_flows, flow_number = block.index % late->n_flows;
    if (block.to == TO_ALL)
        block.relay = served_relay(group, late->round, turn + flow_number);
    if (collective_adds(late->round->kinds[late->value]) && block.owner == group->interface.rank)
        block.parts = mem_array((size_t)group->interface.size, sizeof *block.parts);
    block.index += late->index;
    vec_push(&late->blocks, block);
    flow->next.index += late->n_flows;
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

/* Behind as many blocks of each flow of the value as the longest one has. */
static bool advance(struct late_blocks *late)
{
    int64_t elements;
    uint64_t blocks;
    if (__builtin_mul_overflow(late->longest, late->round->routed[late->value].unit, &elements))
        return false;
    uint64_t turns = (uint64_t)elements / (uint64_t)most_elements(late) + 1;
    return !__builtin_mul_overflow(turns, late->n_flows, &blocks) &&
           !__builtin_add_overflow(late->index, blocks, &late->index);
}

static bool cut_value(struct late_blocks *late)
{
    late->n_flows = 0;
    late->longest = 0;
    find_flows(late);
    late->round->has_late |= late->n_flows > 0;
    cut_flows(late);
    return advance(late);
}

static void publish(struct late_blocks *late)
{
    struct collective_round *m = late->round;
    pthread_mutex_lock(&late->group->lock);
    m->late = late->blocks.items;
    m->n_late = late->blocks.n;
    m->n_missing += late->blocks.n;
    pthread_mutex_unlock(&late->group->lock);
}

int late_cut(struct process_group *group, struct collective_round *m, struct error *err)
{
    struct late_blocks late = {.group = group, .round = m, .index = m->n_blocks};
    bool fits = true;
    for (late.value = 0; late.value < m->n && fits; late.value++)
        if (m->routed[late.value].is_routed)
            fits = cut_value(&late);
    vec_release(&late.flows);
    publish(&late);
    return fits ? 0 : error_set(err, ERR_DATA, "members bring more rows than there can be");
}
