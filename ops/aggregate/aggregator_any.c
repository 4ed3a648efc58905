/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan.h"
#include "exec/step/collective_kernel.h"
#include "ops/aggregate/ids_any.h"
#include "resource/aggregator.h"

static int find_aggregator(struct kernel_setup *setup, struct aggregator **aggregator)
{
    if (!setup->variables)
        return kernel_setup_fail(setup, "there is nowhere to keep what is pushed");
    *aggregator = resource_get(setup->variables, &aggregator_kind, container_of_node(setup->node),
                               node_string(setup->node, "aggregator"));
    return 0;
}

/* ---- AggregatorPush ---- */

struct aggregator_push {
    struct aggregator *aggregator;
};

static int push_prepare(struct kernel_setup *setup)
{
    struct aggregator_push *state = setup->state = mem_alloc(sizeof *state);
    return find_aggregator(setup, &state->aggregator);
}

static int push_run(struct kernel_call *call)
{
    const struct aggregator_push *state = call->state;
    struct push_id id = id_of_step(call->step);
    struct tensor *values = mem_array((size_t)call->n_in + 1, sizeof *values);
    struct tensor *token = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    int code = token ? 0 : call->err->code;
    for (int i = 0; !code && i < call->n_in; i++)
        code = kernel_keep_input(call, i, &values[i]);
    if (!code) {
        aggregator_push(state->aggregator, &id, values, call->n_in);
        *(int64_t *)token->data = id.seq;
    }
    for (int i = 0; i < call->n_in; i++)
        tensor_release(&values[i]);
    mem_free(values);
    return code;
}

const struct kernel_code kernel_aggregator_push = {.prepare = push_prepare, .run = push_run};

/* ---- reductions ---- */

struct take {
    struct kernel_call *call;
    const struct staged_push *staged;
    int n;
};

/* Sums values of one shape, from left to right. */
static int add_up(const struct take *t, int value, bool mean)
{
    const struct tensor *first = &t->staged[0].values[value];
    struct tensor *out = kernel_alloc_output(t->call, value, &first->shape);
    if (!out)
        return t->call->err->code;
    if (dtype_is_floating(first->type) && dtype_bytes(first->type) == 2) {
        /* 16-bit floats are added in a wide type and rounded once. */
        for (int64_t i = 0; i < tensor_count(out); i++) {
            double sum = 0;
            for (int k = 0; k < t->n; k++)
                sum += tensor_get_float64(&t->staged[k].values[value], i);
            tensor_set_float64(out, i, sum / (mean ? t->n : 1));
        }
        return 0;
    }
    const void **data = mem_array((size_t)t->n, sizeof *data);
    for (int k = 0; k < t->n; k++)
        data[k] = t->staged[k].values[value].data;
    collective_sum(&(struct collective_terms){first->type, data, t->n, mean ? t->n : 0}, out->data,
                   NULL, tensor_count(first));
    mem_free(data);
    return 0;
}

static int join_rows(const struct take *t, int value, bool mean)
{
    struct shape shape = t->staged[0].values[value].shape;
    shape.dims[0] = 0;
    for (int k = 0; k < t->n; k++)
        shape.dims[0] += t->staged[k].values[value].shape.dims[0];
    struct tensor *out = kernel_alloc_output(t->call, value, &shape);
    if (!out)
        return t->call->err->code;
    char *to = out->data;
    for (int k = 0; k < t->n; k++) {
        const struct tensor *rows = &t->staged[k].values[value];
        memcpy(to, rows->data, tensor_bytes(rows));
        to += tensor_bytes(rows);
    }
    const void *joined = out->data;
    if (mean)
        collective_sum(&(struct collective_terms){out->type, &joined, 1, t->n}, out->data, NULL,
                       tensor_count(out));
    return 0;
}

/* ---- AggregatorTake ---- */

struct take_state {
    struct aggregator *aggregator;
    enum collective_kind kinds[]; /* of its outputs */
};

static int take_prepare(struct kernel_setup *setup)
{
    const char *const *reductions = node_attr(setup->node, "reductions")->strings;
    struct take_state *state = setup->state =
        mem_alloc(sizeof *state + (size_t)setup->n_out * sizeof *state->kinds);
    for (int i = 0; i < setup->n_out; i++) {
        enum collective_kind *kind = &state->kinds[i];
        enum dtype type = setup->out_types[i].type;
        if (!collective_kind_of(reductions[i], kind) ||
            ((collective_adds(*kind) || collective_divides(*kind)) &&
             !collective_can_add(*kind, type)))
            return kernel_setup_fail(setup, "there is no %.4s of %s", reductions[i],
                                     dtype_name(type));
    }
    return find_aggregator(setup, &state->aggregator);
}

static int reduce(const struct take *t, int value, enum collective_kind kind)
{
    bool rows = collective_gathers(kind);
    const struct node_output *declared = &t->call->node->outputs[value];
    const struct tensor *first = &t->staged[0].values[value];
    /* Members ran the same graph, so values differ at most in rows; but their bytes come from
     * outside, and are checked. */
    for (int k = 0; k < t->n; k++) {
        struct tensor *other = &t->staged[k].values[value];
        struct shape like = first->shape;
        if (rows && like.rank > 0 && other->shape.rank > 0)
            like.dims[0] = other->shape.dims[0];
        if (other->type != declared->type || !shape_equal(&like, &other->shape) ||
            (rows && !like.rank))
            return kernel_fail(t->call, "value %d of a member is %s, of the first %s", value,
                               shape_text_typed(other->type, &other->shape),
                               shape_text_typed(first->type, &first->shape));
    }

    if (kind == COLLECTIVE_FIRST || t->n == 1)
        return kernel_share_output(t->call, value, first) ? 0 : t->call->err->code;
    if (collective_adds(kind))
        return add_up(t, value, collective_divides(kind));
    return join_rows(t, value, collective_divides(kind));
}

static struct push_id *read_ids(const struct tensor *rows, struct push_list *list)
{
    list->n = (int)rows->shape.dims[0];
    struct push_id *ids = mem_array((size_t)list->n + 1, sizeof *ids);
    for (int i = 0; i < list->n; i++)
        ids[i] = id_of_row(rows, i);
    list->ids = ids;
    return ids;
}

static int take_run(struct kernel_call *call)
{
    const struct take_state *state = call->state;
    struct push_list members, dropped;
    for (int i = 0; i < 2; i++)
        if (call->in[i]->shape.rank != 2 || call->in[i]->shape.dims[1] != 3)
            return kernel_fail(call, "rows of pushes are [?,3], not %s",
                               shape_text(&call->in[i]->shape));
    if (call->in[0]->shape.dims[0] < 1)
        return kernel_fail(call, "a round without members");
    struct push_id *member_ids = read_ids(call->in[0], &members);
    struct push_id *dropped_ids = read_ids(call->in[1], &dropped);
    struct staged_push *staged = mem_array((size_t)members.n, sizeof *staged);
    struct take take = {call, staged, members.n};
    int code = aggregator_take(state->aggregator, members, dropped, call->n_out, staged, call->err);
    for (int i = 0; !code && i < call->n_out; i++)
        code = reduce(&take, i, state->kinds[i]);
    for (int i = 0; i < members.n; i++)
        staged_release(&staged[i]);
    mem_free(staged);
    mem_free(member_ids);
    mem_free(dropped_ids);
    return code;
}

const struct kernel_code kernel_aggregator_take = {.prepare = take_prepare, .run = take_run};
