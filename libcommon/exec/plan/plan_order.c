/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders reads and writes of variables within a step as graph/access.h demands: it is given items
 * and their dependencies, and the edges and copies of variables that it finds missing are added. In
 * a whole plan an alias of a variable is the variable's memory, and its consumers are users of the
 * read. In a dynamic one such values are copies already (dynamic.h).
 */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/plan/plan_steps.h"
#include "graph/access_nodes.h"

/* ---- uses of variables ---- */

/* Finds what each item reads and writes. Returns whether any item writes. */
static bool find_uses(struct plan *plan)
{
    bool writes = false;
    vec_each(item, &plan->items) {
        item->uses.n = 0;
        for (int k = 0; k < item->n_in && !item->removed; k++) {
            int root = item->in[k] < 0 ? -1 : plan_root_value(plan, item->in[k]);
            bool is_ref = item->refs && item->refs[k];
            if (root < 0 || plan->values.items[root].kind != VALUE_VARIABLE)
                continue;
            struct use use = {.variable = plan->values.items[root].variable,
                              .item = (int)(item - plan->items.items),
                              .input = k,
                              .write = is_ref && !node_has(item->node, OP_READS_REF),
                              .may_lack = is_ref && node_has(item->node, OP_UNINITIALIZED)};
            vec_push_in(&plan->memory, &item->uses, use);
            writes |= use.write;
        }
    }
    return writes;
}

/* ---- the input of graph/access.h ---- */

struct order {
    struct plan *plan;
    struct access_graph graph;
    int *first_access;      /* by item, and one more; accesses are sorted by item */
    int *reader;            /* by alias: the item that made the first of its chain */
    struct edge *reads_for; /* by item: the item and input that it reads for; else itself, -1 */
    struct arena memory;
};

/* ---- places that other parts demand ---- */

/* Finds the consumers for which the planner's own copies read. */
static void find_readers(struct order *o)
{
    const struct plan *plan = o->plan;
    o->reads_for = arena_array(&o->memory, plan->items.n + 1, sizeof *o->reads_for);
    for (size_t i = 0; i < plan->items.n; i++)
        o->reads_for[i] = (struct edge){(int)i, -1};
    for (size_t i = 0; plan->fetch_places && i < plan->items.n; i++) {
        const struct item *item = &plan->items.items[i];
        for (int k = 0; k < item->n_in && !item->removed; k++) {
            int from = plan_maker(plan, item, k);
            if (from >= 0 && !plan->items.items[from].node)
                o->reads_for[from] = (struct edge){(int)i, k};
        }
    }
}

/* Adds the places that plan_graph.c has marked. True: the read is to be copied. */
static bool add_places(struct order *o, int access, int id, int input)
{
    struct edge reader = o->reads_for[id];
    const struct item *item = &o->plan->items.items[reader.node];
    const struct attr_value *told = item->node ? node_attr(item->node, PLAN_PLACE) : NULL;
    bool taken = false;
    if (reader.slot >= 0)
        input = reader.slot;
    if (item->builtin == BUILTIN_FETCH && o->plan->fetch_places) {
        int place = o->plan->fetch_places[*(const int *)item->state];
        if (place)
            vec_push(&o->graph.places, ((struct access_place){access, 0, place}));
    }
    for (int i = 0; told && told->kind == ATTR_LIST_INT && i + 2 < told->n; i += 3) {
        int place = (int)told->ints[i + 2],
            frame = o->graph.frame ? o->graph.frame[id] : FRAME_ROOT;
        if (told->ints[i] != input)
            continue;
        /* The place is of the loop around the item at the depth that was told. */
        while (frame && o->plan->graph_frames->frames.items[frame].depth > told->ints[i + 1])
            frame = o->plan->parents[frame];
        vec_push(&o->graph.places, ((struct access_place){access, frame, abs(place)}));
        taken |= place < 0;
    }
    return taken;
}

/* Adds an item's direct use of a variable; several reads are one. */
static void add_access(struct order *o, const struct use *use)
{
    const struct item *item = &o->plan->items.items[use->item];
    int frame = o->graph.frame ? o->graph.frame[use->item] : 0;
    for (size_t i = o->graph.accesses.n; i-- > 0;) {
        const struct access *known = &o->graph.accesses.items[i];
        if (known->node != use->item)
            break;
        if (known->variable == use->variable->id && known->write == use->write)
            return;
    }
    bool has_value = !item->refs || !item->refs[use->input];
    struct access access = {.variable = use->variable->id,
                            .node = use->item,
                            .input = use->input,
                            .write = use->write,
                            .copies = has_value && !frame,
                            .taken =
                                add_places(o, (int)o->graph.accesses.n, use->item, use->input)};
    vec_push(&o->graph.accesses, access);
}

/* Users of other items' reads come last: in a loop the item that made their alias may have a larger
 * number. */
