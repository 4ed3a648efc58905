/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of workers, and of the task that runs updates, to a clock.
 */
#include <inttypes.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/step/pending.h"
#include "ops/aggregate/ids_any.h"
#include "resource/clock.h"

struct clock_use {
    struct clock *clock;
    double timeout;
};

static int prepare(struct kernel_setup *setup)
{
    const struct node *node = setup->node;
    struct clock_use *state = setup->state = mem_alloc(sizeof *state);
    if (!setup->variables)
        return kernel_setup_fail(setup, "there is nowhere to keep a clock");
    state->clock = resource_get(setup->variables, &clock_kind, container_of_node(node),
                                node_string(node, "clock"));
    if (node_attr(node, "timeout"))
        state->timeout = node_float(node, "timeout");
    int code = clock_configure(state->clock, node_string(node, "policy"),
                               (int)node_int(node, "workers"), setup->err);
    if (!code && node_attr(node, "keeps")->b)
        clock_keep_states(state->clock);
    return code;
}

static int join_prepare(struct kernel_setup *setup)
{
    int code = prepare(setup);
    if (!code && node_attr(setup->node, "drives")->b)
        clock_drive_by_worker(((const struct clock_use *)setup->state)->clock);
    return code;
}

/* ---- a call that waits ---- */

struct clock_call {
    struct pending_call pending; /* first */
    struct clock_waiter waiter;
    struct clock *clock;
    int (*answer)(struct clock_call *waiting, const struct clock_result *result);
};

static void result_arrived(struct clock_waiter *waiter, const struct clock_result *result,
                           const struct error *failure)
{
    struct clock_call *w = CONTAINER_OF(waiter, struct clock_call, waiter);
    if (failure)
        *w->pending.call->err = *failure;
    pending_end(&w->pending, failure ? failure->code : w->answer(w, result));
}

static bool withdraw(struct pending_call *pending)
{
    struct clock_call *w = (struct clock_call *)pending;
    return clock_cancel(w->clock, &w->waiter);
}

/* Begins a call that waits. NULL: the step has stopped. */
static struct clock_call *begin(struct kernel_call *call,
                                int (*answer)(struct clock_call *, const struct clock_result *))
{
    const struct clock_use *state = call->state;
    struct clock_call *w = mem_alloc(sizeof *w);
    w->waiter.done = result_arrived;
    w->waiter.timeout = state->timeout;
    w->clock = state->clock;
    w->answer = answer;
    return pending_begin(&w->pending, call, withdraw) ? NULL : w;
}

/* Sets the first n outputs. */
static int put_scalars(struct kernel_call *call, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++) {
        struct tensor *out = kernel_alloc_output(call, i, &SHAPE_SCALAR);
        if (!out)
            return call->err->code;
        tensor_set_int64(out, 0, values[i]);
    }
    return 0;
}

/* ---- workers ---- */

static int join_answer(struct clock_call *w, const struct clock_result *result)
{
    const int64_t values[] = {result->version, result->seq, result->incarnation,
                              result->counted, result->own, result->asked};
    return put_scalars(w->pending.call, values, 6);
}

/* Reads the heads of the copies in a worker's journal; returns how many. */
static int heads_of(struct kernel_call *call, struct journal_head heads[JOURNAL_COPIES])
{
    if (!call->n_in)
        return 0;
    const struct tensor *rows = call->in[0];
    const struct shape *shape = &rows->shape;
    int64_t n = shape->rank == 2 && shape->dims[1] == 2 ? shape->dims[0] : -1;
    if (n < 0 || n > JOURNAL_COPIES)
        return -kernel_fail(call, "%s are no heads of a journal",
                            shape_text_typed(rows->type, &rows->shape));
    for (int64_t i = 0; i < n; i++)
        heads[i] = (struct journal_head){((const int64_t *)rows->data)[2 * i],
                                         ((const int64_t *)rows->data)[2 * i + 1]};
    return (int)n;
}

static int join_run(struct kernel_call *call)
{
    struct push_id id = id_of_step(call->step);
    struct journal_head heads[JOURNAL_COPIES];
    int n = heads_of(call, heads);
    struct clock_call *w = n < 0 ? NULL : begin(call, join_answer);
    if (!w)
        return call->err->code;
    clock_rejoin(w->clock, &id, heads, n, &w->waiter);
    return pending_wait(&w->pending);
}

