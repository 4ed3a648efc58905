/* SPDX-License-Identifier: Apache-2.0
 *
 * The new graph: what is painted gets other types, and casts stand where types meet.
 */
#include "pass/half/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pass/half/half_private.h"
#include "pass/simplify/simplify.h"

int half_parse(struct half_options *options, const char *type, const char *scale, struct error *err)
{
    options->type = !strcmp(type, "bf16")   ? BFLOAT16
                    : !strcmp(type, "fp16") ? FLOAT16
                                            : DTYPE_INVALID;
    if (options->type == DTYPE_INVALID)
        return error_set(err, ERR_USAGE, "16 bits are bf16 or fp16, not '%s'", type);
    char *end;
    if (!scale || !strcmp(scale, "dynamic")) {
        bool dynamic = scale || options->type == FLOAT16;
        options->scaling = dynamic ? HALF_DYNAMIC : HALF_UNSCALED;
        return 0;
    }
    options->scaling = HALF_UNSCALED;
    if (!strcmp(scale, "none"))
        return 0;
    options->scaling = HALF_STATIC;
    options->factor = strtod(scale, &end);
    if (*end || end == scale || !(options->factor >= 1 && options->factor <= HALF_SCALE_LAST))
        return error_set(err, ERR_USAGE,
                         "the loss scale must be dynamic, none or a number from 1 to %.0f, not "
                         "'%s'",
                         HALF_SCALE_LAST, scale);
    return 0;
}

/* ---- casts ---- */

/* The place of an output among all of the source. */
static int output_number(const struct halver *h, struct edge edge)
{
    return h->r.first[edge.node] + edge.slot;
}

/* Returns whether a Cast has the node's name: it is to be found under it in float32. In a loop
 * nobody looks for it. */
static bool is_known(const struct halver *h, const struct node *node)
{
    return half_is_painted(h, node->id) && node->n_outputs == 1 &&
           half_is_float(h->r.from, (struct edge){node->id, 0}) &&
           (h->r.flags[node->id] & REWRITE_KEPT ||
            (!node_has(node, OP_CONTROL_FLOW) && rewrite_has_own_name(&h->r, node)));
}

static struct edge add_cast(struct halver *h, struct edge edge, enum dtype type, const char *name)
{
    struct graph *to = h->r.to;
    const struct node *near = graph_node(h->r.from, edge.node);
    const struct edge input = h->r.edges[output_number(h, edge)];
    struct attr *attrs = arena_array(&to->arena, 2, sizeof *attrs);
    struct node_output output = {type, false, near->outputs[edge.slot].shape};
    attrs[0] = (struct attr){"DstT", attr_type(type)};
    attrs[1] =
        (struct attr){"SrcT", attr_type(graph_node(to, input.node)->outputs[input.slot].type)};
    struct node_spec spec = rewrite_spec_like(near);
    spec.op = "Cast";
    spec.name = name;
    spec.inputs = &input;
    spec.n_inputs = 1;
    spec.attrs = attrs;
    spec.n_attrs = 2;
    spec.assigned = near->assigned;
    return (struct edge){graph_add_trusted(to, &spec, &output, 1)->id, 0};
}

/* An edge of the source in 16 bits, once for all who take it. */
static struct edge narrow(struct halver *h, struct edge edge)
{
    struct edge *made = &h->narrow[output_number(h, edge)];
    const char *name = graph_node(h->r.from, edge.node)->name;
    if (half_is_painted(h, edge.node))
        return h->r.edges[output_number(h, edge)];
    if (!edge_exists(*made))
        *made = add_cast(h, edge, h->options->type, rewrite_name_near(&h->r, name, "half"));
    return *made;
}

static struct edge wide(struct halver *h, struct edge edge)
{
    struct edge *made = &h->wide[output_number(h, edge)];
    const struct node *node = graph_node(h->r.from, edge.node);
    bool kept = h->r.flags[node->id] & REWRITE_KEPT;
    if (!half_is_painted(h, edge.node))
        return h->r.edges[output_number(h, edge)];
    if (!edge_exists(*made))
        *made =
            add_cast(h, edge, FLOAT32,
                     kept && is_known(h, node) ? node->name
                                               : rewrite_name_near(&h->r, node->name, "float32"));
    return *made;
}

/* ---- nodes ---- */

/* Widens an entry or an alias. A value that goes round in a loop has no place for casts. */
static void widen_end(struct halver *h, struct edge edge)
{
    if (edge.slot != CONTROL_SLOT && h->next[edge.node] == edge.node &&
        half_is_float(h->r.from, edge))
        h->r.edges[output_number(h, edge)] = wide(h, edge);
}

