/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of the variables of which each worker has its own (graph/worker_attr.h) when a
 * worker's data end and others go on.
 *
 * The others run a step without it. After that one those who leave meet them once more, and give
 * what they have: a sum to the first of those who stay, who adds it to its own; of rows that are
 * parted each of those who stay gets its new part. All of this is by rank, and in that step
 * whenever the news comes, so a run has the same bits each time. Whoever dies meanwhile is a worker
 * that is lost: all end.
 */
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "exec/step/collective.h"
#include "graph/worker_attr.h"
#include "transport/collective/collective.h"
#include "transport/session/worker_private.h"

/* ---- who leaves ---- */

enum { MEMBER_RANK, MEMBER_LEAVES, MEMBER_COLUMNS };

struct parting {
    int64_t step;       /* the first one without those who leave */
    int64_t n, n_stay;  /* who meets, and how many of them stay: */
    int64_t first, own; /* rank of the first of these; this one's place among them, -1: it leaves */
};

static void read_members(const struct tensor *members, int rank, struct parting *parting)
{
    parting->n = members->shape.dims[0];
    parting->first = parting->own = -1;
    for (int64_t i = 0; i < parting->n; i++) {
        const int64_t *row = (const int64_t *)members->data + i * MEMBER_COLUMNS;
        if (row[MEMBER_LEAVES])
            continue;
        if (!parting->n_stay)
            parting->first = row[MEMBER_RANK];
        if (row[MEMBER_RANK] == rank)
            parting->own = parting->n_stay;
        parting->n_stay++;
    }
}

static int meet(struct worker *worker, bool leaves, struct parting *parting, struct error *err)
{
    const int rank = worker->collective->rank;
    const int64_t items[MEMBER_COLUMNS] = {rank, leaves};
    const struct worker_row row = {
        {"=leave", parting->step, 0}, items, MEMBER_COLUMNS, .with_leaving = true};
    struct tensor members = TENSOR_INIT;
    int code = worker_gather(worker, &row, NULL, &members, err);
    if (!code)
        read_members(&members, rank, parting);
    tensor_release(&members);
    return code;
}

/* ---- giving and taking ---- */

static int exchange(struct worker *worker, const struct parting *parting, uint64_t which,
                    struct collective_call *call, struct tensor *result, struct error *err)
{
    call->key = (struct collective_key){"=left", parting->step, which};
    call->n = 1;
    call->with_leaving = true;
    return collective_links_run(worker->collective, call, result, err);
}

/* The sum of a stack of values becomes the variable's. */
static int put_sum(struct worker *worker, struct saved_variable *saved, const struct tensor *all,
                   struct error *err)
{
    int64_t n = all->shape.dims[0];
    size_t bytes = tensor_bytes(&saved->value);
    const void **values = mem_array((size_t)n, sizeof *values);
    struct saved_variable sum = {.node = saved->node, .updates = saved->updates};
    for (int64_t i = 0; i < n; i++)
        values[i] = (const char *)all->data + (size_t)i * bytes;
    const struct collective_terms terms = {all->type, values, (int)n, 0};
    int code = tensor_alloc(&sum.value, all->type, &saved->value.shape, err);
    if (!code) {
        collective_sum(&terms, sum.value.data, NULL, tensor_count(&sum.value));
        code = worker_put(worker, &sum, err);
    }
    tensor_release(&sum.value);
    mem_free(values);
    return code;
}

/* Those who leave bring a value, and so does the first who stays, who gets them all. */
static int give_sum(struct worker *worker, const struct parting *parting,
                    struct saved_variable *saved, uint64_t which, struct error *err)
{
    static const enum collective_kind kind = COLLECTIVE_ROWS;
    bool takes = worker->collective->rank == parting->first;
    struct tensor own = saved->value, all = TENSOR_INIT;
    own.shape = worker_stack_shape(saved->node, takes || parting->own < 0);
    struct collective_call rows = {
        .values = &own, .kinds = &kind, .has_root = true, .root = (int)parting->first};
    int code = exchange(worker, parting, which, &rows, &all, err);
    if (!code && takes)
        code = put_sum(worker, saved, &all, err);
    tensor_release(&all);
    return code;
}

/* Zeros, but for that part of the rows. */
static int put_part(struct worker *worker, const struct saved_variable *saved,
                    struct row_range part, const struct tensor *rows, struct error *err)
{
    struct saved_variable own = {.node = saved->node, .updates = saved->updates};
    int code = tensor_alloc(&own.value, rows->type, &saved->value.shape, err);
    if (!code) {
        size_t row = tensor_bytes(&own.value) / (size_t)own.value.shape.dims[0];
        memset(own.value.data, 0, tensor_bytes(&own.value));
        memcpy((char *)own.value.data + (size_t)part.first * row, rows->data, tensor_bytes(rows));
        code = worker_put(worker, &own, err);
    }
    tensor_release(&own.value);
    return code;
}

/* All bring what they have, and each of those who stay gets its part of the sum. */
static int give_rows(struct worker *worker, const struct parting *parting,
                     struct saved_variable *saved, uint64_t which, struct error *err)
{
    static const enum collective_kind kind = COLLECTIVE_SUM_PART;
    struct row_range part = {0, 0};
    struct tensor rows = TENSOR_INIT;
    if (parting->own >= 0)
        part = collective_part(saved->value.shape.dims[0], parting->n_stay, parting->own);
    struct collective_call sum = {.values = &saved->value, .kinds = &kind, .rows = &part.count};
    int code = exchange(worker, parting, which, &sum, &rows, err);
    if (!code && parting->own >= 0)
        code = put_part(worker, saved, part, &rows, err);
    tensor_release(&rows);
    return code;
}

static int give(struct worker *worker, const struct parting *parting, uint64_t which,
                struct error *err)
{
    struct saved_variable saved = {.node = worker->own.items[which]};
    const char *how = node_string(saved.node, PER_WORKER);
    if (!strcmp(how, PER_WORKER_SAME))
        return 0;
    int code = worker_take_value(worker, &saved, err);
    if (!code && !strcmp(how, PER_WORKER_ROWS))
        code = give_rows(worker, parting, &saved, which, err);
    else if (!code)
        code = give_sum(worker, parting, &saved, which, err);
    tensor_release(&saved.value);
    return code;
}

static int part(struct worker *worker, int64_t step, bool leaves, struct error *err)
{
    struct parting parting = {.step = step};
    int code = meet(worker, leaves, &parting, err);
    bool gives = parting.n_stay && parting.n_stay < parting.n;
    if (!code && gives && FAILPOINT("worker.part"))
        code = error_set(err, ERR_UNAVAILABLE, "failpoint worker.part");
    for (size_t i = 0; !code && gives && i < worker->own.n; i++)
        code = give(worker, &parting, i, err);
    return code;
}

int worker_give_state(struct worker *worker, int64_t step, struct error *err)
{
    if (!worker->gives)
        return 0;
    collective_links_announce_leave(worker->collective);
    return part(worker, step + 1, true, err) ? error_prefix(err, "%s: ", worker->member.task) : 0;
}

int worker_take_given(struct worker *worker, int64_t step, int64_t n_members, struct error *err)
{
    int64_t n_left = worker->collective->size - n_members;
    bool is_new = n_left > worker->n_left;
    worker->n_left = n_left;
    return is_new ? part(worker, step, false, err) : 0;
}
