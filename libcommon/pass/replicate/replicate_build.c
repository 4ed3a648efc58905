/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that replication makes, new or copied from the source. After an error, saved in r->w.err,
 * new nodes are edges without a node.
 */
#include <stdarg.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/device_name.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_plan.h"

/* ---- names, devices, copies ---- */

const char *replicate_device(struct replicator *r, const struct node *node, const char *job)
{
    struct device_name asked, wanted;
    struct error ignored = ERROR_INIT;
    bool is_parsed = !device_name_parse(&asked, node->device, &ignored);
    if (is_parsed && r->options->replica_tasks > 1 && *asked.job && !strcmp(job, SHARD_DEVICE))
        return job; /* the script says which task of a replica computes with a variable */
    if (!is_parsed || *asked.job || device_name_parse(&wanted, job, &ignored) ||
        device_name_merge(&asked, &wanted, &ignored))
        return node->device;
    return device_name_text(&r->w.to->arena, &asked);
}

struct edge replicate_add(struct replicator *r, struct node_spec spec, const char *name, ...)
{
    va_list args;
    if (r->w.err->code)
        return EDGE_NONE;
    va_start(args, name);
    spec.name = rewrite_free_name(r->w.from, r->w.to, arena_vprintf(&r->w.to->arena, name, args));
    va_end(args);
    spec.device = spec.device ? spec.device : WORKER_DEVICE;
    const struct node *node = graph_add(r->w.to, &spec, r->w.err);
    if (node)
        rewrite_note(&r->w, node->name, spec.device);
    return node ? (struct edge){node->id, 0} : EDGE_NONE;
}

struct node_spec replicate_spec(const char *op, const struct edge *inputs, int n_inputs,
                                const struct attr *attrs, int n_attrs)
{
    return (struct node_spec){
        .op = op, .inputs = inputs, .n_inputs = n_inputs, .attrs = attrs, .n_attrs = n_attrs};
}

struct node_spec replicate_spec_of_two(const char *op, const struct edge inputs[2])
{
    return (struct node_spec){
        .op = op, .inputs = inputs, .n_inputs = edge_exists(inputs[0]) + edge_exists(inputs[1])};
}

struct node_spec replicate_beside(struct replicator *r, const char *variable, struct node_spec spec)
{
    struct attr *attrs = arena_array(&r->w.arena, (size_t)spec.n_attrs + 1, sizeof *attrs);
    for (int i = 0; i < spec.n_attrs; i++)
        attrs[i] = spec.attrs[i];
    attrs[spec.n_attrs++] = group_attr(&r->w.to->arena, variable);
    spec.attrs = attrs;
    spec.device = SHARD_DEVICE;
    return spec;
}

static struct node_spec spec_of_value(struct replicator *r, enum dtype type,
                                      const struct shape *shape, const void *data)
{
    const struct tensor borrowed = tensor_borrow(type, shape, (void *)data);
    const struct tensor *value = arena_copy(&r->w.arena, &borrowed, sizeof borrowed);
    const struct attr attrs[] = {{"dtype", attr_type(type)}, {"value", attr_tensor(value)}};
    return replicate_spec("Const", NULL, 0, arena_copy(&r->w.arena, attrs, sizeof attrs), 2);
}

struct node_spec replicate_spec_of_number(struct replicator *r, enum dtype type, double value)
{
    struct tensor number = {.type = type, .data = arena_alloc(&r->w.arena, sizeof(double))};
    tensor_set_float64(&number, 0, value);
    return spec_of_value(r, type, &SHAPE_SCALAR, number.data);
}

void replicate_mark_sent(struct replicator *r, int id, int priority)
{
    const struct attr wire = {"_wire", attr_type(r->options->wire)};
    const struct attr urgency = {"_priority", attr_int(priority)};
    struct node *node = r->w.err->code ? NULL : graph_node(r->w.to, id);
    if (node && r->options->wire != DTYPE_INVALID && node->n_outputs &&
        node->outputs[0].type == FLOAT32)
        graph_set_attr(r->w.to, node, &wire, r->w.err);
    if (node && priority && !r->w.err->code)
        graph_set_attr(r->w.to, node, &urgency, r->w.err);
}

