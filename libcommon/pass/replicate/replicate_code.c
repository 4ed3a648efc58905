/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that cross in few bits. Each worker codes the sum of its gradient and of what its codes
 * have lost so far, a variable of its own that starts at 0; all get the codes of all, and take
 * their mean, by rank. What was lost is kept when all that the step exchanges has come, so that a
 * step that fails, or is not counted, loses nothing.
 */
#include "pass/replicate/replicate_code.h"

#include <math.h>
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"
#include "pass/replicate/replicate_push.h"

#define COUNT_MIN 1024      /* elements of a gradient that is worth it, and of a group */
#define TOP_GROUP_MAX 65536 /* elements of which the largest are kept */

/* Codes take so many passes over a gradient in memory (make bench-techniques). */
#define CODE_PASSES 12  /* the code, and what it loses */
#define DECODE_PASSES 8 /* what a code stands for, added to others */

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

/* Whole rows of the last dimension, or parts of one, so that all groups are of the same size: the
 * smallest that has enough elements. */
static int64_t group_of(const struct replicator *r, const struct shape *shape)
{
    int64_t row = shape->dims[shape->rank - 1], rows = shape_count(shape) / row, n = 1;
    while (
        n < rows &&
        (rows % n || n * row < (strcmp(r->options->code.name, "top") ? COUNT_MIN : TOP_GROUP_MAX)))
        n++;
    return n * row;
}

static int64_t kept_of(const struct replicator *r, int64_t group)
{
    int64_t n = (int64_t)ceil(r->options->code.share * (double)group);
    return n < 1 ? 1 : n < group ? n : group;
}

/* ---- what it costs ---- */

/* Returns whether each worker adds a part of the groups, of all workers' codes, and codes the mean
 * once more: 2 (n - 1) / n of a code cross, not n - 1. Of thresholds and of the largest elements
 * there would be no point in a second one: a mean has other values. Shards add all; as servers they
 * pass on a code, which a worker sends once, and have nothing of their own to keep. */
static bool is_shared_out(const struct replicator *r)
{
    const char *code = r->options->code.name;
    return !replicate_pushes(r) && !r->options->by_servers &&
           (!strcmp(code, "one_bit") || !strcmp(code, "uniform"));
}

/* The time of one pass over the elements of a gradient. */
static double pass_ns(const struct replicator *r, double count)
{
    return 1e9 * count * sizeof(float) / r->rates.bandwidth;
}

struct replicate_way replicate_code_way(const struct replicator *r, int n, struct cost_way way,
                                        struct edge edge)
{
    const struct shape *shape = &output_of(r, edge)->shape;
    int64_t group = group_of(r, shape);
    bool shared = is_shared_out(r);
    double count = (double)shape_count(shape);
    const struct replicate_code *code = &r->options->code;
    double bits = ceil((double)group * code->bits / 8);
    double row = !strcmp(code->name, "top")        ? 8.0 * (double)kept_of(r, group)
                 : strcmp(code->name, "threshold") ? 8 + bits
                                                   : bits;
    double bytes = count / (double)group * row, both = 2.0 * (n - 1) / n * bytes;
    if (replicate_pushes(r)) {
        /* A code once, whenever gradients are pushed; shards share in decoding what all have
         * pushed. */
        double every = replicate_steps_of(r, edge), pass = pass_ns(r, count);
        double push_ns = replicate_workers_ns(r, CODE_PASSES * pass) +
                         replicate_shards_ns(r, n * DECODE_PASSES * pass);
        return (struct replicate_way){bytes / every,
                                      way.latency + (way.per_byte * bytes + push_ns) / every};
    }
    struct replicate_way crosses =
        shared ? (struct replicate_way){both, 2 * way.latency + way.per_byte * both}
               : replicate_gather_way(r, n, way, bytes);
    double passes =
        shared ? CODE_PASSES * (1 + 1.0 / n) + 2 * DECODE_PASSES : CODE_PASSES + n * DECODE_PASSES;
    double ns = replicate_workers_ns(r, passes * pass_ns(r, count));
    return (struct replicate_way){crosses.bytes, crosses.ns + ns};
}

/* ---- nodes ---- */