int half_graph(const struct graph *from, const struct half_options *options, struct graph **to,
               int *n, struct error *err)
{
    struct halver h = {.options = options, .err = err};
    *to = NULL;
    *n = 0;
    if (rewrite_open(&h.r, from, options->pass, err))
        return err->code;
    int code = half_paint(&h);
    if (!code) {
        size_t count = 0;
        for (size_t i = 0; i < from->nodes.n; i++)
            count += (size_t)graph_node(from, (int)i)->n_outputs;
        h.narrow = arena_array(&h.r.arena, count, sizeof *h.narrow);
        h.wide = arena_array(&h.r.arena, count, sizeof *h.wide);
        for (size_t i = 0; i < count; i++)
            h.narrow[i] = h.wide[i] = EDGE_NONE;
        graph_each_ordered(node, from, h.r.order) {
            struct node view = rewrite_view(&h.r, node), named = *node;
            /* A value that comes over a back edge has the type of its ring. */
            for (int j = 0; j < node->n_inputs; j++) {
                if (!edge_exists(view.inputs[j]) || !half_is_float(h.r.from, node->inputs[j]))
                    continue;
                view.inputs[j] = half_is_painted(&h, node->id) ? narrow(&h, node->inputs[j])
                                                               : wide(&h, node->inputs[j]);
            }
            if (half_is_painted(&h, node->id)) {
                struct attr *attrs =
                    arena_array(&h.r.to->arena, (size_t)view.n_attrs, sizeof *attrs);
                for (int j = 0; j < view.n_attrs; j++) {
                    attrs[j] = view.attrs[j];
                    if (op_find_attr(view.op, attrs[j].name) >= 0 &&
                        attrs[j].value.kind == ATTR_TYPE && attrs[j].value.type == FLOAT32)
                        attrs[j].value.type = h.options->type;
                }
                view.attrs = attrs;
                struct node_output *outputs =
                    arena_array(&h.r.arena, (size_t)view.n_outputs, sizeof *outputs);
                for (int j = 0; j < view.n_outputs; j++) {
                    outputs[j] = view.outputs[j];
                    if (outputs[j].type == FLOAT32)
                        outputs[j].type = h.options->type;
                }
                view.outputs = outputs;
                rewrite_note(&h.r, node->name, "is computed in 16 bits");
            }
            if (is_known(&h, node))
                named.name = rewrite_name_near(&h.r, node->name, "half");
            rewrite_add(&h.r, &named, &view);
        }
        for (size_t i = 0; i < from->nodes.n; i++) {
            /* Names of the source stand for float32. */
            const struct node *node = graph_node(from, (int)i);
            const struct edge edge = {node->id, 0};
            if (!is_known(&h, node))
                continue;
            struct edge cast = wide(&h, edge);
            if (!(h.r.flags[node->id] & REWRITE_KEPT))
                vec_push_in(&h.r.arena, &h.r.lost, ((struct alias){node->name, cast}));
        }
        for (size_t i = 0; i < from->aliases.n; i++)
            widen_end(&h, from->aliases.items[i].edge);
        for (size_t i = 0; i < from->entries.n; i++)
            for (int k = 0; k < from->entries.items[i].n_edges; k++)
                widen_end(&h, from->entries.items[i].edges[k]);
    }
    return rewrite_close(&h.r, code, to, n);
}

/* ---- one after the other ---- */

static void take_result(struct half_result *result, struct graph *made)
{
    if (!made)
        return;
    vec_push(&result->graphs, made);
    result->graph = made;
}

int half_rewrite(struct graph *source, const struct half_options *options,
                 struct half_result *result, struct error *err)
{
    const struct pass *prune = pass_find("prune");
    struct graph *made = NULL;
    *result = (struct half_result){.graph = source};
    if (pass_optimize(source, &prune, 1, options->pass, &result->pruned, err))
        return err->code;
    result->graph = result->pruned.graph;
    int code = half_graph(result->graph, options, &made, &result->n_halved, err);
    take_result(result, code ? NULL : made);
    if (!code)
        code = half_scale(result->graph, options, &made, &result->n_scaled, err);
    take_result(result, code ? NULL : made);
    return code;
}

void half_result_release(struct half_result *result)
{
    while (result->graphs.n)
        graph_free(vec_pop(&result->graphs));
    vec_release(&result->graphs);
    pass_result_release(&result->pruned);
}
