/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that are pushed every so many steps of their own, while those of other variables are
 * pushed more often (convolutions every so many images: Chilimbi et al., Project Adam, OSDI 2014).
 * A worker sums those that it holds back. The steady gradients, pushed most often, go with each
 * push to the clock, together with a flag for each interval: whether this push has its gradients.
 * If not, their takes, and the updates that need them, are left out of the round.
 *
 * The sums exist nowhere else, so workers give them to shards, like the residuals of codes.
 */
#include <string.h>

#include "pass/part/part.h"
#include "pass/replicate/replicate_push.h"

/* ---- intervals of gradients ---- */

/* Returns whether the pattern matches the name, or a scope that it is in. */
static bool matches(const char *pattern, const char *end, const char *name)
{
    if (pattern == end)
        return !*name || *name == '/';
    if (*pattern == '*')
        return matches(pattern + 1, end, name) || (*name && matches(pattern, end, name + 1));
    return *name == *pattern && matches(pattern + 1, end, name + 1);
}

static int take_interval(struct replicator *r, const struct replicate_interval *interval)
{
    bool found = false;
    vec_each(push, &r->pushes) {
        if (!push->has_gradient ||
            !matches(interval->pattern, interval->pattern + interval->n, push->variable))
            continue;
        push->steps = interval->steps;
        found = true;
    }
    return found ? 0
                 : error_set(r->err, ERR_DATA,
                             "push.%.*s=%d: no variable that is trained has this name, or is in a "
                             "scope of this name",
                             interval->n, interval->pattern, interval->steps);
}

bool replicate_may_leave_out(const struct replicator *r)
{
    graph_each(node, r->from) {
        if (has(r, node->id, FACT_UPDATE) && node_has(node, OP_CONTROL_FLOW))
            return true;
    }
    return false;
}

int replicate_refuse_leaving_out(struct replicator *r, const char *why)
{
    return replicate_may_leave_out(r)
               ? error_set(r->err, ERR_DATA,
                           "the graph leaves out updates now and then, as a dynamic loss scale "
                           "does, which %s",
                           why)
               : 0;
}

/* Returns a push with a gradient that is in each push to the clock. */
static struct push *steady_push(struct replicator *r)
{
    struct push *push = r->pushes.items;
    while (!push->has_gradient || !replicate_is_steady(r, push))
        push++;
    return push;
}

/* ---- the update ---- */

/* A node of the update is in the rounds that have all of its inputs. */
static int find_interval(struct replicator *r, const struct node *node)
{
    int *steps = &r->interval[node->id];
    *steps = r->steps;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct exchange *x = replicate_exchange(r, node->inputs[i]);
        bool in_update = has(r, node->inputs[i].node, FACT_UPDATE);
        int from = in_update ? r->interval[node->inputs[i].node] : x ? x->steps : r->steps;
        if (from != r->steps && *steps != r->steps && from != *steps)
            return error_set(r->err, ERR_DATA,
                             "%s: needs gradients that are pushed every %d and every %d steps",
                             node_text(node), *steps, from);
        *steps = from == r->steps ? *steps : from;
    }
    const struct node *written = has(r, node->id, FACT_WRITER) ? part_written(r->from, node) : NULL;
    const struct push *push = written ? replicate_push_of(r, written->name) : NULL;
    if (push && push->has_gradient && *steps != r->steps && *steps != push->steps)
        return error_set(r->err, ERR_DATA,
                         "%s: the update of '%s', whose gradient is pushed every %d steps, needs "
                         "one that is pushed every %d",
                         node_text(node), push->variable, push->steps, *steps);
    return 0;
}

int replicate_find_intervals(struct replicator *r)
{
    const struct replicate_options *options = r->options;
    int general = options->accumulate > 1 ? options->accumulate
                  : options->push > 1     ? options->push
                                          : 1;
    vec_each(push, &r->pushes)
        push->steps = general;
    for (int i = 0; i < options->n_intervals; i++)
        if (take_interval(r, &options->intervals[i]))
            return r->err->code;
    /* The smallest is the interval of pushes to the clock. */
    int least = INT32_MAX;
    vec_each(push, &r->pushes)
        least = push->has_gradient && push->steps < least ? push->steps : least;
    r->steps = least < INT32_MAX ? least : general;
    vec_each(push, &r->pushes) {
        push->steps = push->has_gradient ? push->steps : r->steps;
        if (push->steps % r->steps)
            return error_set(r->err, ERR_DATA,
                             "'%s' is pushed every %d steps, which is no multiple of %d, the "
                             "smallest interval",
                             push->variable, push->steps, r->steps);
        r->has_intervals |= !replicate_is_steady(r, push);
    }
    if (r->has_intervals &&
        replicate_refuse_leaving_out(r, "goes by all gradients: they have one interval"))
        return r->err->code;
    /* A value that is no gradient (a fed rate) belongs to the step, and other updates may also need
     * it. */
    struct push *steady = r->has_intervals ? steady_push(r) : NULL;
    vec_each(push, &r->pushes) {
        exchange_list all = push->exchanges;
        for (size_t k = 0; k < all.n; k++)
            all.items[k]->steps = all.items[k]->is_gradient ? push->steps : r->steps;
        if (replicate_is_steady(r, push))
            continue;
        push->exchanges.n = 0;
        for (size_t k = 0; k < all.n; k++)
            vec_push_in(&r->arena,
                        all.items[k]->is_gradient ? &push->exchanges : &steady->exchanges,
                        all.items[k]);
    }
    graph_each_ordered(node, r->from, r->order) {
        if (r->has_intervals && has(r, node->id, FACT_UPDATE) && find_interval(r, node))
            return r->err->code;
    }
    return 0;
}

