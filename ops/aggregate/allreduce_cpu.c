/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/step/collective.h"
#include "ops/aggregate/pending_cpu.h"

struct reducing {
    struct pending pending; /* first */
    struct collective_waiter waiter;
    struct collective *collective;
};

static enum collective_kind kind_of(const char *reduction)
{
    if (!strcmp(reduction, "first"))
        return COLLECTIVE_FIRST;
    if (strstr(reduction, "rows"))
        return COLLECTIVE_ROWS;
    return strcmp(reduction, "mean") ? COLLECTIVE_SUM : COLLECTIVE_MEAN;
}

static int prepare(struct kernel_setup *setup)
{
    const struct attr_value *reductions = node_attr(setup->node, "reductions");
    enum collective_kind *kinds = mem_array((size_t)setup->n_in + 1, sizeof *kinds);
    setup->state = kinds;
    for (int i = 0; i < setup->n_in; i++) {
        kinds[i] = kind_of(reductions->strings[i]);
        if (!strncmp(reductions->strings[i], "mean", 4) &&
            !dtype_is_floating(setup->in_types[i].type))
            return kernel_setup_fail(setup, "there is no mean of %s",
                                     dtype_name(setup->in_types[i].type));
    }
    return 0;
}

/* All get the same memory, so what is divided is in memory of its own. */
static int divide_rows(struct kernel_call *call, int i, const struct tensor *rows, int members)
{
    struct tensor *out = kernel_alloc_output(call, i, &rows->shape);
    if (!out)
        return call->err->code;
    int64_t n = tensor_count(rows);
    if (rows->type == FLOAT32)
        for (int64_t k = 0; k < n; k++)
            ((float *)out->data)[k] = ((const float *)rows->data)[k] / (float)members;
    else
        for (int64_t k = 0; k < n; k++)
            tensor_set_float64(out, k, tensor_get_float64(rows, k) / members);
    return 0;
}

static int take(struct kernel_call *call, const struct tensor *values, int members)
{
    const struct attr_value *reductions = node_attr(call->node, "reductions");
    for (int i = 0; i < call->n_out; i++) {
        bool divides = members > 1 && !strcmp(reductions->strings[i], "mean_rows");
        if (values[i].type != call->node->outputs[i].type)
            return kernel_fail(call, "was given %s", dtype_name(values[i].type));
        if (divides ? divide_rows(call, i, &values[i], members)
                    : !kernel_share_output(call, i, &values[i]))
            return call->err->code;
    }
    return 0;
}

static void answered(struct collective_waiter *waiter, const struct tensor *values, int members,
                     const struct error *failure)
{
    struct reducing *r = CONTAINER_OF(waiter, struct reducing, waiter);
    struct kernel_call *call = r->pending.call;
    if (failure)
        *call->err = *failure;
    pending_end(&r->pending, failure ? failure->code : take(call, values, members));
}

static bool withdraw(struct pending *pending)
{
    struct reducing *r = (struct reducing *)pending; /* the call may be over */
    return r->collective->cancel(r->collective, &r->waiter);
}

static int take_inputs(struct kernel_call *call, struct tensor *values)
{
    int code = 0;
    for (int i = 0; !code && i < call->n_in; i++)
        code = kernel_take_input(call, i, &values[i]);
    return code;
}

static int ask(struct kernel_call *call, const struct tensor *values)
{
    struct collective *collective = call->step->collective;
    struct collective_call what = {.key = {call->node->name, call->step->number, call->iteration},
                                   .values = values,
                                   .kinds = call->state,
                                   .n = call->n_in,
                                   .yields = true};
    struct reducing *r = mem_alloc(sizeof *r);
    if (pending_begin(&r->pending, call, withdraw))
        return call->err->code;
    r->waiter.done = answered;
    r->collective = collective;
    collective->reduce(collective, &what, &r->waiter);
    return pending_wait(&r->pending);
}

/* One worker alone has nobody to wait for. One that asks may find the call over at once. */
static int run(struct kernel_call *call)
{
    int n = call->n_in;
    struct tensor *values = mem_array((size_t)n + 1, sizeof *values);
    int code = take_inputs(call, values);
    if (!code)
        code = call->step->collective ? ask(call, values) : take(call, values, 1);
    for (int i = 0; i < n; i++)
        tensor_release(&values[i]);
    mem_free(values);
    return code;
}

const struct kernel_code kernel_all_reduce = {.prepare = prepare, .run = run};
