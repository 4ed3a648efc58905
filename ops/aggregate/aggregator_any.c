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

#define BLOCK 4096 /* elements: the sums stay in the cache */

/* out = (v[0] + v[1] + ... + v[n-1]) / divisor, added from left to right. */
#define DEFINE_SUM(type)                                                                           \
    static void sum_##type(type *out, const type *const *v, int n, int64_t count, type divisor)    \
    {                                                                                              \
        for (int64_t from = 0; from < count; from += BLOCK) {                                      \
            int64_t to = from + BLOCK < count ? from + BLOCK : count;                              \
            memcpy(out + from, v[0] + from, (size_t)(to - from) * sizeof *out);                    \
            for (int k = 1; k < n; k++)                                                            \
                for (int64_t i = from; i < to; i++)                                                \
                    out[i] += v[k][i];                                                             \
            for (int64_t i = from; divisor != 1 && i < to; i++)                                    \
                out[i] /= divisor;                                                                 \
        }                                                                                          \
    }
DEFINE_SUM(float)
DEFINE_SUM(double)
#undef DEFINE_SUM

struct take {
    struct kernel_call *call;
    const struct staged_push *staged;
    int n;
};

/* Sums values of one shape. */
static int add_up(const struct take *t, int value, bool mean)
{
    const struct tensor *first = &t->staged[0].values[value];
    struct tensor *out = kernel_alloc_output(t->call, value, &first->shape);
    int64_t count = tensor_count(first);
    int divisor = mean ? t->n : 1;
    if (!out)
        return t->call->err->code;
    const void **data = mem_array((size_t)t->n, sizeof *data);
    for (int k = 0; k < t->n; k++)
        data[k] = t->staged[k].values[value].data;
    if (first->type == FLOAT32)
        sum_float(out->data, (const float *const *)data, t->n, count, (float)divisor);
    else if (first->type == FLOAT64)
        sum_double(out->data, (const double *const *)data, t->n, count, divisor);
    else if (dtype_is_integer(first->type)) /* means of integers are refused */
        collective_sum(&(struct collective_terms){first->type, data, t->n, 0}, out->data, NULL,
                       count);
    else {
        /* 16-bit floats are added in a wide type and rounded once. */
        for (int64_t i = 0; i < tensor_count(out); i++) {
            double sum = 0;
            for (int k = 0; k < t->n; k++)
                sum += tensor_get_float64(&t->staged[k].values[value], i);
            tensor_set_float64(out, i, sum / divisor);
        }
    }
    mem_free(data);
    return 0;
}

static int join_rows(const struct take *t, int value)
{
    struct shape shape = t->staged[0].values[value].shape;
    shape.dims[0] = 0;
    for (int k = 0; k < t->n; k++)
        shape.dims[0] += t->staged[k].values[value].shape.dims[0];
    struct tensor *out = kernel_alloc_output(t->call, value, &shape);
    char *to = out ? out->data : NULL;
    for (int k = 0; out && k < t->n; k++) {
        const struct tensor *rows = &t->staged[k].values[value];
        memcpy(to, rows->data, tensor_bytes(rows));
        to += tensor_bytes(rows);
    }
    return out ? 0 : t->call->err->code;
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
    int code = join_rows(t, value);
    struct tensor *out = t->call->out[value];
    for (int64_t i = 0; collective_divides(kind) && !code && i < tensor_count(out); i++) {
        if (out->type == FLOAT32)
            ((float *)out->data)[i] /= (float)t->n;
        else
            tensor_set_float64(out, i, tensor_get_float64(out, i) / t->n);
    }
    return code;
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
