/* SPDX-License-Identifier: Apache-2.0
 *
 * The handover of the variables of which each worker has its own (graph/worker_attr.h), when a
 * worker's data end and others go on.
 *
 * The others run a step without it. After that step the leaving workers meet them once more and
 * give their values. A sum goes to the first worker that stays, which adds it to its own; of
 * partitioned rows each worker that stays gets its new part. All of this is done by rank, and after
 * the same step whenever the news arrives, so a run has the same bits each time. A worker that dies
 * meanwhile is lost, and all end.
 *
 * A leaving worker may save its last step, for which it needs the others' values of that moment.
 * They have begun the next step, but a worker's own variables do not change before all data that
 * the step exchanges have arrived, and without the news of the leave they do not arrive. So each
 * worker keeps its values when the news arrives, by reference-counted memory, and gives them at the
 * meeting.
 */
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "exec/step/collective.h"
#include "graph/worker_attr.h"
#include "transport/collective/collective.h"
#include "transport/session/worker_private.h"

/* ---- values kept for leaving workers ---- */

int worker_keep_before(struct worker *worker, struct error *err)
{
    for (size_t i = worker->before.n; i < worker->own.n && !err->code; i++) {
        struct saved_variable saved = {.node = worker->own.items[i]};
        if (!worker_take_value(worker, &saved, err))
            vec_push(&worker->before, saved);
    }
    return err->code;
}

void worker_hear_of_leaving(void *context)
{
    struct worker *worker = context;
    struct error err = ERROR_INIT;
    if (worker_react(&worker->state, WORKER_HEARS) == WORKER_KEEP &&
        worker_keep_before(worker, &err))
        collective_links_abort(worker->collective, &err);
}

/* ---- meeting ---- */

static int read_members(const struct tensor *members, int rank, struct worker_departure *parting,
                        struct error *err)
{
    parting->n = members->shape.dims[0];
    parting->first = parting->own = parting->saver = -1;
    const struct shape shape = shape_vector(parting->n);
    if (tensor_alloc(&parting->ranks, INT64, &shape, err))
        return err->code;
    for (int64_t i = 0; i < parting->n; i++) {
        const int64_t *row = (const int64_t *)members->data + 2 * i;
        tensor_set_int64(&parting->ranks, i, row[0]);
        if (row[1] & WORKER_SAYS_SAVE)
            parting->saver = row[0];
        if (row[1] & WORKER_SAYS_LEAVE)
            continue;
        if (!parting->n_stay)
            parting->first = row[0];
        if (row[0] == rank)
            parting->own = parting->n_stay;
        parting->n_stay++;
    }
    return 0;
}

int worker_meet(struct worker *worker, const struct worker_row *row, bool *met,
                struct worker_departure *parting, struct error *err)
{
    const int rank = worker->collective->rank;
    const int64_t items[] = {rank, row->says};
    struct worker_row own = *row;
    struct tensor members = TENSOR_INIT;
    own.items = items;
    own.n = 2;
    int code = worker_gather(worker, &own, met, &members, err);
    if (!code && (!met || *met))
        code = read_members(&members, rank, parting, err);
    tensor_release(&members);
    return code;
}

/* ---- giving and taking ---- */

/* Sets the variable to the sum of a stack of values. */
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

/* Workers that leave contribute a value, and so does the first that stays, which gets all of
 * them. */
static int give_sum(struct worker *worker, const struct worker_departure *parting,
                    struct saved_variable *saved, uint64_t which, struct error *err)
{
    const struct collective_call call = {.key = {"=left", parting->step, which},
                                         .has_root = true,
                                         .root = (int)parting->first,
                                         .with_leaving = true};
    bool takes = worker->collective->rank == parting->first;
    struct tensor own = saved->value, all = TENSOR_INIT;
    own.shape = worker_stack_shape(saved->node, takes || parting->own < 0);
    int code = worker_exchange(worker, call, &own, NULL, &all, err);
    if (!code && takes)
        code = put_sum(worker, saved, &all, err);
    tensor_release(&all);
    return code;
}

/* Sets the variable to zeros, except for that part of the rows. */
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

