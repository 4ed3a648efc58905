/* SPDX-License-Identifier: Apache-2.0
 *
 * What members contribute to a round: all that is small, how many rows they have, and where their
 * memory is. When the round is settled, what is small becomes results.
 */
#include "base/memory.h"
#include "transport/collective/collective_private.h"

void contribution_send(struct process_group *group, struct collective_round *r)
{
    struct tensor *small = mem_array((size_t)r->n + 1, sizeof *small);
    for (int rank = 0; rank < group->interface.size; rank++) {
        struct memory_offer *offers;
        int n = 0;
        if (rank == group->interface.rank || !round_meets(group, r, rank))
            continue;
        int n_offers = direct_offer(group, r, rank, &offers);
        for (int i = 0; i < r->n; i++) {
            const struct routed_value *routed = &r->routed[i];
            if (routed->is_routed && rows_are_small(r, i, routed->brought))
                small[n++] = rows_piece(group, r, rank, i);
            else if (!routed->is_routed && round_is_small(r, i))
                small[n++] = r->own[i];
        }
        const struct reduce bring = {.what = REDUCE_BRING,
                                     .round = r,
                                     .index = r->signature,
                                     .tensors = small,
                                     .n = n,
                                     .offers = offers,
                                     .n_offers = n_offers};
        reduce_send(group, rank, &bring);
        mem_free(offers);
    }
    mem_free(small);
}

int contribution_take(struct process_group *group, struct collective_round *r, int rank,
                      uint64_t signature, const struct record *record, struct error *err)
{
    struct round_contribution *c = &r->contributions[rank];
    if (c->here)
        return error_set(err, ERR_PROTOCOL, "comes to '%.200s' twice, or to too much", r->name);
    if (record_field(&record->header, "memory") && !group->ends[rank].view)
        return error_set(err, ERR_PROTOCOL, "offers memory where none is shared");
    if (!direct_read(record, c))
        return error_set(err, ERR_PROTOCOL, "offers memory and does not say which");
    if (!rows_read(record, c))
        return error_set(err, ERR_PROTOCOL, "says of '%.200s' how many rows it has, and how not",
                         r->name);
    c->here = true;
    c->nothing = record_field(&record->header, "nothing") != NULL;
    c->signature = signature;
    c->n = record->n_tensors;
    c->values = mem_array((size_t)record->n_tensors + 1, sizeof *c->values);
    for (int i = 0; i < record->n_tensors; i++)
        tensor_share(&c->values[i], &record->tensors[i].tensor);
    return 0;
}

void contribution_release(struct round_contribution *c)
{
    for (int i = 0; i < c->n; i++)
        tensor_release(&c->values[i]);
    mem_free(c->values);
    mem_free(c->offers);
    mem_free(c->rows);
}

/* What each member has contributed of value i, of whose tensors the next is at[]; NULL: nothing. */
static int find_values(const struct process_group *group, const struct collective_round *r, int i,
                       int *at, const struct tensor **values, struct error *err)
{
    for (int k = 0; k < r->n_members; k++) {
        const struct round_contribution *c = &r->contributions[r->members[k]];
        bool is_there = round_is_small(r, i);
        const int64_t *counts = NULL;
        values[k] = k == r->place ? &r->own[i] : NULL;
        if (k == r->place)
            continue;
        if (r->routed[i].is_routed) {
            if (rows_counts(group, r, r->members[k], i, &counts, err))
                return err->code;
            is_there = rows_are_small(r, i, counts[0]);
        }
        if (is_there && at[k] >= c->n)
            return error_set(err, ERR_PROTOCOL, "'%s': %s brings too little", r->name,
                             group->ends[r->members[k]].task);
        if (is_there)
            values[k] = &c->values[at[k]++];
    }
    return 0;
}

/* A value that does not go by rows: a sum, or what the first or the root has. */
static int combine_whole(const struct collective_round *r, int i,
                         const struct tensor *const *values, struct error *err)
{
    enum collective_kind kind = r->kinds[i];
    int n = r->n_members, root = 0;
    if (collective_check_value(kind, values[0], err))
        return err->code;
    for (int k = 1; k < n; k++)
        if (values[k]->type != values[0]->type ||
            !shape_equal(&values[0]->shape, &values[k]->shape))
            return error_set(err, ERR_DATA, "a member brings %s, another %s",
                             shape_text_typed(values[k]->type, &values[k]->shape),
                             shape_text_typed(values[0]->type, &values[0]->shape));
    for (int k = 0; k < n && r->has_root; k++)
        if (r->members[k] == r->root)
            root = k;
    if (kind == COLLECTIVE_FIRST)
        return tensor_copy(&r->results[i], values[root], err);
    if (tensor_alloc(&r->results[i], values[0]->type, &values[0]->shape, err))
        return err->code;
    const void **data = mem_array((size_t)n, sizeof *data);
    for (int k = 0; k < n; k++)
        data[k] = values[k]->data;
    const struct collective_terms terms = {values[0]->type, data, n,
                                           collective_divides(kind) ? n : 0};
    collective_sum(&terms, r->results[i].data, NULL, tensor_count(values[0]));
    mem_free(data);
    return 0;
}

int contributions_combine(struct process_group *group, struct collective_round *r,
                          struct error *err)
{
    const struct tensor **values = mem_array((size_t)r->n_members, sizeof *values);
    int *at = mem_array((size_t)r->n_members, sizeof *at), code = 0;
    for (int i = 0; !code && i < r->n; i++) {
        if (!r->routed[i].is_routed && !round_is_small(r, i))
            continue;
        code = find_values(group, r, i, at, values, err);
        if (!code && r->routed[i].is_routed)
            code = rows_take(group, r, i, values, err);
        else if (!code && combine_whole(r, i, values, err))
            code = error_prefix(err, "'%s': ", r->name);
    }
    if (!code && rows_cut(group, r, err))
        code = error_prefix(err, "'%s': ", r->name);
    mem_free(at);
    mem_free(values);
    return code;
}
