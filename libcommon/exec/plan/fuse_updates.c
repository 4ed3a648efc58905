/* SPDX-License-Identifier: Apache-2.0
 *
 * An update whose gradient is cast from 16 bits for it alone reads the 16-bit gradient.
 *
 * Updates of variables that differ only in what they update become one node, in the place of the
 * last one of them: the same nodes decide whether and when they run, and which writes of variables
 * they come after; the same nodes wait for them; and nothing else in the step writes the variables
 * that they update. One node instead of several makes no new path between two other nodes, so it
 * makes no cycle, not even through other parts of the graph, and each read of a variable sees the
 * value that it saw before.
 */
#include <string.h>

#include "exec/plan/arrival_set.h"
#include "exec/plan/fuse_private.h"
#include "graph/access_nodes.h"
#include "graph/infer.h"
#include "graph/walk.h"

#define GROUP_MAX 32 /* their gradients are kept until the last one is there */

struct updates {
    struct fuse_groups *groups;
    VEC(int) updates;           /* that may be joined, in the graph's order */
    const int *variable;        /* by node: the Variable that its output refers to; -1: none */
    struct access_graph access; /* the reads and writes of variables */
    bool *updated;              /* by variable: an update writes it */
    uint64_t *entries;          /* by node: bit i: entry i (63: i or above) needs it; or all bits */
    const bool *shows; /* by node: its output may be memory of a variable that is updated */
    int *cause;        /* by node: its first cause; -1: it is no cause */
    struct arrival_sets causes, nodes;
    int *led;     /* by node: the nearest causes on the paths to it */
    int *reached; /* by node: all causes from which a path leads to it */
    int *waiters; /* by node: for updates, the nodes that wait for them */
};

/* A gradient stays in memory until the last one of its group is there. A larger one than this keeps
 * a device busy for longer than it takes to enqueue an update of its own. */
#define GRADIENT_BYTES_MAX (2 << 20)
#define CAUSES_MAX 8192 /* with more, nothing is joined: sets grow with their square */

/* The op, by the row of the node's kernel, that updates several variables, or by narrower
 * gradients; NULL: there is none. */
static const char *joined_op(const struct fuse_groups *g, const struct node *node)
{
    const struct kernel_row *row = fuse_is_update(node) ? fuse_row(g, node) : NULL;
    return row ? fuse_known_op(g, row->with_others) : NULL;
}

/* The gradient that the joined update takes: the 16-bit input of a Cast that only this update uses,
 * or the update's own. */
static struct edge gradient_of(const struct fuse_groups *g, const struct node *update)
{
    struct edge given = update->inputs[update->op->def->descent.gradient];
    const struct node *cast = graph_node(g->graph, fuse_gradient(g, update).node);
    if (cast->op->def->identity.when != SAME_TYPE || !fuse_is_own(g, cast, update) ||
        graph_output(g->graph, cast->inputs[0])->is_ref) /* it is read when the Cast runs */
        return given;
    enum dtype to = graph_output(g->graph, given)->type,
               from = graph_output(g->graph, cast->inputs[0])->type;
    bool is_narrow = to == FLOAT32 && dtype_is_floating(from) && dtype_bytes(from) == 2;
    return is_narrow ? cast->inputs[0] : given;
}

static bool is_narrow(const struct fuse_groups *g, const struct node *update)
{
    return graph_output(g->graph, gradient_of(g, update))->type != update->outputs[0].type;
}

/* ---- what runs in one step: all of a plan's graph, which has no entries ---- */

static void find_entries(struct updates *u)
{
    const struct graph *graph = u->groups->graph;
    memset(u->entries, graph->entries.n ? 0 : 0xff, graph->nodes.n * sizeof *u->entries);
    for (size_t i = 0; i < graph->entries.n; i++) {
        struct graph_walk walk = graph_walk_new(&u->groups->memory, graph);
        graph_walk_entry(&walk, &graph->entries.items[i]);
        const bool *runs = graph_walk_end(&walk, graph);
        for (size_t k = 0; k < graph->nodes.n; k++)
            u->entries[k] |= (uint64_t)runs[k] << (i < 64 ? i : 63);
    }
}

