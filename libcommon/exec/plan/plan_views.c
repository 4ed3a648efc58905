/* SPDX-License-Identifier: Apache-2.0
 *
 * Views: items whose output is their input's memory, perhaps seen with another shape, and that do
 * nothing else. They do not run: their consumers get the input, and are told the shape.
 *
 * In a whole plan views are left out once all items are in order, so that their dependencies keep
 * their effect on the order. A read of a variable is a view, too: the next item that runs locks the
 * variable for it, and checks that it has a value. In a dynamic plan a read is a moment of its own,
 * after which others may write, and waiting is part of execution: there only views of computed
 * values are left out, and only if nothing waits for them except for their value.
 *
 * No check that a view would make when it runs (of its operands, or for a variable without a value)
 * is lost: either operands are constants and shapes are known, or the view runs. Where a value has
 * not the shape that it was planned with, as a variable's may, consumers find the view's shape
 * (region_gather).
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"
#include "exec/plan/region.h"

/* What others want of an item. */
struct wanted {
    bool value;        /* some item has it as an input */
    bool value_chosen; /* control flow does */
    bool end;          /* others wait for it to be over */
};

struct views {
    struct plan *plan;
    struct wanted *wanted; /* by item */
    int *source;           /* by value: for a view that does not run, what it views; else -1 */
};

/* ---- which ---- */

/* Returns whether the item is a view, and all that it decides is known now. */
static bool is_view(const struct plan *plan, const struct item *item)
{
    const struct value *values = plan->values.items;
    if (!item->node || item->removed || item->is_point || item->n_out != 1 ||
        !node_has(item->node, OP_VIEW) || node_has(item->node, OP_STATEFUL | OP_CHECKS) ||
        values[item->out[0]].alias_input != 0)
        return false;
    const struct value *from = &values[item->in[0]], *to = &values[item->out[0]];
    bool is_known = node_has(item->node, OP_PASSES) ||
                    (shape_is_known(&from->shape) && shape_is_known(&to->shape) && !from->layout &&
                     shape_count(&from->shape) == shape_count(&to->shape));
    for (int i = 1; i < item->n_in; i++)
        is_known = is_known && region_sees_constant(&values[item->in[i]]);
    return is_known;
}

/* Memory that others may keep is counted, and has one shape. A value that may be dead is looked up
 * by the item that waits for it. */
static bool can_go_from_order(const struct plan *plan, const struct item *item)
{
    const struct value *value = &plan->values.items[item->out[0]];
    return item->flow == FLOW_ALWAYS && value->alias_of >= 0 &&
           (node_has(item->node, OP_PASSES) || !value->is_counted);
}

static bool can_go_from_dataflow(const struct views *s, const struct item *item)
{
    const struct value *from = &s->plan->values.items[item->in[0]];
    return from->kind == VALUE_COMPUTED && from->item >= 0 && !item->n_controls && !item->after.n &&
           !s->wanted[item - s->plan->items.items].end;
}

/* ---- removal ---- */

static void see_through(struct views *s, struct item *item, int i)
{
    struct plan *plan = s->plan;
    int v = item->in[i], source = v < 0 ? -1 : s->source[v];
    if (source < 0)
        return;
    const struct value *value = &plan->values.items[v];
    for (int k = 0; k < item->n_out; k++)
        if (plan->values.items[item->out[k]].alias_of == v)
            plan->values.items[item->out[k]].alias_of = source;
    plan->values.items[source].is_outgoing |= value->is_outgoing;
    item->in[i] = source;
    if (!shape_is_known(&value->shape) || /* then no view on the way changes the shape */
        shape_equal(&value->shape, &plan->values.items[source].shape))
        return;
    if (!item->seen) {
        item->seen = arena_array(&plan->memory, (size_t)item->n_in, sizeof *item->seen);
        memset(item->seen, -1, (size_t)item->n_in * sizeof *item->seen);
    }
    item->seen[i] = v;
}

/* Returns true if the item does not run. */
static bool resolve(struct views *s, struct item *item)
{
    for (int i = 0; i < item->n_in; i++)
        see_through(s, item, i);
    const struct wanted *wanted = &s->wanted[item - s->plan->items.items];
    if (!is_view(s->plan, item) || !wanted->value || wanted->value_chosen ||
        !(plan_has_order(s->plan, item->frame) ? can_go_from_order(s->plan, item)
                                               : can_go_from_dataflow(s, item)))
        return false;
    s->source[item->out[0]] = item->in[0];
    return item->removed = true;
}

/* Adds the first read of each variable. */
static void add_reads(struct arena *memory, use_vec *reads, const use_vec *more)
{
    vec_each(use, more) {
        bool known = false;
        for (size_t k = 0; k < reads->n && !known; k++)
            known = reads->items[k].variable == use->variable &&
                    (use->may_lack || !reads->items[k].may_lack);
        if (!known)
            vec_push_in(memory, reads, *use);
    }
}

/* A view's consumer comes later in the order, so some item reads for it. An item of a branch may
 * not run, so items behind it repeat the read. */
static void resolve_order(struct views *s, struct arena *memory)
{
    struct plan *plan = s->plan;
    use_vec reads = VEC_INIT; /* of views since the last item that always runs */
    int n = 0;
    for (int at = 0; at < plan->n_order; at++) {
        int id = plan->order[at];
        struct item *item = &plan->items.items[id];
        bool has_order = plan_has_order(plan, item->frame), goes = has_order && resolve(s, item);
        if (!goes)
            plan->order[n++] = id;
        else
            add_reads(memory, &reads, &item->uses);
        if (!has_order)
            continue;
        if (reads.n && !goes) { /* they come first: an error is found where it would have been */
            use_vec own = item->uses;
            item->uses = (use_vec)VEC_INIT;
            add_reads(&plan->memory, &item->uses, &reads);
            vec_each(use, &own) {
                vec_push_in(&plan->memory, &item->uses, *use);
            }
        }
        if (item->flow == FLOW_ALWAYS && !goes)
            reads.n = 0;
    }
    plan->n_order = n;
}

void plan_resolve_views(struct plan *plan, bool in_order)
{
    const struct plan_options *options = &plan->options;
    struct arena memory = ARENA_INIT;
    if (options->without >> DEVICE_PASS_VIEWS & 1 || options->cut == CUT_ITEMS ||
        options->check_numerics)
        return;
    struct views s = {.plan = plan,
                      .wanted = arena_array(&memory, plan->items.n + 1, sizeof *s.wanted),
                      .source = arena_array(&memory, plan->values.n + 1, sizeof *s.source)};
    memset(s.source, -1, plan->values.n * sizeof *s.source);
    for (int i = 0; i < (int)plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        bool is_flow = item->node && item->is_point && node_has(item->node, OP_CONTROL_FLOW);
        for (struct before b = {0}; !item->removed && plan_next_before(plan, i, &b);) {
            s.wanted[b.item].value |= b.slot >= 0;
            s.wanted[b.item].value_chosen |= b.slot >= 0 && is_flow;
            s.wanted[b.item].end |= b.slot < 0;
        }
    }
    vec_each(wish, &plan->wishes) {
        s.wanted[wish->from].end = s.wanted[wish->to].end = true;
    }
    if (in_order)
        resolve_order(&s, &memory);
    for (size_t i = 0; !in_order && i < plan->items.n; i++)
        if (!plan->items.items[i].removed && !plan_is_repeated(plan, &plan->items.items[i]))
            resolve(&s, &plan->items.items[i]);
    arena_release(&memory);
}
