/* SPDX-License-Identifier: Apache-2.0
 *
 * Meetings: who has come, who takes part, and how large values are cut into blocks.
 */
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "transport/collective/collective_private.h"
#include "transport/value/segment.h"

/* ---- the list ---- */

struct collective_round *round_find(struct process_group *group, const struct collective_key *key)
{
    struct collective_round *m = group->rounds;
    while (m && (m->key.step != key->step || m->key.iteration != key->iteration ||
                 strcmp(m->name, key->name) != 0))
        m = m->next;
    return m;
}

struct collective_round *round_get(struct process_group *group, const struct collective_key *key)
{
    struct collective_round *m = round_find(group, key);
    if (m)
        return m;
    m = mem_alloc(sizeof *m);
    m->holders = 1;
    m->name = mem_strdup(key->name);
    m->key = *key;
    m->key.name = m->name;
    m->brought = mem_array((size_t)group->interface.size, sizeof *m->brought);
    m->next = group->rounds;
    group->rounds = m;
    group->n_uncalled++;
    return m;
}

static void release(struct tensor *tensors, int n)
{
    for (int i = 0; tensors && i < n; i++)
        tensor_release(&tensors[i]);
    mem_free(tensors);
}

static void round_free(const struct process_group *group, struct collective_round *m)
{
    for (size_t i = 0; i < m->n_blocks; i++)
        release(m->blocks[i].parts, group->interface.size);
    direct_give_back(group, m);
    for (int k = 0; k < group->interface.size; k++) {
        release(m->brought[k].values, m->brought[k].n);
        mem_free(m->brought[k].offers);
        mem_free(m->brought[k].rows);
    }
    for (size_t i = 0; i < m->n_late; i++)
        if (m->late[i].parts)
            release(m->late[i].parts, group->interface.size);
    rows_free(m);
    scheduled_free(m);
    release(m->own, m->n);
    release(m->results, m->n);
    mem_free(m->blocks);
    mem_free(m->brought);
    mem_free(m->members);
    mem_free(m->direct);
    mem_free(m->kinds);
    mem_free(m->name);
    mem_free(m);
}

/* The caller may be the one holder of its results: all else that has them lets go before. */
static void answer(const struct process_group *group, struct collective_round *m)
{
    direct_give_back(group, m);
    release(m->own, m->n);
    m->own = NULL;
    const struct collective_results results = {.values = m->results, .members = m->n_members};
    m->answered->done(m->answered, &results, NULL);
}

void round_drop(struct process_group *group, struct collective_round *round)
{
    pthread_mutex_lock(&group->lock);
    bool last = !--round->holders;
    pthread_mutex_unlock(&group->lock);
    if (last && round->answered)
        answer(group, round);
    if (last)
        round_free(group, round);
}

struct collective_waiter *round_end(struct process_group *group, struct collective_round *round)
{
    struct collective_waiter *waiter = round->waiter;
    struct collective_round **at = &group->rounds;
    if (round->over)
        return NULL;
    while (*at != round)
        at = &(*at)->next;
    *at = round->next;
    group->n_uncalled -= !round->called;
    round->holders--; /* the list's; the caller has another */
    round->waiter = NULL;
    round->over = true;
    return waiter;
}

/* ---- the call ---- */

bool round_is_small(const struct collective_round *round, int value)
{
    const struct tensor *t = &round->own[value];
    enum collective_kind kind = round->kinds[value];
    return t->type == STRING ||
           (collective_adds(kind) &&
            (!collective_can_add(kind, t->type) || (int64_t)tensor_bytes(t) <= SMALL_BYTES));
}

struct block *round_block(const struct collective_round *m, uint64_t index)
{
    size_t from = 0, to = m->n_late;
    if (index < m->n_blocks)
        return &m->blocks[index];
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (m->late[middle].index < index)
            from = middle + 1;
        else
            to = middle;
    }
    return from < m->n_late && m->late[from].index == index ? &m->late[from] : NULL;
}

/* Blocks of a value: one for each owner; several where they are not too small, so that sums of
 * some are on their way while parts of others are. */
static int64_t block_elements(int n, const struct tensor *t)
{
    int64_t bytes = (int64_t)dtype_bytes(t->type), each = (tensor_count(t) + n - 1) / n;
    int64_t least = BLOCK_LEAST_BYTES / bytes, most = BLOCK_BYTES / bytes;
    if (each > least)
        each = each / BLOCKS_EACH > least ? each / BLOCKS_EACH : least;
    each = (each + MEM_ALIGNMENT - 1) / MEM_ALIGNMENT * MEM_ALIGNMENT;
    return each < most ? each : most;
}