/* Returns whether two nodes write one variable in one step. */
static bool write_same(const struct updates *u, const struct access *x, const struct access *y)
{
    return x->write && y->write && x->variable == y->variable && x->node != y->node &&
           u->entries[x->node] & u->entries[y->node];
}

/* ---- what leads to a node ---- */

/* A cause is a node, or an edge of it, that decides whether or when others run, or what they see of
 * variables: control flow (one cause for each output, and one for waiting on the node), async ops,
 * ops whose output shapes depend on data, and writes. */
static int number_causes(struct updates *u)
{
    const struct graph *graph = u->groups->graph;
    int n = 0;
    memset(u->cause, -1, graph->nodes.n * sizeof *u->cause);
    for (size_t i = 0; i < u->access.accesses.n; i++)
        if (u->access.accesses.items[i].write)
            u->cause[u->access.accesses.items[i].node] = 0;
    graph_each(node, graph) {
        if (u->cause[node->id] < 0 &&
            !node_has(node, OP_CONTROL_FLOW | OP_ASYNC | OP_SHAPED_BY_DATA))
            continue;
        u->cause[node->id] = n;
        n += node_has(node, OP_CONTROL_FLOW) ? node->n_outputs + 1 : 1;
    }
    return n;
}

/* All nodes behind a cause depend alike on the causes before it, so the nearest causes suffice to
 * tell updates apart. */
static void find_causes(struct updates *u)
{
    const struct fuse_groups *g = u->groups;
    graph_each_ordered(node, g->graph, g->order) {
        int led = SET_EMPTY, reached = SET_EMPTY;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            struct edge edge = node_dependency(node, k);
            if (edge.node < 0)
                continue;
            int cause = u->cause[edge.node], before = u->reached[edge.node];
            bool is_apart = node_has(graph_node(g->graph, edge.node), OP_CONTROL_FLOW);
            led = cause < 0
                      ? arrival_set_union(&u->causes, led, u->led[edge.node])
                      : arrival_set_with(&u->causes, led, cause + (is_apart ? edge.slot + 1 : 0));
            if (cause >= 0)
                before = arrival_set_with(&u->causes, before, cause);
            reached = arrival_set_union(&u->causes, reached, before);
        }
        u->led[node->id] = led;
        u->reached[node->id] = reached;
    }
}

/* Writes of one variable that no path orders are ordered by their names and by all other writes
 * (graph/access.h); joining some of them may change that order. */
static bool has_race(const struct updates *u)
{
    for (size_t i = 0; i < u->access.accesses.n; i++)
        for (size_t k = i + 1; k < u->access.accesses.n; k++) {
            const struct access *x = &u->access.accesses.items[i];
            const struct access *y = &u->access.accesses.items[k];
            if (write_same(u, x, y) &&
                !arrival_set_has(&u->causes, u->reached[y->node], u->cause[x->node]) &&
                !arrival_set_has(&u->causes, u->reached[x->node], u->cause[y->node]))
                return true;
        }
    return false;
}

/* ---- updates ---- */

/* Returns whether the device wants fewer updates, at the price of keeping gradients. */
static bool wants_joined(const struct fuse_groups *g, const struct node *update)
{
    return fuse_row(g, update)->flags & KERNEL_JOINED;
}

static bool is_small(const struct updates *u, const struct node *node)
{
    const struct node_output *gradient =
        graph_output(u->groups->graph, gradient_of(u->groups, node));
    const struct node_output *updated = graph_output(u->groups->graph, node->inputs[0]);
    return wants_joined(u->groups, node) && shape_is_known(&gradient->shape) &&
           shape_equal(&gradient->shape, &updated->shape) &&
           shape_bytes(&gradient->shape, gradient->type) <= GRADIENT_BYTES_MAX;
}