static int push_answer(struct clock_call *w, const struct clock_result *result)
{
    const int64_t values[] = {result->version, result->counted, result->asked};
    return put_scalars(w->pending.call, values, 3);
}

static int push_run(struct kernel_call *call)
{
    struct push_id id = id_of_step(call->step);
    struct clock_call *w;
    for (int i = 1; i < call->n_in; i++)
        if (*(const int64_t *)call->in[i]->data != id.seq)
            return kernel_fail(call, "a token of step %" PRId64 " in step %" PRId64,
                               *(const int64_t *)call->in[i]->data, id.seq);
    int64_t version = *(const int64_t *)call->in[0]->data;
    if (!(w = begin(call, push_answer)))
        return call->err->code;
    clock_push(w->clock, &id, version, &w->waiter);
    return pending_wait(&w->pending);
}

static int rest_answer(struct clock_call *w, const struct clock_result *result)
{
    return put_scalars(w->pending.call, &result->version, 1);
}

static int rest_run(struct kernel_call *call)
{
    struct push_id id = id_of_step(call->step);
    struct clock_call *w = begin(call, rest_answer);
    if (!w)
        return call->err->code;
    clock_rest(w->clock, &id, &w->waiter);
    return pending_wait(&w->pending);
}

static int leave_run(struct kernel_call *call)
{
    const struct clock_use *state = call->state;
    struct push_id id = id_of_step(call->step);
    clock_leave(state->clock, &id);
    return KERNEL_DONE;
}

const struct kernel_code kernel_clock_join = {.prepare = join_prepare, .run = join_run};
const struct kernel_code kernel_clock_push = {.prepare = prepare, .run = push_run};
const struct kernel_code kernel_clock_rest = {.prepare = prepare, .run = rest_run};
const struct kernel_code kernel_clock_leave = {.prepare = prepare, .run = leave_run};

/* ---- rounds ---- */

/* What the step owes the clock: to report the round as applied, before the step ends. */
struct debt {
    struct clock *clock;
    struct step *step;
    int64_t version;
};

static void close_debt(void *object)
{
    struct debt *debt = object;
    struct error reason = ERROR_INIT;
    if (clock_version(debt->clock) < debt->version) {
        if (!step_stopped(debt->step, &reason))
            error_set(&reason, ERR_UNAVAILABLE, "it was not applied");
        error_prefix(&reason, "the update of round %" PRId64 ": ", debt->version);
        clock_fail(debt->clock, &reason);
    }
    mem_free(debt);
}

static int put_ids(struct kernel_call *call, int i, struct push_list list)
{
    struct shape shape = {.rank = 2, .dims = {list.n, 3}};
    struct tensor *out = kernel_alloc_output(call, i, &shape);
    if (!out)
        return call->err->code;
    int64_t *row = out->data;
    for (int k = 0; k < list.n; k++, row += 3) {
        row[0] = list.ids[k].worker;
        row[1] = (int64_t)list.ids[k].incarnation;
        row[2] = list.ids[k].seq;
    }
    return 0;
}

static int round_answer(struct clock_call *w, const struct clock_result *result)
{
    struct debt *debt = mem_alloc(sizeof *debt);
    *debt = (struct debt){w->clock, w->pending.call->step, result->version};
    step_resource_add(w->pending.call->step, debt, close_debt);
    int code = put_scalars(w->pending.call, &result->version, 1);
    if (!code)
        code = put_ids(w->pending.call, 1, result->members);
    return code ? code : put_ids(w->pending.call, 2, result->dropped);
}

static int round_run(struct kernel_call *call)
{
    struct clock_call *w = begin(call, round_answer);
    if (!w)
        return call->err->code;
    clock_round(w->clock, &w->waiter);
    return pending_wait(&w->pending);
}

static int advance_run(struct kernel_call *call)
{
    const struct clock_use *state = call->state;
    return clock_advance(state->clock, *(const int64_t *)call->in[0]->data, call->err);
}

const struct kernel_code kernel_clock_round = {.prepare = prepare, .run = round_run};
const struct kernel_code kernel_clock_advance = {.prepare = prepare, .run = advance_run};