static void add_accesses(struct order *o)
{
    const struct value *values = o->plan->values.items;
    int n_items = (int)o->plan->items.n;
    find_readers(o);
    o->first_access = arena_array(&o->memory, (size_t)n_items + 2, sizeof *o->first_access);
    o->reader = arena_array(&o->memory, o->plan->values.n + 1, sizeof *o->reader);
    for (int v = 0; v < (int)o->plan->values.n; v++) { /* an alias comes after what it stands for */
        int of = values[v].alias_of;
        o->reader[v] = of >= 0 && values[of].alias_of >= 0 ? o->reader[of] : values[v].item;
    }
    for (int id = 0; id < n_items; id++) {
        o->first_access[id] = (int)o->graph.accesses.n;
        const struct item *item = &o->plan->items.items[id];
        vec_each(use, &item->uses) {
            if (values[item->in[use->input]].alias_of < 0)
                add_access(o, use);
        }
    }
    o->first_access[n_items] = (int)o->graph.accesses.n;
    vec_each(item, &o->plan->items) {
        vec_each(use, &item->uses) {
            int v = item->in[use->input], reader = o->reader[v];
            if (values[v].alias_of < 0)
                continue;
            for (int i = o->first_access[reader]; i < o->first_access[reader + 1]; i++) {
                const struct access *access = &o->graph.accesses.items[i];
                if (!access->write && access->variable == use->variable->id)
                    vec_push(&o->graph.users, ((struct arc){i, use->item}));
            }
        }
    }
}

/* In a whole plan all loops are items, so there are no frames. */
static void add_frames(struct order *o)
{
    const struct plan *plan = o->plan;
    size_t n = plan->items.n + 1;
    if (!plan->graph_frames || (plan->is_whole && !plan->has_branches))
        return;
    int *frame = arena_array(&o->memory, n, sizeof *frame);
    int *enters = arena_array(&o->memory, n, sizeof *enters);
    int *condition = arena_array(&o->memory, n, sizeof *condition);
    for (size_t i = 0; i + 1 < n; i++) {
        const struct item *item = &plan->items.items[i];
        frame[i] = item->frame;
        enters[i] = item->role == ROLE_ENTER ? item->child_frame : 0;
        condition[i] = item->condition;
    }
    access_name_conditions(&o->graph, plan->graph_frames, &o->memory);
    o->graph.condition = condition;
    if (plan->is_whole)
        return;
    o->graph.frame = frame;
    o->graph.enters = enters;
    o->graph.parent = plan->parents;
    o->graph.n_frames = (int)plan->frames.n;
}

static void describe(struct order *o)
{
    size_t n = o->plan->items.n;
    const char **names = arena_array(&o->memory, n + 1, sizeof *names);
    for (int i = 0; i < (int)n; i++) {
        const struct item *items = o->plan->items.items;
        names[i] = items[i].name;
        for (struct before b = {0}; !items[i].removed && plan_next_before(o->plan, i, &b);)
            if (!items[b.item].removed)
                vec_push(&o->graph.edges, ((struct arc){b.item, i}));
    }
    vec_each(wish, &o->plan->wishes) {
        vec_push(&o->graph.wishes, *wish);
    }
    o->graph.n = (int)n;
    o->graph.names = names;
    add_frames(o);
    add_accesses(o);
}

/* ---- additions to the plan ---- */

/* Puts the copy in place of the variable's value, in the item and in aliases among its outputs. */
static void use_copy(struct plan *plan, int id, const struct variable *variable, int copy)
{
    struct item *item = &plan->items.items[id];
    for (int k = 0; k < item->n_in; k++) {
        int v = item->in[k];
        const struct value *value = v < 0 ? NULL : &plan->values.items[v];
        if (!value || value->kind != VALUE_VARIABLE || value->variable != variable ||
            (item->refs && item->refs[k]))
            continue;
        for (int i = 0; i < item->n_out; i++) {
            struct value *out = &plan->values.items[item->out[i]];
            if (out->alias_of == v || (!item->is_point && out->alias_input == k))
                out->alias_of = copy; /* in a dynamic plan it was not marked as one */
        }
        item->in[k] = copy;
    }
}

static void put_after(struct plan *plan, int item, int before)
{
    vec_push_in(&plan->memory, &plan->items.items[item].after, before);
}

static void add_orders(struct plan *plan, const arc_vec *edges)
{
    vec_each(edge, edges) {
        if (edge->to >= 0)
            put_after(plan, edge->to, edge->from);
    }
}

static int order_all(struct order *o, struct error *err)
{
    struct plan *plan = o->plan;
    struct access_order found;
    describe(o);
    int code = access_order_find(&o->graph, &found, err);
    add_orders(plan, &found.follows);
    add_orders(plan, &found.edges);
    for (size_t i = 0; !code && i < found.copies.n; i++) {
        const struct access_copy *around = &found.copies.items[i];
        const struct access *read = &o->graph.accesses.items[around->access];
        int v = plan->items.items[read->node].in[read->input], copy = plan_add_copy(plan, v);
        int id = plan->values.items[copy].item;
        use_copy(plan, read->node, plan->values.items[v].variable, copy);
        if (around->after >= 0)
            put_after(plan, id, around->after);
        put_after(plan, around->before, id);
    }
    for (int v = 0; !code && found.copies.n && v < (int)plan->values.n; v++) {
        struct value *value = &plan->values.items[v];
        for (value->root = v; plan->values.items[value->root].alias_of >= 0;)
            value->root = plan->values.items[value->root].alias_of;
    }
    if (!code && found.copies.n)
        find_uses(plan);
    vec_each(wish, &found.refused) {
        o->graph.wishes.items[*wish].to = -1;
    }
    add_orders(plan, &o->graph.wishes);
    access_order_release(&found);
    access_graph_release(&o->graph);
    return code;
}

int plan_order_variables(struct plan *plan, struct error *err)
{
    struct order o = {.plan = plan, .memory = ARENA_INIT};
    int code = find_uses(plan) || plan->wishes.n ? order_all(&o, err) : 0;
    arena_release(&o.memory);
    return code;
}