/* Returns whether nothing else writes the variables, and no update changes the other inputs. */
static bool keeps_apart(const struct updates *u, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node *from = graph_node(u->groups->graph, node->inputs[i].node);
        bool is_ref = node->op->inputs[i].is_ref;
        struct access own = {.variable = u->variable[from->id], .node = node->id, .write = true};
        if (is_ref ? from->n_inputs
                   : u->shows[from->id] || u->shows[gradient_of(u->groups, node).node])
            return false;
        for (size_t k = 0; is_ref && k < u->access.accesses.n; k++)
            if (write_same(u, &own, &u->access.accesses.items[k]))
                return false;
    }
    return true;
}

/* Returns whether the update may be renamed and moved: only nodes that wait for it know it. */
static bool may_change(const struct updates *u, const struct node *node)
{
    const struct fuse_groups *g = u->groups;
    bool is_known = g->named[node->id] || fuse_has_marks(node, true) ||
                    g->uses[node->id] != arrival_set_count(&u->nodes, u->waiters[node->id]);
    return fuse_is_update(node) && !is_known && keeps_apart(u, node) && joined_op(g, node);
}

/* ---- which are alike ---- */

/* Returns whether both are the same value, or equal constants. */
static bool same_scalar(const struct graph *graph, struct edge x, struct edge y)
{
    const struct tensor *a = graph_constant(graph, x), *b = graph_constant(graph, y);
    struct attr_value of_a, of_b;
    if (edge_equal(x, y) || !a || !b)
        return edge_equal(x, y);
    of_a = attr_tensor(a);
    of_b = attr_tensor(b);
    return attr_equal(&of_a, &of_b);
}

static bool are_alike(const struct updates *u, const struct node *x, const struct node *y)
{
    if (x->op != y->op || !fuse_same_place(x, y) || u->waiters[x->id] != u->waiters[y->id] ||
        u->led[x->id] != u->led[y->id] || !is_small(u, y) || !fuse_attrs_agree(x, y) ||
        graph_output(u->groups->graph, gradient_of(u->groups, x))->type !=
            graph_output(u->groups->graph, gradient_of(u->groups, y))->type)
        return false;
    for (int i = 0; i < x->n_inputs; i++)
        if (!x->op->inputs[i].is_ref && i != x->op->def->descent.gradient &&
            !same_scalar(u->groups->graph, x->inputs[i], y->inputs[i]))
            return false;
    return true;
}

static void look_for_updates(struct updates *u)
{
    struct fuse_groups *g = u->groups;
    size_t n = g->graph->nodes.n + 1;
    u->variable = access_variables(g->graph, &g->memory);
    u->updated = arena_array(&g->memory, n, sizeof *u->updated);
    u->entries = arena_array(&g->memory, n, sizeof *u->entries);
    u->cause = arena_array(&g->memory, n, sizeof *u->cause);
    u->led = arena_array(&g->memory, n, sizeof *u->led);
    u->reached = arena_array(&g->memory, n, sizeof *u->reached);
    u->waiters = arena_array(&g->memory, n, sizeof *u->waiters);
    arrival_sets_init(&u->nodes, (int)n);
    graph_each(node, g->graph) {
        access_add_node(&u->access, g->graph, u->variable, node);
        for (int k = 0; k < node->n_controls; k++)
            if (fuse_is_update(graph_node(g->graph, node->controls[k]))) {
                int *waiters = &u->waiters[node->controls[k]];
                *waiters = arrival_set_with(&u->nodes, *waiters, node->id);
            }
    }
    vec_each(access, &u->access.accesses) {
        u->updated[access->variable] |=
            access->write && fuse_is_update(graph_node(g->graph, access->node));
    }
    int n_causes = number_causes(u);
    arrival_sets_init(&u->causes, n_causes);
    if (n_causes > CAUSES_MAX)
        return;
    find_entries(u);
    u->shows = access_shown(g->graph, g->order, u->variable, u->updated, &g->memory);
    find_causes(u);
    if (has_race(u))
        return;
    graph_each_ordered(node, g->graph, g->order) {
        if (may_change(u, node))
            vec_push(&u->updates, node->id);
    }
}

/* ---- groups ---- */

