/* SPDX-License-Identifier: Apache-2.0
 *
 * Order. Within a step, reads of a variable precede its writes unless an edge of the graph says
 * otherwise, and writes follow each other in the order of the graph: the planner adds what edges
 * are missing. A read costs nothing (the value is the variable's memory), so whatever consumes it
 * is a read, too; where a consumer must come after a write, the value is copied before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/plan_internal.h"

struct order {
    struct plan *plan;
    VEC(int) * after_of; /* by item: items that wait for it */
    char *reached;       /* by item: from the current writer */
    VEC(int) stack;
    VEC(int) touched;
};

struct use {
    struct variable *variable;
    int item;
    bool write;
    int alias; /* value that is the variable's memory, made by another item; -1 */
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

/* Marks everything that comes after `item`. */
static void reach(struct order *o, int item)
{
    for (size_t i = 0; i < o->touched.n; i++)
        o->reached[o->touched.items[i]] = 0;
    o->touched.n = 0;
    vec_push(&o->stack, item);
    while (o->stack.n) {
        int at = vec_pop(&o->stack);
        int_vec *next = (int_vec *)&o->after_of[at];
        for (size_t i = 0; i < next->n; i++) {
            if (!o->reached[next->items[i]]) {
                o->reached[next->items[i]] = 1;
                vec_push(&o->touched, next->items[i]);
                vec_push(&o->stack, next->items[i]);
            }
        }
    }
}

/* ---- uses of variables ---- */

typedef VEC(struct use) use_vec;

static void collect_item(const struct plan *plan, int id, use_vec *uses)
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
    for (size_t i = 0; i < plan->items.n; i++)
        for (int k = 0; k < plan->items.items[i].n_in; k++)
            if (plan->items.items[i].in[k] == alias)
                plan->items.items[i].in[k] = copy;
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

/* Orders the uses of one variable around one of its writers. True when a copy was made, so that the
 * uses must be collected anew. */
static bool order_writer(struct order *o, const struct use *uses, size_t n, int writer)
{
    reach(o, writer);
    for (size_t i = 0; i < n; i++) {
        int item = uses[i].item;
        if (item == writer)
            continue;
        if (!o->reached[item]) {
            if (!uses[i].write || item < writer)
                add_after(o, item, writer);
        } else if (!uses[i].write && uses[i].alias >= 0) {
            int reader = o->plan->values.items[uses[i].alias].item;
            if (reader != writer && !o->reached[reader]) {
                copy_read(o, uses[i].alias, writer);
                return true;
            }
        }
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
static bool order_variables(struct plan *plan)
{
    use_vec uses = VEC_INIT;
    for (size_t i = 0; i < plan->items.n; i++)
        if (!plan->items.items[i].removed)
            collect_item(plan, (int)i, &uses);
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

/* ---- the order of a static plan ---- */

struct schedule {
    const struct plan *plan;
    int *pending;
    int_vec *next;
    int *heap, n_heap;
};

/* Items that nothing waits for (updates, fetches) go first: they free what they consume. */
static long long priority(const struct schedule *s, int item)
{
    return (long long)item + (s->next[item].n ? (1LL << 40) : 0);
}

static void heap_push(struct schedule *s, int item)
{
    int i = s->n_heap++;
    while (i > 0 && priority(s, s->heap[(i - 1) / 2]) > priority(s, item)) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = item;
}

static int heap_pop(struct schedule *s)
{
    int top = s->heap[0], last = s->heap[--s->n_heap], i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap && priority(s, s->heap[child + 1]) < priority(s, s->heap[child]))
            child++;
        if (priority(s, s->heap[child]) >= priority(s, last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

static void schedule_edge(struct schedule *s, int from, int to)
{
    vec_push(&s->next[from], to);
    s->pending[to]++;
}

static void schedule_edges(struct schedule *s)
{
    const struct plan *plan = s->plan;
    for (size_t i = 0; i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        if (item->removed)
            continue;
        for (int k = 0; k < item->n_in; k++)
            if (item->in[k] >= 0 && plan->values.items[item->in[k]].item >= 0)
                schedule_edge(s, plan->values.items[item->in[k]].item, (int)i);
        for (int k = 0; k < item->n_controls; k++)
            if (!plan->items.items[item->controls[k]].removed)
                schedule_edge(s, item->controls[k], (int)i);
        for (size_t k = 0; k < item->after.n; k++)
            schedule_edge(s, item->after.items[k], (int)i);
    }
}

static int fixed_order(struct plan *plan, struct error *err)
{
    size_t n = plan->items.n, live = 0;
    struct schedule s = {.plan = plan};
    s.pending = mem_array(2 * n + 2, sizeof *s.pending);
    s.heap = s.pending + n;
    s.next = mem_array(n + 1, sizeof *s.next);
    schedule_edges(&s);
    plan->order = arena_array(&plan->memory, n + 1, sizeof *plan->order);
    for (size_t i = 0; i < n; i++) {
        if (plan->items.items[i].removed)
            continue;
        live++;
        if (s.pending[i] == 0)
            heap_push(&s, (int)i);
    }
    plan->n_order = 0;
    while (s.n_heap) {
        int item = heap_pop(&s);
        plan->order[plan->n_order++] = item;
        for (size_t k = 0; k < s.next[item].n; k++)
            if (--s.pending[s.next[item].items[k]] == 0)
                heap_push(&s, s.next[item].items[k]);
    }
    for (size_t i = 0; i < n; i++)
        vec_release(&s.next[i]);
    mem_free(s.next);
    mem_free(s.pending);
    if ((size_t)plan->n_order == live)
        return 0;
    return error_set(err, ERR_INTERNAL, "the plan has a cycle among reads and writes");
}

/* ---- holds: which items take and give a variable, so that steps may overlap ---- */

struct segment {
    struct variable *variable;
    int last; /* position of the last read of a run of reads; -1: none is open */
};

static void add_hold(struct item *item, bool take, struct variable *variable, bool write)
{
    struct hold hold = {variable, write};
    if (take)
        vec_push(&item->take, hold);
    else
        vec_push(&item->give, hold);
}

static struct segment *find_segment(struct segment *segments, size_t *n, struct variable *variable)
{
    for (size_t i = 0; i < *n; i++)
        if (segments[i].variable == variable)
            return &segments[i];
    segments[*n] = (struct segment){variable, -1};
    return &segments[(*n)++];
}

static void close_segment(struct plan *plan, struct segment *segment)
{
    if (segment->last >= 0)
        add_hold(&plan->items.items[plan->order[segment->last]], false, segment->variable, false);
    segment->last = -1;
}

static int by_address(const void *a, const void *b)
{
    const struct hold *x = a, *y = b;
    return x->variable < y->variable ? -1 : x->variable > y->variable;
}

/* Several holds taken at once are taken by address, so that two steps cannot wait for each other.
 */
static void sort_takes(struct plan *plan)
{
    for (size_t i = 0; i < plan->items.n; i++) {
        struct item *item = &plan->items.items[i];
        if (item->take.n > 1)
            qsort(item->take.items, item->take.n, sizeof *item->take.items, by_address);
    }
}

static int writes_first(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    return (int)y->write - (int)x->write;
}

static void hold_item(struct plan *plan, int position, struct segment *segments, size_t *n)
{
    struct item *item = &plan->items.items[plan->order[position]];
    use_vec uses = VEC_INIT;
    collect_item(plan, plan->order[position], &uses);
    if (uses.n)
        qsort(uses.items, uses.n, sizeof *uses.items, writes_first);
    for (size_t i = 0; i < uses.n; i++) {
        if (i && uses.items[i].variable == uses.items[i - 1].variable)
            continue; /* written and read by the same item: the write covers both */
        struct segment *segment = find_segment(segments, n, uses.items[i].variable);
        if (uses.items[i].write) {
            close_segment(plan, segment);
            add_hold(item, true, segment->variable, true);
            add_hold(item, false, segment->variable, true);
            continue;
        }
        if (segment->last < 0)
            add_hold(item, true, segment->variable, false);
        segment->last = position;
    }
    vec_release(&uses);
}

static void add_holds(struct plan *plan)
{
    size_t n_variables = 0, n = 0;
    for (size_t i = 0; i < plan->values.n; i++)
        n_variables += plan->values.items[i].kind == VALUE_VARIABLE;
    struct segment *segments = mem_array(n_variables + 1, sizeof *segments);
    for (int position = 0; position < plan->n_order; position++)
        hold_item(plan, position, segments, &n);
    for (size_t i = 0; i < n; i++)
        close_segment(plan, &segments[i]);
    sort_takes(plan);
    mem_free(segments);
}

int plan_order_items(struct plan *plan, struct error *err)
{
    while (order_variables(plan))
        ;
    if (!plan->is_static)
        return 0;
    int code = fixed_order(plan, err);
    if (!code)
        add_holds(plan);
    return code;
}