int replicate_wait_in_update(struct replicator *r, const struct node *node, int copy)
{
    node_list left_out = VEC_INIT;
    const struct edge waits = replicate_out(copy);
    for (int i = 0; i < node->n_controls; i++) {
        int control = node->controls[i], before = r->updated[control];
        if (!has(r, control, FACT_UPDATE))
            continue;
        if (r->has_intervals && r->interval[control] != r->steps &&
            r->interval[control] != r->interval[node->id])
            vec_push_in(&r->arena, &left_out, before);
        else
            replicate_wait(r, waits, before);
    }
    if (left_out.n)
        replicate_wait(r, waits,
                       replicate_after(r, "ControlTrigger", SHARD_DEVICE, &left_out,
                                       replicate_text(r, node->name, "waits")));
    return r->err->code;
}

/* ---- the worker ---- */

struct due *replicate_find_due(struct replicator *r, int steps)
{
    for (size_t i = 0; i < r->own->dues.n; i++)
        if (r->own->dues.items[i].steps == steps)
            return &r->own->dues.items[i];
    return NULL;
}

struct edge replicate_due(struct replicator *r, const char *name, struct edge number, int every)
{
    struct edge n = replicate_number(r, INT64, every, "%s/every", name);
    struct edge zero = replicate_number(r, INT64, 0, "%s/zero", name);
    struct edge rest = replicate_op(r, "Mod", number, n, "%s/rest", name);
    return replicate_op(r, "Equal", rest, zero, "%s", name);
}

int replicate_add_dues(struct replicator *r)
{
    if (!r->has_intervals || r->err->code)
        return r->err->code;
    /* Pushes to the clock are counted from the worker's first step. */
    r->own->pushed_before = replicate_local(r, "clock/pushed", INT64, &SHAPE_SCALAR);
    struct edge steps = replicate_number(r, INT64, r->steps, "clock/pushed/steps");
    struct edge decided = replicate_op(r, "Div", build_slot(replicate_out(r->join), 1), steps,
                                       "clock/pushed/decided");
    replicate_assign(r, &r->joined, r->own->pushed_before, decided, "clock/pushed/join");
    struct edge one = replicate_number(r, INT64, 1, "clock/pushed/one");
    r->own->pushed = replicate_op(r, "Add", r->own->pushed_before, one, "clock/pushed/next");
    vec_each(push, &r->pushes) {
        if (replicate_is_steady(r, push) || replicate_find_due(r, push->steps))
            continue;
        const char *name = arena_printf(&r->to->arena, "clock/pushes/%d", push->steps);
        struct edge due = replicate_due(r, name, r->own->pushed, push->steps / r->steps);
        vec_push_in(&r->arena, &r->own->dues, ((struct due){push->steps, due, EDGE_NONE}));
    }
    return r->err->code;
}

void replicate_send_dues(struct replicator *r, struct push *push)
{
    if (!r->has_intervals || push != steady_push(r))
        return;
    vec_each(due, &r->own->dues) {
        struct edge flag = replicate_due_to_push(r, due->due);
        replicate_put(r, &push->sent, NULL, (struct bucket_value){flag, "first", &due->taken});
    }
}

/* The clock's push waits for all that is staged, and sums are kept until the clock has replied. */
void replicate_end_intervals(struct replicator *r, struct edge push)
{
    node_list staged = VEC_INIT;
    if (!r->has_intervals)
        return;
    vec_each(held, &r->pushes) {
        if (!replicate_is_steady(r, held))
            replicate_also(r, &staged, held->token);
    }
    replicate_wait(
        r, push, replicate_after(r, "ControlTrigger", CLOCK_DEVICE, &staged, "clock/push/staged"));
    replicate_assign(r, &r->own->held, r->own->pushed_before, r->own->pushed,
                     "clock/pushed/Assign");
    vec_each(held, &r->own->held) {
        replicate_wait(r, replicate_out(*held), push.node);
        vec_push_in(&r->arena, &r->ends, *held);
    }
}

/* ---- the take ---- */

struct edge replicate_members(struct replicator *r, const struct push *push)
{
    struct edge members = {r->round, 1};
    if (replicate_is_steady(r, push))
        return members;
    struct edge due = replicate_find_due(r, push->steps)->taken;
    return build_slot(replicate_op_beside(r, "Switch", members, due, push->variable,
                                          "%s/take/members", push->variable),
                      1);
}
