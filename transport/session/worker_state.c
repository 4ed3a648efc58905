/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of which each worker has its own, or a part (graph/worker_attr.h), if workers go on
 * together: how they are saved in checkpoints, which the first worker writes, restored, and handed
 * over when a worker's data end and others go on.
 *
 * After each step all workers tell each other whether one is about to save. If so, all give their
 * values to the first worker, which keeps them beside its own (resource/worker_state.h): a
 * checkpoint has the values of one moment. When all end, they do so once more.
 *
 * A restore distributes the values to the workers that there are then, as the attribute says: to
 * each worker its own, by rank, if all are there. Partitioned rows are divided again among all; a
 * worker without data gives its part after the first step.
 *
 * Of a variable of which each worker has a part along an axis, checkpoints contain the whole, so
 * that one process, or another number of workers, can continue from them. Before a checkpoint all
 * give their parts to the worker that writes it; its variable is the whole until the checkpoint is
 * made. A restored value is whole in every worker, which then keeps its part.
 *
 * If some workers have more data, these run a step without the others. After that step the leaving
 * workers meet them once more and give their values. A sum goes to the first worker that stays,
 * which adds it to its own; of partitioned rows each worker that stays gets its new part. All of
 * this is done by rank, and after the same step whenever the news arrives, so a run has the same
 * bits each time. A worker that dies meanwhile is lost, and all end.
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
#include "graph/infer.h"
#include "graph/worker_attr.h"
#include "resource/worker_state.h"
#include "tensor/box.h"
#include "transport/collective/collective.h"
#include "transport/session/worker_private.h"

bool worker_has_own(const struct worker *worker, const struct node *node)
{
    return node_is(node, "Variable") && node_attr(node, PER_WORKER) &&
           worker_task_of(worker, node) < 0;
}

bool worker_has_part(const struct worker *worker, const struct node *node)
{
    return node_is(node, "Variable") && node_attr(node, WORKER_PART_SHAPE) &&
           worker_task_of(worker, node) < 0;
}

/* Entries of those names may be a script's own, where workers take no mean. */
static int64_t find_average(const struct graph *graph)
{
    const struct entry *average = graph_entry(graph, WORKER_AVERAGE);
    struct edge first = average ? average->edges[0] : EDGE_NONE;
    const struct tensor *every =
        first.slot != CONTROL_SLOT && edge_exists(first) ? graph_constant(graph, first) : NULL;
    return every && every->type == INT64 && !every->shape.rank ? tensor_get_int64(every, 0) : 0;
}

void worker_find_state(struct worker *worker)
{
    const struct graph *graph = worker->options.graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        if (worker_has_own(worker, node))
            vec_push(&worker->own, node);
        if (worker_has_part(worker, node))
            vec_push(&worker->parts, node);
        if (node_is(node, "Variable") && node_attr(node, WORKER_ASKED))
            worker->asked = node;
    }
    worker->version = graph_find(graph, WORKER_VERSION);
    worker->average_every = find_average(graph);
}

bool worker_shares_state(const struct worker *worker)
{
    return worker->collective && (worker->own.n || worker->parts.n);
}

static struct worker_state *state_of(struct worker *worker, const struct node *node)
{
    struct variable like = variable_of_node(node, NULL);
    return resource_get(worker->variables, &worker_state_kind, like.container, like.name);
}

/* ---- giving values ---- */

/* Returns the shape of n stacked values of the node's variable. */
static struct shape stack_shape(const struct node *node, int64_t n)
{
    struct shape shape = node->outputs[0].shape;
    for (int i = shape.rank; i > 0; i--)
        shape.dims[i] = shape.dims[i - 1];
    shape.dims[0] = n;
    shape.rank++;
    return shape;
}

/* Keeps the other workers' values on the worker that is about to save: `all` has the values of all,
 * its own first, and `ranks` their ranks. */