/* ---- edges ---- */

struct edge replicate_edge(struct replicator *r, struct edge edge)
{
    if (!edge_exists(edge))
        return EDGE_NONE;
    if (!has(r, edge.node, FACT_WRITER))
        return (struct edge){r->copy[edge.node], edge.slot};
    if (edge.slot == CONTROL_SLOT)
        return (struct edge){r->done, CONTROL_SLOT};
    /* The variable is read after the updates of the step. */
    const struct node *variable = access_written(r->w.from, graph_node(r->w.from, edge.node));
    struct edge ref = {r->copy[variable->id], 0};
    struct node_spec spec = replicate_spec("Identity", &ref, 1, NULL, 0);
    spec.controls = &r->done;
    spec.n_controls = 1;
    spec = replicate_beside(r, variable->name, spec);
    if (r->copy[edge.node] < 0)
        r->copy[edge.node] = replicate_add(r, spec, "%s/after", variable->name).node;
    return (struct edge){r->copy[edge.node], 0};
}

/* ---- nodes ---- */

int replicate_after(struct replicator *r, const char *op, const char *device,
                    const node_list *nodes, const char *name)
{
    const struct node_spec spec = {
        .op = op, .controls = nodes->items, .n_controls = (int)nodes->n, .device = device};
    return replicate_add(r, spec, "%s", name).node;
}

struct edge replicate_also(struct replicator *r, node_list *nodes, struct edge made)
{
    if (edge_exists(made))
        vec_push_in(&r->w.arena, nodes, made.node);
    return made;
}

void replicate_wait(struct replicator *r, struct edge what, int before)
{
    if (!r->w.err->code && edge_exists(what) && before >= 0)
        graph_add_control(r->w.to, graph_node(r->w.to, what.node), before);
}

int replicate_entry(struct replicator *r, const char *name, const struct edge *edges, int n)
{
    if (!r->w.err->code)
        graph_add_entry(r->w.to, name, edges, n);
    return r->w.err->code;
}

void replicate_wait_for_checks(struct replicator *r, struct edge what)
{
    vec_each(check, &r->checks)
        replicate_wait(r, what, r->copy[*check]);
}

struct edge replicate_variable(struct replicator *r, const struct attr *mark, const char *name,
                               enum dtype type, const struct shape *shape)
{
    struct attr attrs[] = {{"dtype", attr_type(type)},
                           {"shape", attr_shape(shape)},
                           *mark,
                           {"_trainable", attr_bool(false)}};
    return replicate_node(r, "Variable", NULL, 0, attrs, 4, "%s", name);
}

struct edge replicate_local(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape)
{
    const struct attr mark = {WORKER_LOCAL, attr_bool(true)};
    return replicate_variable(r, &mark, name, type, shape);
}

const char *replicate_text(struct replicator *r, const char *name, const char *suffix)
{
    return arena_printf(&r->w.to->arena, "%s/%s", name, suffix);
}

struct edge replicate_vector(struct replicator *r, const char *name, const int64_t *numbers, int n)
{
    const struct shape shape = shape_vector(n);
    return replicate_add(r, spec_of_value(r, INT64, &shape, numbers), "%s", name);
}

struct edge replicate_zeros(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape)
{
    struct edge zero = replicate_number(r, type, 0, "%s/zero", name);
    struct edge size =
        replicate_vector(r, replicate_text(r, name, "shape"), shape->dims, shape->rank);
    return replicate_op(r, "Fill", size, zero, "%s/zeros", name);
}

struct edge replicate_kept(struct replicator *r, const char *name, const char *of, enum dtype type,
                           const struct shape *shape)
{
    const struct attr mark = {PER_WORKER, attr_string(of)};
    struct edge kept = replicate_variable(r, &mark, name, type, shape);
    replicate_assign(r, &r->inits, kept, replicate_zeros(r, name, type, shape), "%s/Assign", name);
    return kept;
}

const char *replicate_gradient_of(const struct node *node)
{
    const struct attr_value *mark = node_attr(node, "_gradient");
    return mark ? mark->s : NULL;
}

