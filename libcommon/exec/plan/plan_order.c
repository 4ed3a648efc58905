/* SPDX-License-Identifier: Apache-2.0
 *
 * Within a step, reads of a variable precede its writes unless an edge of the graph says
 * otherwise, and writes follow each other in the order of the graph: the planner adds what edges
 * are missing. A read costs nothing (the value is the variable's memory), so whatever consumes it
 * is a read, too; where a consumer must come after a write, the value is copied before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/run/dynamic.h"

struct order {
    struct plan *plan;
    const struct dynamic *frames; /* NULL: all items are in the root */
    VEC(int) * after_of;          /* by item: items that wait for it */
    char *reached;                /* by item: from the current writer */
    VEC(int) stack;
    VEC(int) touched;
};

typedef VEC(int) int_vec;

static void add_successor(struct order *o, int from, int to)
{
    int_vec *v = (int_vec *)&o->after_of[from];
    vec_push(v, to);
}

static void add_after(struct order *o, int before, int item)
{
    vec_push(&o->plan->items.items[item].after, before);
    add_successor(o, before, item);
}

static void collect_edges(struct order *o)
{
    struct plan *plan = o->plan;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        if (item->removed)
            continue;
        for (int k = 0; k < item->n_in; k++) {
            int from = item->in[k] < 0 ? -1 : plan->values.items[item->in[k]].item;
            if (from >= 0 && from < (int)i)
                add_successor(o, from, (int)i);
        }
        for (int k = 0; k < item->n_controls; k++)
            if (!plan->items.items[item->controls[k]].removed)
                add_successor(o, item->controls[k], (int)i);
    }
}

static void touch(struct order *o, int item)
{
    if (o->reached[item])
        return;
    o->reached[item] = 1;
    vec_push(&o->touched, item);
    vec_push(&o->stack, item);
}

static int frame_of(const struct order *o, int item)
{
    return o->frames ? o->frames->items[item].frame : 0;
}

/* All items of a loop and of the loops in it. */
static void touch_loop(struct order *o, int frame)
{
    const struct dynamic *d = o->frames;
    for (size_t f = (size_t)frame; f < d->frames.n; f++)
        if (dynamic_common_frame(d, frame, (int)f) == frame)
            for (size_t i = 0; i < d->frames.items[f].items.n; i++)
                touch(o, d->frames.items[f].items.items[i]);
}

/* A loop within `frame` is reached as a whole; what is outside of `frame` is not followed. */
static void touch_in(struct order *o, int frame, int item)
{
    int of = frame_of(o, item);
    if (of == frame)
        touch(o, item);
    else if (dynamic_common_frame(o->frames, frame, of) == frame && !o->reached[item])
        touch_loop(o, dynamic_frame_below(o->frames, frame, of));
}

/* Marks everything that comes after `item`, or after the loop that it is in, within `frame`. */
static void reach(struct order *o, int frame, int item)
{
    for (size_t i = 0; i < o->touched.n; i++)
        o->reached[o->touched.items[i]] = 0;
    o->touched.n = 0;
    if (frame_of(o, item) == frame)
        vec_push(&o->stack, item);
    else
        touch_in(o, frame, item);
    while (o->stack.n) {
        int_vec *next = (int_vec *)&o->after_of[vec_pop(&o->stack)];
        for (size_t i = 0; i < next->n; i++)
            touch_in(o, frame, next->items[i]);
    }
}

/* ---- uses of variables ---- */

void plan_collect_uses(const struct plan *plan, int id, use_vec *uses)
{
    const struct item *item = &plan->items.items[id];
    for (int k = 0; k < item->n_in; k++) {
        if (item->in[k] < 0)
            continue;
        int root = plan_root_value(plan, item->in[k]);
        const struct value *value = &plan->values.items[root];
        if (value->kind != VALUE_VARIABLE)
            continue;
        bool write = item->refs && item->refs[k] && !node_has(item->node, OP_READS_REF);
        struct use use = {value->variable, id, write, root == item->in[k] ? -1 : item->in[k]};
        vec_push(uses, use);
    }
}