static void claim_group(struct updates *u, const int *group, int n)
{
    struct fuse_groups *g = u->groups;
    int end = group[0];
    for (int i = 1; i < n; i++)
        end = group[i] > end ? group[i] : end;
    for (int i = 0; i < n; i++) {
        const struct node *update = graph_node(g->graph, group[i]);
        g->end[group[i]] = end;
        fuse_claim_gradient(g, update, gradient_of(g, update), end);
        g->n_gone += is_narrow(g, update);
    }
    g->n_gone += n - 1;
}

/* Goes in the graph's order, so that the gradients of a group are made close together. */
static void find_groups(struct updates *u)
{
    const struct graph *graph = u->groups->graph;
    const int *updates = u->updates.items;
    for (size_t i = 0; i < u->updates.n; i++) {
        const struct node *first = graph_node(graph, updates[i]);
        int group[GROUP_MAX] = {updates[i]}, n = 1;
        if (u->groups->end[updates[i]] >= 0)
            continue;
        bool joins = is_small(u, first);
        for (size_t k = i + 1; k < u->updates.n && joins; k++)
            if (n < GROUP_MAX && u->groups->end[updates[k]] < 0 &&
                are_alike(u, first, graph_node(graph, updates[k])))
                group[n++] = updates[k];
        if (n > 1 || is_narrow(u->groups, first))
            claim_group(u, group, n);
    }
}

/* ---- their nodes ---- */

/* The inputs of the node that several updates become: one kind after the other. */
enum input_part { VARIABLES, SLOTS, GRADIENTS, SCALARS, N_PARTS };

static enum input_part part_of_input(const struct node *update, int input)
{
    if (update->op->inputs[input].is_ref)
        return input ? SLOTS : VARIABLES;
    return input == update->op->def->descent.gradient ? GRADIENTS : SCALARS;
}

void fuse_updates_describe(struct fuse_groups *groups, const struct node *end,
                           struct node_spec *spec)
{
    fuse_edges inputs = VEC_INIT;
    int64_t n[N_PARTS] = {0};
    for (int part = 0; part < N_PARTS; part++)
        for (int i = 0; i <= end->id && !(part == SCALARS && n[part]); i++) {
            const struct node *update = graph_node(groups->graph, i);
            bool is_part = groups->end[i] == end->id && fuse_is_update(update);
            for (int k = 0; k < update->n_inputs && is_part; k++)
                if (part_of_input(update, k) == (enum input_part)part) {
                    vec_push(&inputs,
                             part == GRADIENTS ? gradient_of(groups, update) : update->inputs[k]);
                    n[part]++;
                }
        }
    const struct attr_value *nesterov = node_attr(end, "use_nesterov");
    struct attr attrs[] = {
        /* sorted by name, as a node's are */
        {"G", attr_type(graph_output(groups->graph, gradient_of(groups, end))->type)},
        {"M", attr_int(n[SLOTS])},
        {"N", attr_int(n[VARIABLES])},
        {"S", attr_int(n[SCALARS])},
        {"T", attr_type(end->outputs[0].type)},
        {"rule", attr_string(end->op->def->name)},
        {"use_nesterov", attr_bool(nesterov && nesterov->b)},
    };
    spec->op = joined_op(groups, end);
    spec->attrs = arena_copy(&groups->to->arena, attrs, sizeof attrs);
    spec->n_attrs = sizeof attrs / sizeof *attrs;
    fuse_take_inputs(groups, &inputs, spec);
}

void fuse_updates_find(struct fuse_groups *g)
{
    struct updates u = {.groups = g};
    bool joins = false; /* on devices that never ask for it, such as the CPU, nothing is searched */
    graph_each(node, g->graph) {
        joins |= joined_op(g, node) && (is_narrow(g, node) || wants_joined(g, node));
    }
    if (!joins)
        return;
    g->n_outputs = 0;
    look_for_updates(&u);
    find_groups(&u);
    arrival_sets_release(&u.causes);
    arrival_sets_release(&u.nodes);
    access_graph_release(&u.access);
    vec_release(&u.updates);
}