struct edge replicate_decode(struct replicator *r, const struct coded_gradient *coded,
                             const char *suffix, const struct edge inputs[2],
                             const struct shape *shape, const char *variable)
{
    struct attr attrs[6];
    memcpy(attrs, coded->attrs, sizeof coded->attrs);
    attrs[5] = (struct attr){"shape", attr_shape(shape)};
    struct node_spec spec = replicate_spec("DequantizeGradient", inputs, 2, attrs, 6);
    return replicate_add(r, variable ? replicate_beside(r, variable, spec) : spec, "%s/%s",
                         replicate_edge_name(r, coded->gradient), suffix);
}

struct edge replicate_quantize(struct replicator *r, const struct coded_gradient *coded,
                               const char *name, const struct code_edges *coding)
{
    const struct edge inputs[] = {coding->value, coding->residual, coding->first};
    return replicate_node(r, "QuantizeGradient", inputs, 3, coded->attrs, 5, "%s", name);
}

/* It begins with what no code has lost. */
static struct edge add_residual(struct replicator *r, const char *name, const char *of,
                                const struct shape *shape)
{
    const struct attr mark = {PER_WORKER, attr_string(of)};
    struct edge residual = replicate_variable(r, &mark, name, FLOAT32, shape);
    replicate_assign(r, &r->inits, residual, replicate_zeros(r, name, FLOAT32, shape), "%s/Assign",
                     name);
    return residual;
}

const struct coded_gradient *replicate_add_code(struct replicator *r, struct edge edge,
                                                struct edge *whole)
{
    struct edge value = replicate_exchanged(r, edge);
    if (edge_exists(r->coding)) {
        struct edge steered =
            replicate_op(r, "Switch", value, r->coding, "%s/Switch", replicate_edge_name(r, edge));
        *whole = build_slot(steered, 0);
        value = build_slot(steered, 1);
    }
    struct edge residual = add_residual(r, replicate_edge_text(r, edge, "residual"), PER_WORKER_SUM,
                                        &output_of(r, edge)->shape);
    return replicate_code_value(r, edge, value, residual);
}

struct coded_gradient *replicate_code_value(struct replicator *r, struct edge gradient,
                                            struct edge value, struct edge residual)
{
    struct coded_gradient coded = {.gradient = gradient,
                                   .own = {.value = value, .residual = residual},
                                   .is_shared_out = is_shared_out(r),
                                   .shape = output_of(r, gradient)->shape};
    const struct replicate_code *code = &r->options->code;
    int64_t group = group_of(r, &coded.shape);
    coded.groups = shape_count(&coded.shape) / group;
    coded.attrs[0] = (struct attr){"code", attr_string(code->name)};
    coded.attrs[1] = (struct attr){"group", attr_int(group)};
    coded.attrs[2] = (struct attr){"bits", attr_int(code->bits)};
    coded.attrs[3] = (struct attr){"threshold", attr_float(code->threshold)};
    coded.attrs[4] = (struct attr){"keep", attr_int(kept_of(r, group))};
    coded.own.first =
        replicate_number(r, INT64, 0, "%s/first", replicate_edge_name(r, coded.gradient));
    coded.own.code =
        replicate_quantize(r, &coded, replicate_edge_text(r, coded.gradient, "code"), &coded.own);
    edge_map_add(&r->by_edge[BY_CODED], gradient, (int)r->coded.n);
    vec_push_in(&r->arena, &r->coded, coded);
    return r->err->code ? NULL : &r->coded.items[r->coded.n - 1];
}

void replicate_code_mean(struct replicator *r, struct coded_gradient *coded, struct edge members)
{
    struct attr rows = {"rows", attr_int(coded->groups)};
    int64_t group = coded->attrs[1].value.i;
    const struct shape some = shape_matrix(-1, group), all = shape_matrix(coded->groups, group);
    const struct edge codes[] = {replicate_find_reduced(r, coded->gradient, FOR_CODES, "part"),
                                 members};
    const struct edge ranks[] = {members, r->rank};
    struct code_edges *mean = &coded->mean;
    mean->value = replicate_decode(r, coded, "part/mean", codes, &some, NULL);
    mean->residual = add_residual(r, replicate_edge_text(r, coded->gradient, "part/residual"),
                                  PER_WORKER_ROWS, &all);
    mean->first = replicate_node(r, "CollectivePart", ranks, 2, &rows, 1, "%s/part/first",
                                 replicate_edge_name(r, coded->gradient));
    mean->code =
        replicate_quantize(r, coded, replicate_edge_text(r, coded->gradient, "part/code"), mean);
}