static void keep_others(struct worker *worker, const struct node *node, const struct tensor *ranks,
                        const struct tensor *all)
{
    struct tensor others = *all;
    int64_t n = all->shape.dims[0];
    others.shape.dims[0] = n - 1;
    others.data = (char *)all->data + tensor_bytes(all) / (size_t)n;
    if (n > 1 || tensor_get_int64(ranks, 0) > 0)
        worker_state_set(state_of(worker, node), ranks, &others);
    else
        worker_state_clear(state_of(worker, node));
}

/* As worker_take; ERR_DATA if the variable has no value. */
static int take_own(struct worker *worker, struct saved_variable *saved, struct error *err)
{
    int code = worker_take(worker, saved, err);
    if (!code && saved->value.type == DTYPE_INVALID)
        code = error_set(err, ERR_DATA, "%s has no value", node_text(saved->node));
    return code;
}

/* Sends the value to the call's root. With `ranks`, of all that send, this worker is the root, and
 * keeps the values of others beside its own. */
static int give_value(struct worker *worker, const struct saved_variable *saved,
                      const struct collective_call *call, const struct tensor *ranks,
                      struct error *err)
{
    struct tensor own = saved->value, all = TENSOR_INIT;
    own.shape = stack_shape(saved->node, 1);
    int code = worker_exchange(worker, *call, &own, NULL, &all, err);
    if (!code && ranks)
        keep_others(worker, saved->node, ranks, &all);
    tensor_release(&all);
    return code;
}

/* ---- parts along an axis ---- */

static const struct shape *whole_shape(const struct node *node)
{
    return node_attr(node, WORKER_PART_SHAPE)->shape;
}

static struct box whole_box(const struct node *node)
{
    const struct shape *shape = whole_shape(node);
    struct box box = {.rank = shape->rank};
    memcpy(box.size, shape->dims, (size_t)shape->rank * sizeof *box.size);
    return box;
}

/* Returns the part of worker k of n. */
static struct box part_box(const struct node *node, int64_t k, int64_t n)
{
    struct box box = whole_box(node);
    int axis = (int)node_int(node, WORKER_PART_AXIS);
    struct row_range part = collective_part(box.size[axis], n, k);
    box.first[axis] = part.first;
    box.size[axis] = part.count;
    return box;
}

/* Sets the variable to a value of another shape than it has. */
static int put_anew(struct worker *worker, struct saved_variable *saved, struct error *err)
{
    const struct variable like = variable_of_node(saved->node, NULL);
    struct variable *variable = variable_store_find(worker->variables, like.container, like.name);
    if (variable) {
        variable_lock_wait(variable, true);
        variable_clear(variable);
        variable_unlock(variable, true);
    }
    return worker_put(worker, saved, err);
}

static int keep_part(struct worker *worker, struct saved_variable *whole, struct error *err)
{
    const struct collective *collective = worker->collective;
    const struct node *node = whole->node;
    struct box all = whole_box(node);
    struct box part = part_box(node, collective->rank, collective->size);
    struct saved_variable own = {.node = node, .updates = whole->updates};
    struct shape shape = shape_of(part.rank, part.size);
    int code = tensor_alloc(&own.value, node->outputs[0].type, &shape, err);
    if (!code) {
        box_copy(own.value.data, &part, whole->value.data, &all, dtype_bytes(own.value.type));
        code = put_anew(worker, &own, err);
    }
    tensor_release(&own.value);
    return code;
}

int worker_cut_parts(struct worker *worker, struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && worker->collective && i < worker->parts.n; i++) {
        struct saved_variable saved = {.node = worker->parts.items[i]};
        code = worker_take(worker, &saved, err);
        if (!code && saved.value.type != DTYPE_INVALID &&
            shape_equal(&saved.value.shape, whole_shape(saved.node)))
            code = keep_part(worker, &saved, err);
        tensor_release(&saved.value);
    }
    return code;
}

