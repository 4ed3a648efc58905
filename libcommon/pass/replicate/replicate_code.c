/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that cross in few bits. Each worker codes the sum of its gradient and of what its codes
 * have lost so far, a variable of its own that starts at 0; all get the codes of all, and take
 * their mean, by rank. What was lost is kept when all that the step exchanges has come, so that a
 * step that fails, or is not counted, loses nothing.
 */
#include <math.h>
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"

#define COUNT_MIN 1024      /* elements of a gradient that is worth it, and of a group */
#define TOP_GROUP_MAX 65536 /* elements of which the largest are kept */
#define CODE_PASSES 5 /* over memory: of a gradient that is coded, its residual and its update */

#define MEAN "mean" /* suffix of the name of what has the gradient's shape again */

/* ---- what can be ---- */

static const struct node_output *output_of(const struct replicator *r, struct edge edge)
{
    return &graph_node(r->from, edge.node)->outputs[edge.slot];
}

const char *replicate_find_code(const struct replicator *r, struct edge edge)
{
    const struct node *gradient = graph_node(r->from, edge.node);
    if (!r->options->code.name)
        return "no code was asked for";
    if (!has(r, gradient->id, FACT_MARKED))
        return "it is no gradient";
    if (*replicate_role(gradient))
        return "it is of some rows of a table";
    if (output_of(r, edge)->type != FLOAT32)
        return "it is not float32";
    if (!shape_is_known(&output_of(r, edge)->shape))
        return "its shape is not known";
    if (shape_count(&output_of(r, edge)->shape) < COUNT_MIN)
        return "it is small";
    return NULL;
}

/* ---- groups ---- */

static int64_t group_min(const struct replicator *r)
{
    return strcmp(r->options->code.name, "top") ? COUNT_MIN : TOP_GROUP_MAX;
}

/* Whole rows of the last dimension, or parts of one, so that all groups are of the same size: the
 * smallest that has enough elements. */
static int64_t group_of(const struct replicator *r, const struct shape *shape)
{
    int64_t row = shape->dims[shape->rank - 1], rows = shape_count(shape) / row, n = 1;
    while (n < rows && (rows % n || n * row < group_min(r)))
        n++;
    return n * row;
}

static int64_t kept_of(const struct replicator *r, int64_t group)
{
    int64_t n = (int64_t)ceil(r->options->code.share * (double)group);
    return n < 1 ? 1 : n < group ? n : group;
}

static double row_bytes(const struct replicator *r, int64_t group)
{
    const struct replicate_code *code = &r->options->code;
    double bits = ceil((double)group * code->bits / 8);
    if (!strcmp(code->name, "top"))
        return 8.0 * (double)kept_of(r, group);
    return strcmp(code->name, "threshold") ? 8 + bits : bits;
}

/* ---- what it costs ---- */

struct replicate_way replicate_code_way(const struct replicator *r, int n, struct cost_way way,
                                        struct edge edge)
{
    const struct shape *shape = &output_of(r, edge)->shape;
    const struct cost_rates rates = cost_rates_of("CPU");
    int64_t group = group_of(r, shape);
    double count = (double)shape_count(shape);
    double bytes = (n - 1) * count / (double)group * row_bytes(r, group);
    double moved = (CODE_PASSES + n) * count * sizeof(float);
    return (struct replicate_way){bytes, way.latency + way.per_byte * bytes +
                                             1e9 * moved / rates.bandwidth};
}

/* ---- nodes ---- */

static const char *name_of(struct replicator *r, const struct coded_gradient *coded,
                           const char *suffix)
{
    return replicate_text(r, graph_node(r->from, coded->gradient.node)->name, suffix);
}

struct coder_inputs {
    const struct edge *items;
    int n;
};

