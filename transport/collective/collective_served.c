/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that go by servers (sum_server.h): a sum's is added there, of the parts of all members,
 * and rows that are for all others are passed on. What is said with each is all that a server has
 * to know.
 */
#include "base/map.h"
#include "transport/collective/collective_private.h"

#define RELAY_MEMBERS_MIN 3 /* for one other alone it would be a way around */

int served_count(const struct process_group *group)
{
    return group->n_ends - group->interface.size;
}

/* The server's end of the link may open later than this one. Members that have met must not have
 * blocks passed on by a server that does not know all of them. */
void served_join(struct process_group *group, int end)
{
    const struct reduce join = {.what = REDUCE_JOIN};
    group->asked[end] = true;
    reduce_send(group, end, &join);
}

/* Blocks take turns, and rounds of few do not all begin with the same server. */
static int server_of(const struct process_group *group, const struct collective_round *m,
                     uint64_t number)
{
    uint64_t n = (uint64_t)served_count(group);
    return group->interface.size + (int)((hash_text(m->name) % n + number) % n);
}

/* A member alone has nobody to add to. */
void served_settle(const struct process_group *group, struct collective_round *m)
{
    for (size_t i = 0; i < m->n_blocks && m->by_servers && m->n_members > 1; i++)
        if (!m->blocks[i].is_scheduled && collective_adds(m->kinds[m->blocks[i].value]))
            m->blocks[i].owner = server_of(group, m, i);
}

int served_relay(const struct process_group *group, const struct collective_round *m,
                 uint64_t number)
{
    return m->by_servers && m->n_members >= RELAY_MEMBERS_MIN ? server_of(group, m, number) : 0;
}

void served_send(struct process_group *group, const struct collective_round *m,
                 const struct block *block, const struct tensor *piece)
{
    const struct reduce reduce = {.what = block->relay ? REDUCE_RELAY : REDUCE_PART,
                                  .round = m,
                                  .index = block->index,
                                  .tensors = piece,
                                  .n = 1,
                                  .served = block};
    reduce_send(group, block->relay ? block->relay : block->owner, &reduce);
}

/* No sum comes before the member's own part has gone. */
bool served_awaits(const struct collective_round *m, const struct block *block, int end)
{
    return m->settled && !block->done && end == (block->relay ? block->relay : block->owner) &&
           (block->relay || block->begun);
}

void served_pack(const struct process_group *group, msgpack_packer *packer,
                 const struct collective_round *m, const struct block *block)
{
    pack_key(packer, "members");
    msgpack_pack_array(packer, (size_t)m->n_members);
    for (int i = 0; i < m->n_members; i++)
        pack_text(packer, group->tasks[m->members[i]]);
    pack_key(packer, "mean");
    if (collective_divides(m->kinds[block->value]))
        msgpack_pack_true(packer);
    else
        msgpack_pack_false(packer);
    pack_key(packer, "priority");
    msgpack_pack_int(packer, m->priority);
}