/* Sets the variable to the whole, from all workers' parts, one after the other. */
static int put_whole(struct worker *worker, const struct node *node, int64_t updates,
                     const struct tensor *parts, struct error *err)
{
    struct saved_variable whole = {.node = node, .updates = updates};
    struct box all = whole_box(node);
    size_t element = dtype_bytes(node->outputs[0].type);
    const char *from = parts->data;
    int64_t n = worker->collective->size;
    if (tensor_count(parts) != shape_count(whole_shape(node)))
        return error_set(err, ERR_UNAVAILABLE, "%s: a worker that had a part of it has left",
                         node_text(node));
    int code = tensor_alloc(&whole.value, node->outputs[0].type, whole_shape(node), err);
    for (int64_t k = 0; !code && k < n; k++) {
        struct box part = part_box(node, k, n);
        box_copy(whole.value.data, &all, from, &part, element);
        from += (size_t)box_count(&part) * element;
    }
    if (!code)
        code = put_anew(worker, &whole, err);
    tensor_release(&whole.value);
    return code;
}

/* Gives a part to rank `root`, which then has the whole. */
static int join_part(struct worker *worker, int64_t step, uint64_t which, int root,
                     struct error *err)
{
    const struct collective_call call = {
        .key = {"=part", step, which}, .has_root = true, .root = root};
    struct saved_variable saved = {.node = worker->parts.items[which]};
    struct tensor own, all = TENSOR_INIT;
    int code = take_own(worker, &saved, err);
    if (!code) {
        own = saved.value;
        own.shape = shape_vector(tensor_count(&saved.value));
        code = worker_exchange(worker, call, &own, NULL, &all, err);
    }
    if (!code && worker_writes(worker))
        code = put_whole(worker, saved.node, saved.updates, &all, err);
    tensor_release(&all);
    tensor_release(&saved.value);
    return code;
}

/* ---- values kept for leaving workers ---- */

int worker_keep_before(struct worker *worker, struct error *err)
{
    for (size_t i = worker->before.n; i < worker->own.n && !err->code; i++) {
        struct saved_variable saved = {.node = worker->own.items[i]};
        if (!take_own(worker, &saved, err))
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

enum { SAYS_LEAVE = 1, SAYS_SAVE = 2 };

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
        if (row[1] & SAYS_SAVE)
            parting->saver = row[0];
        if (row[1] & SAYS_LEAVE)
            continue;
        if (!parting->n_stay)
            parting->first = row[0];
        if (row[0] == rank)
            parting->own = parting->n_stay;
        parting->n_stay++;
    }
    return 0;
}

/* All workers say whether they leave, and whether they are about to save. The caller releases the
 * `ranks` of all, unless *met is false. */
static int meet(struct worker *worker, const struct worker_row *row, bool *met,
                struct worker_departure *all, struct error *err)
{
    struct tensor members = TENSOR_INIT;
    int code = worker_gather(worker, row, met, &members, err);
    if (!code && (!met || *met))
        code = read_members(&members, worker->collective->rank, all, err);
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
    own.shape = stack_shape(saved->node, takes || parting->own < 0);
    int code = worker_exchange(worker, call, &own, NULL, &all, err);
    if (!code && takes)
        code = put_sum(worker, saved, &all, err);
    tensor_release(&all);
    return code;
}