const struct node *replicate_variable_of(const struct replicator *r, const struct node *node)
{
    const char *name = replicate_gradient_of(node);
    return name ? graph_find(r->w.from, name) : NULL;
}

const char *replicate_role(const struct node *node)
{
    const struct attr_value *role = node_attr(node, "_gradient_role");
    return role ? role->s : "";
}

const char *replicate_reduction(const struct node *node, enum dtype type)
{
    const char *role = replicate_role(node);
    if (!strcmp(role, ROLE_INDICES))
        return "rows";
    if (!strcmp(role, ROLE_VALUES))
        return "mean_rows";
    return dtype_is_floating(type) ? "mean" : "first";
}

/* ---- copies ---- */

bool replicate_is_read(const struct replicator *r, const struct node *node)
{
    return has(r, node->id, FACT_SHARD) && node_is(node, "Identity") &&
           access_is_variable(r->w.from, node->inputs[0]);
}

int replicate_copy_all(struct replicator *r, unsigned after, rewrite_map *map)
{
    graph_each_ordered(node, r->w.from, r->w.order) {
        bool pushes = replicate_pushes(r), is_there = !pushes || has(r, node->id, FACT_KEPT);
        if (!is_there || (r->facts[node->id] & FACT_AFTER) != after ||
            replicate_copy_pieces(r, node))
            continue;
        bool by_shards = pushes && has(r, node->id, FACT_SHARD | FACT_INITIAL);
        const struct rewrite_copy copy = {
            node, -1,
            .device = replicate_device(r, node, by_shards ? SHARD_DEVICE : WORKER_DEVICE)};
        r->copy[node->id] = rewrite_add_mapped(&r->w, &copy, map)->id;
        if (by_shards && (replicate_is_read(r, node) || replicate_is_lookup(r, node)))
            replicate_mark_sent(r, r->copy[node->id], r->priority[node->id]);
    }
    return r->w.err->code;
}

/* ---- gradients of some rows ----
 *
 * A batch contains the same word many times, and the gradient has a row for each occurrence. The
 * worker sums these first, so that each row crosses once. */

/* Returns the push's i-th exchange of that role; NULL: there are fewer. */
static struct exchange *with_role(const struct push *push, const char *role, int i)
{
    vec_each(x, &push->exchanges) {
        if (!strcmp(replicate_role((*x)->node), role) && i-- == 0)
            return *x;
    }
    return NULL;
}

/* Returns whether the numbers are known to be distinct. */
static bool is_distinct(const struct replicator *r, struct edge numbers)
{
    const struct node *node = graph_node(r->w.from, numbers.node);
    while (node->n_inputs == 1 && node->op->def->identity.when == SAME_ALWAYS) {
        numbers = node->inputs[0];
        node = graph_node(r->w.from, numbers.node);
    }
    return node_rows(node) == ROWS_DISTINCT && numbers.slot == 0;
}

int replicate_sum_rows(struct replicator *r)
{
    vec_each(push, &r->pushes) {
        for (size_t k = 0; k < push->exchanges.n; k++) {
            struct exchange *numbers = with_role(push, ROLE_INDICES, (int)k);
            struct exchange *values = with_role(push, ROLE_VALUES, (int)k);
            if (!numbers || !values || is_distinct(r, numbers->edge))
                continue;
            const char *name = values->node->name;
            struct edge all = replicate_edge(r, numbers->edge);
            struct edge distinct = replicate_op(r, "Unique", all, EDGE_NONE, "%s/distinct", name);
            struct edge size =
                replicate_op(r, "Size", distinct, EDGE_NONE, "%s/distinct/size", name);
            const struct edge inputs[] = {replicate_edge(r, values->edge), build_slot(distinct, 1),
                                          size};
            numbers->brought = distinct;
            values->brought =
                replicate_node(r, "UnsortedSegmentSum", inputs, 3, NULL, 0, "%s/sum", name);
        }
    }
    return r->w.err->code;
}

struct edge replicate_crossing(struct replicator *r, const struct exchange *x)
{
    return edge_exists(x->brought) ? x->brought : replicate_edge(r, x->edge);
}