static int add_coder(struct replicator *r, const char *op, const char *suffix,
                     struct coder_inputs inputs, const struct coded_gradient *coded)
{
    bool shaped = !strcmp(suffix, MEAN);
    struct node_spec spec = {.op = op,
                             .inputs = inputs.items,
                             .n_inputs = inputs.n,
                             .attrs = coded->attrs,
                             .n_attrs = shaped ? 6 : 5};
    return r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name_of(r, coded, suffix), &spec);
}

static void set_attrs(const struct replicator *r, struct coded_gradient *coded)
{
    const struct replicate_code *code = &r->options->code;
    const struct shape *shape = &output_of(r, coded->gradient)->shape;
    int64_t group = group_of(r, shape);
    coded->attrs[0] = (struct attr){"code", attr_string(code->name)};
    coded->attrs[1] = (struct attr){"group", attr_int(group)};
    coded->attrs[2] = (struct attr){"bits", attr_int(code->bits)};
    coded->attrs[3] = (struct attr){"threshold", attr_float(code->threshold)};
    coded->attrs[4] = (struct attr){"keep", attr_int(kept_of(r, group))};
    coded->attrs[5] = (struct attr){"shape", attr_shape(shape)};
}

/* It begins with what no code has lost. */
static void add_residual(struct replicator *r, struct coded_gradient *coded)
{
    const struct shape *shape = coded->attrs[5].value.shape;
    const char *name = name_of(r, coded, "residual");
    coded->residual = replicate_variable(r, PER_WORKER, name, FLOAT32, shape);
    int set = replicate_op(r, "Assign", replicate_text(r, name, "Assign"), coded->residual,
                           replicate_zeros(r, name, FLOAT32, shape));
    if (set >= 0)
        vec_push(&r->inits, set);
}

const struct coded_gradient *replicate_add_code(struct replicator *r, struct edge edge)
{
    struct coded_gradient coded = {.gradient = edge, .value = replicate_edge(r, edge)};
    set_attrs(r, &coded);
    add_residual(r, &coded);
    coded.first = replicate_number(r, name_of(r, &coded, "first"), INT64, 0);
    const struct edge inputs[] = {coded.value, coded.residual, coded.first};
    coded.code = replicate_out(
        add_coder(r, "QuantizeGradient", "code", (struct coder_inputs){inputs, 3}, &coded));
    vec_push(&r->coded, coded);
    return r->err->code ? NULL : &r->coded.items[r->coded.n - 1];
}

/* The mean of what all workers' codes stand for. */
static void take_code(struct replicator *r, const struct coded_gradient *coded, struct edge members)
{
    const struct edge inputs[] = {replicate_find_reduced(r, coded->gradient, FOR_CODES, "rows"),
                                  members};
    struct edge mean = replicate_out(
        add_coder(r, "DequantizeGradient", MEAN, (struct coder_inputs){inputs, 2}, coded));
    vec_push(&r->reduced, ((struct reduced){coded->gradient, mean, FOR_UPDATES, "mean"}));
}

void replicate_take_codes(struct replicator *r, struct edge members)
{
    for (size_t i = 0; i < r->coded.n && !r->err->code; i++) {
        if (!r->coded.items[i].is_taken)
            take_code(r, &r->coded.items[i], members);
        r->coded.items[i].is_taken = true;
    }
}

void replicate_keep_lost(struct replicator *r)
{
    struct node_spec spec = {
        .op = "NoOp", .controls = r->exchanges.items, .n_controls = (int)r->exchanges.n};
    if (!r->coded.n || r->err->code)
        return;
    int exchanged = replicate_add(r, WORKER_DEVICE, "allreduce/exchanged", &spec);
    for (size_t i = 0; i < r->coded.n && exchanged >= 0; i++) {
        const struct coded_gradient *coded = &r->coded.items[i];
        const struct edge inputs[] = {coded->residual, coded->value, coded->code, coded->first};
        int kept = add_coder(r, "ApplyResidual", "lost", (struct coder_inputs){inputs, 4}, coded);
        if (kept < 0)
            return;
        graph_add_control(r->to, graph_node(r->to, kept), exchanged);
        vec_push(&r->ends, kept);
    }
}