static int by_variable(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Replaces an aliased read by a copy made right behind it, for all its consumers. */
static void copy_read(struct order *o, int alias, int writer)
{
    struct plan *plan = o->plan;
    const struct value from = plan->values.items[alias];
    int copy = plan_add_value(plan, from.type, &from.shape);
    plan->values.items[copy].on_device = from.on_device;
    for (size_t i = 0; i < plan->items.n; i++)
        for (int k = 0; k < plan->items.items[i].n_in; k++)
            if (plan->items.items[i].in[k] == alias)
                plan->items.items[i].in[k] = copy;
    for (size_t v = 0; v < plan->values.n; v++) {
        struct value *value = &plan->values.items[v];
        if (value->alias_of == alias)
            value->alias_of = copy;
        if (value->alias_of >= 0)
            value->root = plan->values.items[value->alias_of].root;
    }
    struct item item = {.code = &plan_copy_code,
                        .name = "copy",
                        .kernel = "copy",
                        .n_in = 1,
                        .n_out = 1,
                        .needs_initialized = true};
    item.in = arena_alloc(&plan->memory, 2 * sizeof *item.in);
    item.out = item.in + 1;
    item.in[0] = alias;
    item.out[0] = copy;
    int id = plan_add_item(plan, &item);
    plan->values.items[copy].item = id;
    vec_push(&plan->items.items[writer].after, id);
}

/* Orders one use around a writer whose consequences are marked. True when a copy was made, so that
 * the uses must be collected anew. */
static bool order_use(struct order *o, const struct use *use, int writer)
{
    if (!o->reached[use->item]) {
        if (!use->write || use->item < writer)
            add_after(o, use->item, writer);
    } else if (!use->write && use->alias >= 0) {
        int reader = o->plan->values.items[use->alias].item;
        if (reader != writer && !o->reached[reader]) {
            copy_read(o, use->alias, writer);
            return true;
        }
    }
    return false;
}

/* Orders the uses of one variable around one of its writers: those in the same loop (or outside of
 * loops), then those in each enclosing one, for which the inner loop is one thing. */
static bool order_writer(struct order *o, const struct use *uses, size_t n, int writer)
{
    int own = frame_of(o, writer), frame = own;
    while (frame >= 0) {
        reach(o, frame, writer);
        for (size_t i = 0; i < n; i++) {
            int of = frame_of(o, uses[i].item);
            bool here = !own || dynamic_common_frame(o->frames, own, of) == frame;
            if (uses[i].item != writer && here && order_use(o, &uses[i], writer))
                return true;
        }
        frame = frame ? o->frames->frames.items[frame].parent : -1;
    }
    return false;
}

static bool order_variable(struct order *o, const struct use *uses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (uses[i].write && order_writer(o, uses, n, uses[i].item))
            return true;
    return false;
}

static void order_init(struct order *o, struct plan *plan)
{
    memset(o, 0, sizeof *o);
    o->plan = plan;
    o->frames = plan->dynamic;
    o->after_of = mem_array(plan->items.n + 1, sizeof *o->after_of);
    o->reached = mem_alloc(plan->items.n + 1);
    collect_edges(o);
    for (size_t i = 0; i < plan->items.n; i++)
        for (size_t k = 0; k < plan->items.items[i].after.n; k++)
            add_successor(o, plan->items.items[i].after.items[k], (int)i);
}

static void order_release(struct order *o, size_t n_items)
{
    for (size_t i = 0; i < n_items; i++)
        vec_release((int_vec *)&o->after_of[i]);
    mem_free(o->after_of);
    mem_free(o->reached);
    vec_release(&o->stack);
    vec_release(&o->touched);
}

/* One round; true when a copy was made. */
static bool order_once(struct plan *plan)
{
    use_vec uses = VEC_INIT;
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed)
            plan_collect_uses(plan, (int)i, &uses);
    if (uses.n)
        qsort(uses.items, uses.n, sizeof *uses.items, by_variable);
    struct order o;
    order_init(&o, plan);
    size_t n_items = plan->items.n;
    bool again = false;
    for (size_t from = 0, to; from < uses.n && !again; from = to) {
        for (to = from; to < uses.n && uses.items[to].variable == uses.items[from].variable; to++)
            ;
        again = order_variable(&o, uses.items + from, to - from);
    }
    order_release(&o, n_items);
    vec_release(&uses);
    return again;
}

void plan_order_variables(struct plan *plan)
{
    while (order_once(plan))
        ;
}

/* ---- what must have a value ---- */

static void add_check(struct item *item, struct variable *variable)
{
    for (int i = 0; i < item->n_checked; i++)
        if (item->checked[i] == variable)
            return;
    item->checked[item->n_checked++] = variable;
}

static void find_checks(struct plan *plan, struct item *item)
{
    for (int i = 0; i < item->n_in; i++) {
        bool may_lack = !item->needs_initialized && item->refs && item->refs[i];
        const struct value *root = &plan->values.items[plan_root_value(plan, item->in[i])];
        if (may_lack || !root->variable)
            continue;
        if (!item->checked)
            item->checked = arena_array(&plan->memory, (size_t)item->n_in, sizeof *item->checked);
        add_check(item, root->variable);
    }
}

void plan_find_checks(struct plan *plan)
{
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed)
            find_checks(plan, &plan->items.items[i]);
}