static void cut(const struct process_group *group, struct collective_round *m)
{
    int n_owners = m->by_servers ? served_count(group)
                                 : collective_group_size(&m->group, group->interface.size);
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        n = 0;
        for (int v = 0; v < m->n; v++) {
            int64_t count = tensor_count(&m->own[v]), step;
            if (m->routed[v].is_routed || round_is_small(m, v) || !count)
                continue;
            if (scheduled_value(m, v)) {
                n += scheduled_cut(group, m, v, pass ? m->blocks + n : NULL);
                continue;
            }
            step = block_elements(n_owners, &m->own[v]);
            for (int64_t first = 0; first < count; first += step, n++)
                if (pass)
                    m->blocks[n] =
                        (struct block){.value = v,
                                       .first = first,
                                       .at = first,
                                       .to = TO_ALL,
                                       .count = count - first < step ? count - first : step};
        }
        if (!pass)
            m->blocks = mem_array(n + 1, sizeof *m->blocks);
    }
    for (size_t i = 0; i < n; i++) {
        m->blocks[i].index = i;
        m->blocks[i].parts = mem_array((size_t)group->interface.size, sizeof(struct tensor));
    }
    m->n_blocks = m->n_missing = n;
}

static uint64_t sign(const struct collective_round *m, int size)
{
    const int64_t call[7] = {m->n,         m->has_root,   m->has_root ? m->root : 0,
                             m->wants,     m->group.size, m->group.stride,
                             m->by_servers};
    uint64_t hash = hash_bytes(call, sizeof call, (uint64_t)m->schedule.kind);
    if (m->schedule.hosts)
        hash = hash_bytes(m->schedule.hosts, (size_t)size * sizeof *m->schedule.hosts, hash);
    for (int i = 0; i < m->n; i++) {
        const struct tensor *t = &m->own[i];
        bool rows = collective_gathers(m->kinds[i]) && t->shape.rank > 0;
        int64_t head[3] = {m->kinds[i], t->type, t->shape.rank};
        hash = hash_bytes(head, sizeof head, hash);
        hash = hash_bytes(t->shape.dims + rows,
                          (size_t)(t->shape.rank - rows) * sizeof *t->shape.dims, hash);
    }
    return hash;
}

/* Memory that others can read, of a value that is in such memory. False: there is none. */
static bool alloc_direct(struct process_group *group, const struct tensor *own,
                         struct tensor *result)
{
    return segment_has(own) && segment_suits(own->type, tensor_bytes(own)) &&
           segments_alloc(hub_segments(group->hub), result, own->type, &own->shape);
}

/* Memory for a value's sum: the value's own where only the call has it, which a member needs no
 * more when the sum comes. */
static int make_result(struct process_group *group, const struct collective_call *call, int value,
                       struct collective_round *m, struct error *err)
{
    const struct tensor *own = &m->own[value];
    bool alone = atomic_load(&own->buffer->holders) == 2 && /* the caller, and the round */
                 (!segment_has(own) || segment_is_own(own));
    if (call->yields && alone)
        tensor_share(&m->results[value], own);
    else if (!alloc_direct(group, own, &m->results[value]))
        return recycle_alloc(group->memory, &m->results[value], own, tensor_bytes(own), err);
    return 0;
}

bool round_lacks(const struct process_group *group, const struct collective_round *m, int rank)
{
    return group->left[rank] || (group->leaving[rank] && !m->with_leaving);
}

bool round_meets(const struct process_group *group, const struct collective_round *m, int rank)
{
    return collective_group_has(&m->group, group->interface.rank, rank);
}

void round_decline(struct process_group *group, struct collective_round *m,
                   const struct collective_group *members)
{
    BUG_ON(m->called);
    m->called = m->declined = true;
    group->n_uncalled--;
    m->group = *members;
}