void replicate_take_codes(struct replicator *r, struct edge members)
{
    for (size_t i = 0; i < r->coded.n && !r->err->code; i++) {
        if (!r->coded.items[i].is_taken) {
            /* The mean of what all workers' codes stand for; where it was shared out, of its parts'
             * code. */
            const struct coded_gradient *coded = &r->coded.items[i];
            enum reduced_for use = coded->is_shared_out ? FOR_MEANS : FOR_CODES;
            const struct edge inputs[] = {replicate_find_reduced(r, coded->gradient, use, "rows"),
                                          coded->is_shared_out ? r->rank : members};
            struct edge mean = replicate_decode(r, coded, "mean", inputs, &coded->shape, NULL);
            if (edge_exists(r->coding) && !r->err->code) {
                struct edge sent = replicate_find_reduced(r, coded->gradient, FOR_WARM_UP, "mean");
                mean = replicate_op(r, "Merge", sent, mean, "%s/Merge",
                                    replicate_edge_name(r, coded->gradient));
                r->merged = mean.node;
            }
            if (replicate_is_delayed(r, coded->gradient))
                mean = replicate_settled(r, mean);
            replicate_note_reduced(
                r, (struct reduced_value){coded->gradient, mean, FOR_UPDATES, "mean", 0});
        }
        r->coded.items[i].is_taken = true;
    }
}

struct edge replicate_keep(struct replicator *r, const struct coded_gradient *coded,
                           const struct code_edges *coding, const char *suffix)
{
    const struct edge inputs[] = {coding->residual, coding->value, coding->code, coding->first};
    return replicate_node(r, "ApplyResidual", inputs, 4, coded->attrs, 5, "%s/%s",
                          replicate_edge_name(r, coded->gradient), suffix);
}

static void keep_lost(struct replicator *r, const struct coded_gradient *coded,
                      const struct code_edges *coding, const char *suffix, int exchanged)
{
    struct edge kept = replicate_keep(r, coded, coding, suffix);
    replicate_wait(r, kept, exchanged);
    replicate_also(r, &r->ends, kept);
}

void replicate_keep_lost(struct replicator *r)
{
    if (!r->coded.n || r->err->code)
        return;
    int exchanged =
        replicate_after(r, "NoOp", WORKER_DEVICE, &r->exchanges, ALLREDUCE_SCOPE "exchanged");
    for (size_t i = 0; i < r->coded.n && !r->err->code; i++) {
        const struct coded_gradient *coded = &r->coded.items[i];
        keep_lost(r, coded, &coded->own, "lost", exchanged);
        if (coded->is_shared_out)
            keep_lost(r, coded, &coded->mean, "part/lost", exchanged);
    }
}

/* ---- warm-up ----
 *
 * Gradients that cross whole in the first updates, when they are large and change quickly, and in
 * code after these: a count of updates, which checkpoints have, steers each of them. All workers
 * have the same count, so all do the one or the other. */

#define COUNT ALLREDUCE_SCOPE "updates"

void replicate_begin_warm_up(struct replicator *r)
{
    const struct attr mark = {PER_WORKER, attr_string(PER_WORKER_SAME)};
    r->coding = EDGE_NONE;
    if (!r->options->code.name || r->options->after < 1)
        return;
    r->updates = replicate_variable(r, &mark, COUNT, INT64, &SHAPE_SCALAR);
    struct edge after = replicate_number(r, INT64, r->options->after, COUNT "/after");
    struct edge zero = replicate_number(r, INT64, 0, COUNT "/zero");
    replicate_assign(r, &r->inits, r->updates, zero, COUNT "/Assign");
    r->coding = replicate_op(r, "GreaterEqual", r->updates, after, ALLREDUCE_SCOPE "codes");
}

/* After the last one has come. */
void replicate_end_warm_up(struct replicator *r)
{
    if (!edge_exists(r->coding) || !r->coded.n || r->err->code)
        return;
    struct edge one = replicate_number(r, INT64, 1, COUNT "/one");
    struct edge counted = replicate_op(r, "AssignAdd", r->updates, one, COUNT "/AssignAdd");
    replicate_wait(r, counted, r->merged);
    replicate_also(r, &r->ends, counted);
}