/* Sets the variable to zeros, except for that part of the rows. */
static int put_rows(struct worker *worker, const struct saved_variable *saved,
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
        code = put_rows(worker, saved, part, &rows, err);
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
    int code = take_own(worker, &saved, err);
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
    else if (take_own(worker, &saved, err))
        return err->code;
    int code = give_value(worker, &saved, &call, takes ? &parting->ranks : NULL, err);
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
    const int64_t own[] = {worker->collective->rank, says};
    const struct worker_row row = {{"=leave", parting->step, 0}, own, 2, .with_leaving = true};
    int code = meet(worker, &row, NULL, parting, err);
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

/* Called after the last step, `step`, if others go on: tells them, and waits until they have run
 * the next step. If it `saves`, their values before that are kept beside its own. */
static int leave_others(struct worker *worker, int64_t step, bool saves, struct error *err)
{
    worker->parting = (struct worker_departure){.step = worker_average_step(worker, step + 1)};
    collective_links_announce_leave(worker->collective);
    int64_t says = SAYS_LEAVE | (saves ? SAYS_SAVE : 0);
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

/* Called after a step with that many members: finds whether some have left before it, and takes
 * what they give. */
static int take_given(struct worker *worker, int64_t step, int64_t n_members, bool *left,
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

/* ---- which workers take part, and whether one saves ---- */

static int give_all(struct worker *worker, int64_t step, const struct tensor *ranks,
                    struct error *err)
{
    const int root = (int)tensor_get_int64(ranks, 0);
    int code = 0;
    for (size_t i = 0; !code && i < worker->own.n; i++) {
        const struct collective_call call = {
            .key = {"=state", step, i}, .has_root = true, .root = root};
        struct saved_variable saved = {.node = worker->own.items[i]};
        code = take_own(worker, &saved, err);
        if (!code)
            code = give_value(worker, &saved, &call, worker_writes(worker) ? ranks : NULL, err);
        tensor_release(&saved.value);
    }
    for (size_t i = 0; !code && i < worker->parts.n; i++)
        code = join_part(worker, step, i, root, err);
    return code;
}

/* `met`: for the meeting at the end, as of collective_links_run. */
static int meet_all(struct worker *worker, bool saves, bool *met, struct worker_departure *all,
                    struct error *err)
{
    const int64_t own[] = {worker->collective->rank, saves ? SAYS_SAVE : 0};
    const struct worker_row row = {{met ? "=end" : "=saves", all->step, (uint64_t)worker->n_left},
                                   own,
                                   2,
                                   .with_leaving = false};
    return meet(worker, &row, met, all, err);
}

int worker_gather_state(struct worker *worker, int64_t step, bool saves, bool *again,
                        struct error *err)
{
    struct worker_departure all = {.step = step};
    int code = meet_all(worker, saves, NULL, &all, err);
    if (!code)
        code = take_given(worker, step, all.n, again, err);
    if (!code && !*again && all.saver >= 0)
        code = give_all(worker, step, &all.ranks, err);
    tensor_release(&all.ranks);
    return code;
}

int worker_gather_last(struct worker *worker, int64_t step, bool saves, struct error *err)
{
    struct worker_departure all = {.step = step};
    bool met = true;
    int code = meet_all(worker, true, &met, &all, err);
    if (!code && met)
        code = give_all(worker, step, &all.ranks, err);
    else if (!code && worker->parts.n)
        code = error_set(err, ERR_UNAVAILABLE, "%s: others go on, and need its part of %s",
                         worker->member.task, node_text(worker->parts.items[0]));
    else
        for (size_t i = 0; i < worker->own.n; i++)
            worker_state_clear(state_of(worker, worker->own.items[i]));
    if (!code && !met)
        code = leave_others(worker, step, saves, err);
    tensor_release(&all.ranks);
    return code;
}

/* ---- restoring values ---- */

/* Saved values: that of one worker, and those of others, by rank. */
struct saved_state {
    struct saved_variable saved;
    struct tensor ranks, others;
    bool has_others;
};

static int check_saved(const struct saved_state *state, struct error *err)
{
    const struct node *node = state->saved.node;
    struct shape shape = stack_shape(node, state->others.shape.dims[0]);
    if (state->has_others &&
        (state->others.type != node->outputs[0].type || !shape_equal(&shape, &state->others.shape)))
        return error_set(err, ERR_DATA, "%s: other workers have %s, not %s", node_text(node),
                         shape_text_typed(state->others.type, &state->others.shape),
                         shape_text_typed(node->outputs[0].type, &shape));
    return 0;
}

/* Makes value k of the stack of n: the sum, by rank, of the values of workers k, k + n, ...; for
 * partitioned rows, part k of the sum of all workers' values. */
static void sum_saved(const struct saved_state *state, int64_t k, int64_t n, struct tensor *stack)
{
    const struct tensor *value = &state->saved.value;
    const char *how = node_string(state->saved.node, PER_WORKER);
    bool has_parts = !strcmp(how, PER_WORKER_ROWS);
    size_t bytes = tensor_bytes(value), n_saved = 1, n_values = 0;
    char *to = (char *)stack->data + (size_t)k * bytes;
    struct row_range range = {0, tensor_count(value)}; /* of elements */
    if (!strcmp(how, PER_WORKER_SAME)) {
        memcpy(to, value->data, bytes);
        return;
    }
    if (has_parts) {
        int64_t rows = value->shape.dims[0], row = rows ? range.count / rows : 0;
        range = collective_part(rows, n, k);
        range = (struct row_range){range.first * row, range.count * row};
    }
    size_t offset = (size_t)range.first * dtype_bytes(value->type);
    if (state->has_others)
        n_saved += (size_t)state->others.shape.dims[0];
    const void **values = mem_array(n_saved, sizeof *values);
    for (size_t i = 0; i < n_saved; i++) {
        const char *saved = i ? (char *)state->others.data + (i - 1) * bytes : value->data;
        int64_t rank = state->has_others ? tensor_get_int64(&state->ranks, (int64_t)i) : 0;
        if (has_parts || rank % n == k)
            values[n_values++] = saved + offset;
    }
    const struct collective_terms terms = {value->type, values, (int)n_values, 0};
    if (n_values)
        collective_sum(&terms, to + offset, NULL, range.count);
    mem_free(values);
}

/* Makes the values of n workers; zeros where nothing was saved. */
static int stack_saved(struct worker *worker, const struct node *node, int64_t n,
                       struct tensor *stack, int64_t *updates, struct error *err)
{
    struct saved_state state = {.saved = {.node = node}};
    struct shape shape = stack_shape(node, n);
    int code = worker_take(worker, &state.saved, err);
    if (!code)
        code = tensor_alloc(stack, node->outputs[0].type, &shape, err);
    if (!code)
        memset(stack->data, 0, tensor_bytes(stack));
    if (!code && state.saved.value.type != DTYPE_INVALID) {
        state.has_others = worker_state_get(state_of(worker, node), &state.ranks, &state.others);
        code = check_saved(&state, err);
        for (int64_t k = 0; !code && k < n; k++)
            sum_saved(&state, k, n, stack);
    }
    *updates = state.saved.updates;
    worker_state_clear(state_of(worker, node));
    tensor_release(&state.saved.value);
    tensor_release(&state.ranks);
    tensor_release(&state.others);
    return code;
}

static int take_state(struct worker *worker, const struct node *node, uint64_t which,
                      struct error *err)
{
    const struct collective *collective = worker->collective;
    bool is_first = !collective || !collective->rank;
    const struct collective_call call = {.key = {"=state", 0, which},
                                         .kinds = &(enum collective_kind){COLLECTIVE_PART},
                                         .has_root = true};
    struct shape none = stack_shape(node, 0);
    struct tensor own = TENSOR_INIT, all = TENSOR_INIT;
    int64_t updates = 0;
    int code =
        is_first ? stack_saved(worker, node, collective ? collective->size : 1, &own, &updates, err)
                 : tensor_alloc(&own, node->outputs[0].type, &none, err);
    if (!code && collective)
        code = worker_exchange(worker, call, &own, NULL, &all, err);
    else if (!code)
        tensor_share(&all, &own);
    if (!code && all.shape.dims[0] != 1)
        code = error_set(err, ERR_UNAVAILABLE, "a worker has left before the first step");
    if (!code) {
        struct saved_variable saved = {
            .node = node,
            .updates = updates,
            .value = tensor_borrow(all.type, &node->outputs[0].shape, all.data)};
        code = worker_put(worker, &saved, err);
    }
    tensor_release(&own);
    tensor_release(&all);
    return code;
}

int worker_take_states(struct worker *worker, struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && i < worker->own.n; i++)
        code = take_state(worker, worker->own.items[i], i, err);
    return code;
}