/* All contribute their values, and each worker that stays gets its part of the sum. */
static int give_rows(struct worker *worker, const struct worker_departure *parting,
                     struct saved_variable *saved, uint64_t which, struct error *err)
{
    struct row_range part = {0, 0};
    struct tensor rows = TENSOR_INIT;
    if (parting->own >= 0)
        part = collective_part(saved->value.shape.dims[0], parting->n_stay, parting->own);
    const struct collective_call call = {.key = {"=left", parting->step, which},
                                         .kinds = &(enum collective_kind){COLLECTIVE_SUM_PART},
                                         .rows = &part.count,
                                         .with_leaving = true};
    int code = worker_exchange(worker, call, &saved->value, NULL, &rows, err);
    if (!code && parting->own >= 0)
        code = put_part(worker, saved, part, &rows, err);
    tensor_release(&rows);
    return code;
}

static int hand_state(struct worker *worker, const struct worker_departure *parting, uint64_t which,
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

/* Gives this worker's values after the last step of the leaving workers to the one that saves. */
static int give_before(struct worker *worker, const struct worker_departure *parting,
                       uint64_t which, struct error *err)
{
    const struct collective_call call = {.key = {"=before", parting->step, which},
                                         .has_root = true,
                                         .root = (int)parting->saver,
                                         .with_leaving = true};
    bool takes = worker->collective->rank == parting->saver;
    struct saved_variable saved = {.node = worker->own.items[which]};
    if (parting->own >= 0)
        tensor_share(&saved.value, &worker->before.items[which].value);
    else if (worker_take_value(worker, &saved, err))
        return err->code;
    int code = worker_give_value(worker, &saved, &call, takes ? &parting->ranks : NULL, err);
    tensor_release(&saved.value);
    return code;
}

static bool somebody_gives(const struct worker_departure *parting)
{
    return parting->n_stay && parting->n_stay < parting->n;
}

static int begin_parting(struct worker *worker, int64_t says, struct worker_departure *parting,
                         struct error *err)
{
    const struct worker_row row = {
        {"=leave", parting->step, 0}, .says = says, .with_leaving = true};
    int code = worker_meet(worker, &row, NULL, parting, err);
    bool gives = !code && somebody_gives(parting);
    if (gives && FAILPOINT("worker.part"))
        code = error_set(err, ERR_UNAVAILABLE, "failpoint worker.part");
    gives &= parting->saver >= 0;
    for (size_t i = 0; !code && gives && i < worker->own.n; i++)
        code = give_before(worker, parting, i, err);
    saved_release(&worker->before);
    return code;
}

/* Waits for the saving worker, so that the checkpoint of the workers that stay is newer. */
static int wait_for_saver(struct worker *worker, const struct worker_departure *parting,
                          struct error *err)
{
    const int64_t nothing = 0;
    const struct worker_row row = {{"=saved", parting->step, 0}, &nothing, 1, .with_leaving = true};
    struct tensor all = TENSOR_INIT;
    int code = worker_gather(worker, &row, NULL, &all, err);
    tensor_release(&all);
    return code;
}

static int end_parting(struct worker *worker, const struct worker_departure *parting,
                       struct error *err)
{
    bool gives = somebody_gives(parting);
    int code = gives && parting->saver >= 0 ? wait_for_saver(worker, parting, err) : 0;
    for (size_t i = 0; !code && gives && i < worker->own.n; i++)
        code = hand_state(worker, parting, i, err);
    return code;
}

int worker_begin_parting(struct worker *worker, int64_t step, bool saves, struct error *err)
{
    worker->parting = (struct worker_departure){.step = worker_average_step(worker, step + 1)};
    collective_links_announce_leave(worker->collective);
    int64_t says = WORKER_SAYS_LEAVE | (saves ? WORKER_SAYS_SAVE : 0);
    int code = begin_parting(worker, says, &worker->parting, err);
    if (!code)
        worker_react(&worker->state, WORKER_PARTED);
    return code;
}

int worker_give_state(struct worker *worker, struct error *err)
{
    return end_parting(worker, &worker->parting, err)
               ? error_prefix(err, "%s: ", worker->member.task)
               : 0;
}

int worker_take_given(struct worker *worker, int64_t step, int64_t n_members, bool *left,
                      struct error *err)
{
    struct worker_departure parting = {.step = step};
    int64_t n_left = worker->collective->size - n_members;
    *left = n_left > worker->n_left;
    worker->n_left = n_left;
    int code = *left ? begin_parting(worker, 0, &parting, err) : 0;
    if (!code)
        code = end_parting(worker, &parting, err);
    tensor_release(&parting.ranks);
    return code;
}
