/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of which each worker has its own (graph/worker_attr.h), if workers go on together: how
 * they are saved in checkpoints, which the first worker writes, and restored.
 *
 * After each step all workers tell each other whether one is about to save. If so, all give their
 * values to the first worker, which keeps them beside its own (resource/worker_state.h): a
 * checkpoint has the values of one moment. When all end, they do so once more. If some workers have
 * more data and go on, a worker that ends and saves gets the values that the others had after its
 * last step, and those that go on get its own when it leaves (worker_leave.c).
 *
 * A restore distributes the values to the workers that there are then, as the attribute says: to
 * each worker its own, by rank, if all are there. Partitioned rows are divided again among all; a
 * worker without data gives its part after the first step.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/step/collective.h"
#include "graph/infer.h"
#include "graph/worker_attr.h"
#include "resource/worker_state.h"
#include "transport/session/worker_private.h"

bool worker_has_own(const struct worker *worker, const struct node *node)
{
    return node_is(node, "Variable") && node_attr(node, PER_WORKER) &&
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
    return resource_get(driver_session_variables(worker->session), &worker_state_kind,
                        like.container, like.name);
}

/* ---- giving values ---- */

/* Returns the shape of n stacked values of the node's variable. */
struct shape worker_stack_shape(const struct node *node, int64_t n)
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

int worker_take_value(struct worker *worker, struct saved_variable *saved, struct error *err)
{
    int code = worker_take(worker, saved, err);
    if (!code && saved->value.type == DTYPE_INVALID)
        code = error_set(err, ERR_DATA, "%s has no value", node_text(saved->node));
    return code;
}

int worker_give_value(struct worker *worker, const struct saved_variable *saved,
                      const struct collective_call *call, const struct tensor *ranks,
                      struct error *err)
{
    struct tensor own = saved->value, all = TENSOR_INIT;
    own.shape = worker_stack_shape(saved->node, 1);
    int code = worker_exchange(worker, *call, &own, NULL, &all, err);
    if (!code && ranks)
        keep_others(worker, saved->node, ranks, &all);
    tensor_release(&all);
    return code;
}

static int give_all(struct worker *worker, int64_t step, const struct tensor *ranks,
                    struct error *err)
{
    const int root = (int)tensor_get_int64(ranks, 0);
    int code = 0;
    for (size_t i = 0; !code && i < worker->own.n; i++) {
        const struct collective_call call = {
            .key = {"=state", step, i}, .has_root = true, .root = root};
        struct saved_variable saved = {.node = worker->own.items[i]};
        code = worker_take_value(worker, &saved, err);
        if (!code)
            code =
                worker_give_value(worker, &saved, &call, worker_writes(worker) ? ranks : NULL, err);
        tensor_release(&saved.value);
    }
    return code ? code : worker_join_parts(worker, step, root, err);
}

/* ---- which workers take part, and whether one saves ---- */

/* `met`: for the meeting at the end, as of collective_links_run. */
static int meet(struct worker *worker, int64_t step, bool saves, bool *met,
                struct worker_departure *all, struct error *err)
{
    const struct worker_row row = {.key = {met ? "=end" : "=saves", step, (uint64_t)worker->n_left},
                                   .says = saves ? WORKER_SAYS_SAVE : 0};
    return worker_meet(worker, &row, met, all, err);
}

int worker_gather_state(struct worker *worker, int64_t step, bool saves, bool *again,
                        struct error *err)
{
    struct worker_departure all = {.step = step};
    int code = meet(worker, step, saves, NULL, &all, err);
    if (!code)
        code = worker_take_given(worker, step, all.n, again, err);
    if (!code && !*again && all.saver >= 0)
        code = give_all(worker, step, &all.ranks, err);
    tensor_release(&all.ranks);
    return code;
}

int worker_gather_last(struct worker *worker, int64_t step, bool saves, struct error *err)
{
    struct worker_departure all = {.step = step};
    bool met = true;
    int code = meet(worker, step, true, &met, &all, err);
    if (!code && met)
        code = give_all(worker, step, &all.ranks, err);
    else if (!code && worker->parts.n)
        code = error_set(err, ERR_UNAVAILABLE, "%s: others go on, and need its part of %s",
                         worker->member.task, node_text(worker->parts.items[0]));
    else
        for (size_t i = 0; i < worker->own.n; i++)
            worker_state_clear(state_of(worker, worker->own.items[i]));
    if (!code && !met)
        code = worker_begin_parting(worker, step, saves, err);
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
    struct shape shape = worker_stack_shape(node, state->others.shape.dims[0]);
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
    struct shape shape = worker_stack_shape(node, n);
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
    struct shape none = worker_stack_shape(node, 0);
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
