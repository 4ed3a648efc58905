/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that replication makes, anew or like one of the source. Once something has failed new ones
 * are edges without a node, and r->err says what it was.
 */
#include <string.h>

#include "graph/device_name.h"
#include "graph/worker_attr.h"
#include "pass/part/part.h"
#include "pass/replicate/replicate_push.h"

/* ---- names, devices, copies ---- */

const char *replicate_name(struct replicator *r, const char *base)
{
    const char *name = base;
    for (int i = 1; graph_find(r->from, name) || graph_find(r->to, name) ||
                    map_get(&r->from->alias_names, name, NULL);
         i++)
        name = arena_printf(&r->to->arena, "%s_%d", base, i);
    return name;
}

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
    return device_name_text(&r->to->arena, &asked);
}

int replicate_add(struct replicator *r, const char *device, const char *name,
                  const struct node_spec *spec)
{
    struct node_spec named = *spec;
    named.name = replicate_name(r, name);
    named.device = device;
    struct node *node = graph_add(r->to, &named, r->err);
    if (node && r->options->note)
        r->options->note(r->options->context, node->name, device);
    return node ? node->id : -1;
}

struct node *replicate_add_copy(struct replicator *r, const struct node *node,
                                const struct node_spec *differs, const struct edge *inputs)
{
    struct node_spec spec = {.op = node->op->def->name,
                             .name = differs->name,
                             .inputs = inputs,
                             .n_inputs = node->n_inputs,
                             .attrs = differs->attrs,
                             .n_attrs = differs->n_attrs,
                             .device = differs->device,
                             .assigned = "",
                             .file = node->file,
                             .line = node->line};
    return graph_add_trusted(r->to, &spec, node->outputs, node->n_outputs);
}

int replicate_narrow(struct replicator *r, int id)
{
    struct node *node = graph_node(r->to, id);
    struct attr wire = {"_wire", attr_type(r->options->wire)};
    if (r->options->wire == DTYPE_INVALID || !node->n_outputs || node->outputs[0].type != FLOAT32)
        return 0;
    return graph_set_attr(r->to, node, &wire, r->err);
}

/* ---- edges ---- */

/* A variable, read when the updates of the step are over. */
static struct edge read_after(struct replicator *r, const struct node *writer)
{
    const struct node *variable = part_written(r->from, writer);
    struct edge ref = {r->copy[variable->id], 0};
    const char *groups[] = {arena_printf(&r->to->arena, "loc:@%s", variable->name)};
    struct attr group = {"_class", {.kind = ATTR_LIST_STRING, .n = 1, .strings = groups}};
    struct node_spec spec = {.op = "Identity",
                             .inputs = &ref,
                             .n_inputs = 1,
                             .controls = &r->done,
                             .n_controls = 1,
                             .attrs = &group,
                             .n_attrs = 1};
    if (r->copy[writer->id] < 0)
        r->copy[writer->id] = replicate_add(
            r, SHARD_DEVICE, arena_printf(&r->to->arena, "%s/after", variable->name), &spec);
    return (struct edge){r->copy[writer->id], 0};
}

struct edge replicate_edge(struct replicator *r, struct edge edge)
{
    if (!edge_exists(edge))
        return EDGE_NONE;
    if (has(r, edge.node, FACT_WRITER))
        return edge.slot == CONTROL_SLOT ? (struct edge){r->done, CONTROL_SLOT}
                                         : read_after(r, graph_node(r->from, edge.node));
    return (struct edge){r->copy[edge.node], edge.slot};
}

/* ---- nodes ---- */

int replicate_op(struct replicator *r, const char *op, const char *name, struct edge a,
                 struct edge b)
{
    struct edge inputs[] = {a, b};
    struct node_spec spec = {
        .op = op, .inputs = inputs, .n_inputs = edge_exists(a) + edge_exists(b)};
    return r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec);
}

int replicate_op_beside(struct replicator *r, const char *op, const char *name, struct edge a,
                        struct edge b, const char *variable)
{
    const char *groups[] = {arena_printf(&r->to->arena, "loc:@%s", variable)};
    struct attr group = {"_class",
                         {.kind = ATTR_LIST_STRING,
                          .n = 1,
                          .strings = arena_copy(&r->to->arena, groups, sizeof groups)}};
    const struct edge inputs[] = {a, b};
    struct node_spec spec = {
        .op = op, .inputs = inputs, .n_inputs = 2, .attrs = &group, .n_attrs = 1};
    return r->err->code ? -1 : replicate_add(r, SHARD_DEVICE, name, &spec);
}

struct edge replicate_number(struct replicator *r, const char *name, enum dtype type, double value)
{
    struct tensor number = {.type = type, .data = arena_alloc(&r->to->arena, sizeof(double))};
    tensor_set_float64(&number, 0, value);
    struct attr attrs[] = {{"dtype", attr_type(type)}, {"value", attr_tensor(&number)}};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    return replicate_out(r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec));
}

struct edge replicate_variable(struct replicator *r, const struct attr *mark, const char *name,
                               enum dtype type, const struct shape *shape)
{
    struct attr attrs[] = {{"dtype", attr_type(type)},
                           {"shape", attr_shape(shape)},
                           *mark,
                           {"_trainable", attr_bool(false)}};
    struct node_spec spec = {.op = "Variable", .attrs = attrs, .n_attrs = 4};
    return replicate_out(r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec));
}

struct edge replicate_local(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape)
{
    const struct attr mark = {WORKER_LOCAL, attr_bool(true)};
    return replicate_variable(r, &mark, name, type, shape);
}

const char *replicate_text(struct replicator *r, const char *name, const char *suffix)
{
    return arena_printf(&r->to->arena, "%s/%s", name, suffix);
}

struct edge replicate_vector(struct replicator *r, const char *name, const int64_t *numbers, int n)
{
    struct tensor vector = {
        .type = INT64,
        .shape = shape_vector(n),
        .data = arena_copy(&r->to->arena, numbers, (size_t)(n ? n : 1) * sizeof *numbers)};
    struct attr attrs[] = {{"dtype", attr_type(INT64)}, {"value", attr_tensor(&vector)}};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    return replicate_out(r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec));
}

struct edge replicate_zeros(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape)
{
    struct edge zero = replicate_number(r, replicate_text(r, name, "zero"), type, 0);
    struct edge size =
        replicate_vector(r, replicate_text(r, name, "shape"), shape->dims, shape->rank);
    return replicate_out(replicate_op(r, "Fill", replicate_text(r, name, "zeros"), size, zero));
}

const char *replicate_name_of(struct replicator *r, struct edge edge, const char *suffix)
{
    return replicate_text(r, graph_node(r->from, edge.node)->name, suffix);
}