int round_call(struct process_group *group, struct collective_round *m,
               const struct collective_call *call, struct error *err)
{
    int code = 0;
    BUG_ON(m->called);
    m->called = true;
    group->n_uncalled--;
    m->n = call->n;
    m->priority = call->priority;
    m->group = call->group;
    m->schedule = call->schedule;
    m->with_leaving = call->with_leaving;
    m->by_servers = call->by_servers && served_count(group) > 0;
    m->kinds = mem_array((size_t)call->n + 1, sizeof *m->kinds);
    m->own = mem_array((size_t)call->n + 1, sizeof *m->own);
    m->results = mem_array((size_t)call->n + 1, sizeof *m->results);
    for (int i = 0; i < call->n; i++) {
        m->kinds[i] = call->kinds[i];
        tensor_share(&m->own[i], &call->values[i]);
    }
    rows_call(group, m, call);
    m->signature = sign(m, group->interface.size);
    cut(group, m);
    for (int i = 0; !code && i < m->n; i++)
        if (!m->routed[i].is_routed && !round_is_small(m, i))
            code = make_result(group, call, i, m, err);
    direct_choose(group, m);
    return code;
}

/* ---- who takes part ---- */

/* Of a broadcast: who has the value. One that takes no part is found out before it is to give. */
static int giver(const struct process_group *group, const struct collective_round *m)
{
    bool is_rank = m->has_root && m->root >= 0 && m->root < group->interface.size;
    return is_rank ? (int)m->root : m->members[0];
}

/* Parts for all owners: were they for some, the adapters of the others would have nothing to do. */
static int64_t window_of(int n)
{
    int64_t all = WINDOW_BLOCKS * n * BLOCK_BYTES;
    return all > WINDOW_BYTES ? all : WINDOW_BYTES;
}

bool round_settle(struct process_group *group, struct collective_round *m)
{
    int size = group->interface.size, rank = group->interface.rank;
    if (!m->announced || m->settled || m->over)
        return false;
    for (int k = 0; k < size; k++)
        if (k != rank && !m->brought[k].here && !round_lacks(group, m, k) &&
            round_meets(group, m, k))
            return false;
    m->members = mem_array((size_t)size, sizeof *m->members);
    for (int k = 0; k < size; k++)
        if (k == rank || (m->brought[k].here && round_meets(group, m, k)))
            m->members[m->n_members++] = k;
    for (size_t i = 0; i < m->n_blocks; i++)
        m->blocks[i].owner = m->kinds[m->blocks[i].value] == COLLECTIVE_FIRST
                                 ? giver(group, m)
                                 : m->members[i % (size_t)m->n_members];
    int n_owners = m->by_servers ? served_count(group) : 0;
    m->window = window_of(n_owners > m->n_members ? n_owners : m->n_members);
    served_settle(group, m);
    scheduled_settle(group, m);
    for (size_t i = 0; i < m->n_blocks; i++)
        if (block_is_scheduled(m, &m->blocks[i]))
            m->blocks[i].owner = -1;
    if (collective_group_size(&m->group, size) == size && !m->with_leaving)
        group->first = m->members[0];
    m->settled = true;
    return true;
}

static void print_values(struct str *out, const struct collective_round *m)
{
    for (int i = 0; i < m->n && i < 8; i++) {
        str_printf(out, "%s", i ? ", " : "");
        shape_print_typed(out, m->own[i].type, &m->own[i].shape);
    }
    if (m->n > 8)
        str_printf(out, " and %d more", m->n - 8);
}

/* Who brings nothing, or comes from another group. */
static int check_members(const struct process_group *group, const struct collective_round *m,
                         struct error *err)
{
    for (int k = 0; k < group->interface.size; k++) {
        if (m->brought[k].here && !round_meets(group, m, k))
            return error_set(err, ERR_DATA, "'%s': %s is of another group than %s", m->name,
                             group->tasks[k], group->tasks[group->interface.rank]);
        if (m->brought[k].here && m->brought[k].nothing)
            return error_set(err, ERR_DATA, "'%s': %s brings nothing: its input is dead", m->name,
                             group->tasks[k]);
    }
    return 0;
}

int round_check(const struct process_group *group, const struct collective_round *m,
                struct error *err)
{
    bool has_root = !m->has_root;
    if (check_members(group, m, err))
        return err->code;
    for (int i = 0; i < m->n_members; i++) {
        int k = m->members[i];
        has_root |= k == m->root;
        struct str values = STR_INIT;
        if (k == group->interface.rank || m->brought[k].signature == m->signature)
            continue;
        print_values(&values, m);
        error_set(err, ERR_DATA, "'%s': %s brings other values than %s, which has %s", m->name,
                  group->tasks[k], group->tasks[group->interface.rank], str_text(&values));
        str_release(&values);
        return err->code;
    }
    return has_root ? 0
                    : error_set(err, ERR_DATA, "'%s': the root, member %lld, takes no part",
                                m->name, (long long)m->root);
}
