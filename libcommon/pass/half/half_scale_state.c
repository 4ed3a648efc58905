/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic scale itself: three variables, and what each step makes of them. The scale is halved
 * when a gradient is not finite, and doubled after as many good steps in a row.
 */
#include <math.h>

#include "pass/half/half_private.h"

/* ---- variables ---- */

static struct edge add_variable(struct half_scaler *s, const char *suffix, double value, int i)
{
    enum dtype type = i ? INT64 : FLOAT32;
    struct graph *to = s->r.to;
    const char *name = arena_printf(&to->arena, "%s%s", s->b.scope, suffix);
    const char *group = arena_printf(&to->arena, "loc:@%s", name);
    struct attr attrs[] = {{"dtype", attr_type(type)},
                           {"shape", attr_shape(&SHAPE_SCALAR)},
                           {"_trainable", attr_bool(false)}};
    struct node_spec spec = {.op = "Variable", .name = name, .attrs = attrs, .n_attrs = 3};
    const struct node *variable = s->b.failed ? NULL : graph_add(to, &spec, s->err);
    s->b.failed |= !variable;
    if (s->b.failed)
        return EDGE_NONE;
    struct edge inputs[] = {{variable->id, 0}, build_scalar(&s->b, type, value)};
    s->initial[i] = build_op(&s->b, "Assign", inputs, 2, NULL, 0).node;
    s->b.colocate = group;
    struct edge read = build_unary(&s->b, "Identity", inputs[0]);
    s->b.colocate = NULL;
    *(i == 0 ? &s->scale_var : i == 1 ? &s->good_var : &s->skip_var) = variable->id;
    return read;
}

void half_add_state(struct half_scaler *s)
{
    s->scale = add_variable(s, "", HALF_SCALE_FIRST, 0);
    s->good = add_variable(s, "/good_steps", 0, 1);
    s->skipped = add_variable(s, "/skipped_steps", 0, 2);
}

/* ---- a step ---- */

static struct edge choose(struct half_scaler *s, struct edge condition, struct edge yes,
                          struct edge no)
{
    struct edge inputs[] = {condition, yes, no};
    return build_op(&s->b, "Select", inputs, 3, NULL, 0);
}

static struct edge number(struct half_scaler *s, struct edge like, double value)
{
    return build_scalar_like(&s->b, like, value);
}

static int assign(struct half_scaler *s, int variable, struct edge value)
{
    return build_binary(&s->b, "Assign", (struct edge){variable, 0}, value).node;
}

/* Gated nodes run after the scale has been changed: a step that runs an update runs that, too. */
void half_add_decision(struct half_scaler *s)
{
    int assigned[3];
    /* The sum of squares is infinite or no number if an element is. */
    struct build *b = &s->b;
    struct edge *sums = arena_array(&s->r.arena, s->gradients.n, sizeof *sums);
    for (size_t i = 0; i < s->gradients.n && !b->failed; i++)
        sums[i] = build_cast(b, build_unary(b, "L2Loss", s->gradients.items[i]), FLOAT32);
    struct edge total = build_op(b, "AddN", sums, (int)s->gradients.n, NULL, 0);
    struct edge finite = build_binary(b, "Less", total, build_scalar(b, FLOAT32, INFINITY));
    if (!s->b.failed) {
        struct edge one = number(s, s->good, 1), zero = number(s, s->good, 0);
        struct edge good = build_binary(b, "Add", s->good, one);
        struct edge grows = build_binary(b, "GreaterEqual", good, number(s, good, HALF_GOOD_STEPS));
        struct edge twice = build_binary(b, "Mul", s->scale, number(s, s->scale, 2));
        struct edge half = build_binary(b, "Mul", s->scale, number(s, s->scale, 0.5));
        struct edge larger =
            build_binary(b, "Minimum", twice, number(s, s->scale, HALF_SCALE_LAST));
        struct edge smaller = build_binary(b, "Maximum", half, number(s, s->scale, 1));
        struct edge kept = choose(s, grows, larger, s->scale);
        struct edge stays =
            build_binary(b, "LogicalAnd", finite, build_unary(b, "LogicalNot", grows));
        struct edge more = build_binary(b, "Add", s->skipped, one);
        assigned[0] = assign(s, s->scale_var, choose(s, finite, kept, smaller));
        assigned[1] = assign(s, s->good_var, choose(s, stays, good, zero));
        assigned[2] = assign(s, s->skip_var, choose(s, finite, s->skipped, more));
    }
    struct edge both = build_binary(&s->b, "Switch", finite, finite);
    if (s->b.failed)
        return;
    s->b.controls = assigned;
    s->b.n_controls = 3;
    s->go = build_unary(&s->b, "Identity", build_slot(both, 1)).node;
    s->b.n_controls = 0;
}

void half_add_end(struct half_scaler *s)
{
    struct node_spec spec = {.op = "ControlTrigger",
                             .name = rewrite_name_near(&s->r, s->b.scope, "done"),
                             .controls = s->waits.items,
                             .n_controls = (int)s->waits.n};
    const struct node *done = s->b.failed ? NULL : graph_add(s->r.to, &spec, s->err);
    s->b.failed |= !done;
    s->done = done ? done->id : -1;
}

/* ---- entries ---- */

void half_redirect_ends(struct half_scaler *s)
{
    const struct graph *from = s->r.from;
    for (size_t i = 0; i < from->entries.n; i++)
        for (int k = 0; k < from->entries.items[i].n_edges; k++) {
            struct edge edge = from->entries.items[i].edges[k];
            const struct node *node = graph_node(s->r.from, edge.node);
            const struct node *written = part_written(s->r.from, node);
            if (!(s->facts[node->id] & SCALE_GATED))
                continue;
            if (edge.slot == CONTROL_SLOT)
                s->r.after[node->id][0] = s->done;
            else if (written) {
                /* A variable as it is when all is over. */
                s->b.controls = &s->done;
                s->b.n_controls = 1;
                struct edge read =
                    build_unary(&s->b, "Identity", (struct edge){s->r.after[written->id][0], 0});
                s->b.n_controls = 0;
                s->r.edges[s->r.first[node->id] + edge.slot] = read;
            } else
                s->r.edges[s->r.first[node->id] + edge.slot] = rewrite_edge(&s->r, node->inputs[0]);
        }
}

static int extend_ready(struct half_scaler *s, struct graph *to, struct entry *entry)
{
    const int variables[] = {s->scale_var, s->good_var, s->skip_var};
    struct edge *all = arena_array(&to->arena, 1, sizeof *all);
    *all = entry->edges[0];
    for (int i = 0; i < 3; i++) {
        struct edge there =
            build_unary(&s->b, "IsVariableInitialized", (struct edge){variables[i], 0});
        *all = build_binary(&s->b, "LogicalAnd", *all, there);
    }
    entry->edges = all;
    return s->b.failed ? s->err->code : 0;
}

int half_extend_entries(struct half_scaler *s, struct graph *to)
{
    s->b.graph = to;
    vec_each(entry, &to->entries) {
        if (!strcmp(entry->name, "init")) {
            struct edge *edges = arena_array(&to->arena, (size_t)entry->n_edges + 3, sizeof *edges);
            memcpy(edges, entry->edges, (size_t)entry->n_edges * sizeof *edges);
            for (int j = 0; j < 3; j++)
                edges[entry->n_edges + j] = (struct edge){s->initial[j], CONTROL_SLOT};
            entry->edges = edges;
            entry->n_edges += 3;
        } else if (!strcmp(entry->name, "ready") && entry->n_edges == 1 &&
                   extend_ready(s, to, entry))
            return s->err->code;
    }
    return 0;
}
