/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/collective_kernel.h"

#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/communicator.h"
#include "exec/step/pending.h"
#include "graph/worker_attr.h"

static const char *const kind_names[] = {
    [COLLECTIVE_SUM] = "sum",
    [COLLECTIVE_FIRST] = "first",
    [COLLECTIVE_ROWS] = "rows",
    [COLLECTIVE_MEAN] = "mean",
    [COLLECTIVE_MEAN_ROWS] = "mean_rows",
    [COLLECTIVE_PART] = "part",
    [COLLECTIVE_SUM_PART] = "sum_part",
    [COLLECTIVE_MEAN_PART] = "mean_part",
};

bool collective_kind_of(const char *reduction, enum collective_kind *kind)
{
    size_t n = sizeof kind_names / sizeof *kind_names, at = names_find(kind_names, n, reduction);
    *kind = (enum collective_kind)at;
    return at < n;
}

struct collective_group collective_group_of(const struct node *node)
{
    return (struct collective_group){(int)node_int(node, "group_size"),
                                     (int)node_int(node, "group_stride")};
}

static const char *schedule_of(const struct node *node)
{
    const struct attr_value *schedule = node_attr(node, "schedule");
    return schedule ? schedule->s : "";
}

enum by_device collective_by_device(const struct node *node)
{
    return by_device_of(schedule_of(node));
}

bool collective_by_servers(const struct node *node)
{
    return !strcmp(schedule_of(node), SCHEDULE_BY_SERVERS);
}

struct collective_options collective_options_of(const struct node *node)
{
    const struct attr_value *hosts = node_attr(node, "schedule_hosts");
    struct collective_options options = {.group = collective_group_of(node),
                                         .schedule = {SCHEDULE_DIRECT, NULL},
                                         .priority = node_priority(node),
                                         .wants_all = node_attr(node, ALL_WORKERS) != NULL};
    if (!schedule_kind_of(schedule_of(node), &options.schedule.kind))
        options.schedule.kind = SCHEDULE_DIRECT; /* also for "by device" and "by servers" */
    options.by_servers = collective_by_servers(node);
    if (hosts && hosts->n) {
        options.schedule.hosts = hosts->ints;
        options.n_hosts = hosts->n;
    }
    return options;
}

int collective_prepare(struct kernel_setup *setup)
{
    const struct attr_value *reductions = node_attr(setup->node, "reductions");
    struct collective_reduction *state =
        mem_alloc(sizeof *state + (size_t)setup->n_in * sizeof *state->kinds);
    enum collective_kind *kinds = state->kinds;
    setup->state = state;
    state->options = collective_options_of(setup->node);
    const struct collective_schedule *schedule = &state->options.schedule;
    if (schedule->kind == SCHEDULE_TWO_LEVEL && !schedule->hosts)
        return kernel_setup_fail(setup, "schedule two-level wants schedule_hosts, each worker's");
    bool by_device = collective_by_device(setup->node) != BY_DEVICE_NEVER &&
                     !node_int(setup->node, "group_size");
    for (int i = 0; i < setup->n_in; i++) {
        if (!collective_kind_of(reductions->strings[i], &kinds[i]))
            return kernel_setup_fail(setup, "there is no reduction '%s'", reductions->strings[i]);
        if (collective_divides(kinds[i]) && !dtype_is_floating(setup->in_types[i].type))
            return kernel_setup_fail(setup, "there is no mean of %s",
                                     dtype_name(setup->in_types[i].type));
        by_device &= (kinds[i] == COLLECTIVE_SUM || kinds[i] == COLLECTIVE_MEAN) &&
                     communicator_adds(setup->in_types[i].type);
    }
    state->options.by_device = by_device;
    return 0;
}

struct reduce_call {
    struct pending_call pending; /* first */
    struct collective_waiter waiter;
    struct collective *collective;
    collective_take *take;
};

static void answered(struct collective_waiter *waiter, const struct collective_results *results,
                     const struct error *failure)
{
    struct reduce_call *r = CONTAINER_OF(waiter, struct reduce_call, waiter);
    struct kernel_call *call = r->pending.call;
    const struct collective_options *options = call->state;
    int code = failure ? failure->code : 0, n = r->collective->size;
    if (failure)
        *call->err = *failure;
    else if (options->wants_all && results->members != n)
        code = kernel_fail(call, "%d of %d workers have left, with their parts of variables",
                           n - results->members, n);
    for (int i = 0; i < call->n_out && !code; i++)
        if (results->values[i].type != call->node->outputs[i].type)
            code = kernel_fail(call, "was given %s", dtype_name(results->values[i].type));
    pending_end(&r->pending, code ? code : r->take(call, results));
}

static bool withdraw(struct pending_call *pending)
{
    struct reduce_call *r = (struct reduce_call *)pending; /* the call may be over */
    return r->collective->cancel(r->collective, &r->waiter);
}

/* A single worker is a group, whatever the group's size. */
static int check_members(struct kernel_call *call, const struct collective_options *options)
{
    const struct collective *collective = call->step->collective;
    const struct collective_schedule *schedule = &options->schedule;
    struct error why = ERROR_INIT;
    if (collective && collective_check_group(&options->group, collective->size, &why))
        return kernel_fail(call, "%s", why.text);
    int n = collective ? collective_group_size(&options->group, collective->size) : 1;
    if (schedule->kind == SCHEDULE_DIRECT)
        return 0;
    if (n > SCHEDULE_MEMBERS_MAX)
        return kernel_fail(call, "schedule %s is for at most %d workers, not %d",
                           schedule_name(schedule->kind), SCHEDULE_MEMBERS_MAX, n);
    if (collective && schedule->hosts && options->n_hosts != collective->size)
        return kernel_fail(call, "has schedule_hosts of %d workers, where there are %d",
                           options->n_hosts, collective->size);
    return 0;
}

int collective_decline(const struct step *step, const struct node *node, uint64_t iteration,
                       struct error *err)
{
    struct collective *collective = step->collective;
    enum op_round round = node && collective ? node_round(node) : ROUND_NONE;
    if (round != ROUND_REDUCE && round != ROUND_ROUTE)
        return 0;
    const struct collective_group group = collective_group_of(node);
    const struct collective_key key = {node->name, step->number, iteration};
    if (collective_check_group(&group, collective->size, err))
        return error_prefix(err, "'%s': ", node->name);
    return collective->decline(collective, &key, &group, err);
}

int collective_ask(struct kernel_call *call, struct tensor *values, struct collective_call what,
                   collective_take *take)
{
    const struct collective_options *options = call->state;
    what.key = (struct collective_key){call->node->name, call->step->number, call->iteration};
    what.values = values;
    what.group = options->group;
    what.schedule = options->schedule;
    what.by_device = options->by_device;
    what.by_servers = options->by_servers;
    what.priority = options->priority;
    what.yields = true;
    int code = check_members(call, options);
    struct collective *collective = call->step->collective;
    if (!code && collective) { /* the call may be over before this has returned */
        struct reduce_call *r = mem_alloc(sizeof *r);
        r->waiter.done = answered;
        r->collective = collective;
        r->take = take;
        code = pending_begin(&r->pending, call, withdraw);
        if (!code) {
            collective->reduce(collective, &what, &r->waiter);
            code = pending_wait(&r->pending);
            what.at = (struct device_point){0};
        }
    } else if (!code) { /* a single worker waits for nobody */
        const struct collective_results own = {values, what.at, 1};
        code = take(call, &own);
    }
    device_point_release(&what.at);
    for (int i = 0; i < what.n; i++)
        tensor_release(&values[i]);
    return code;
}
