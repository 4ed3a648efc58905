/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized gradients. Each worker codes the sum of its gradient and its residual, which is what
 * its codes have lost so far: a private variable that starts at 0. All workers, or the shard,
 * decode and average all codes, by rank. The new residual is kept after all exchanges of the step,
 * or when the push is decided, so that a step that fails, or is not counted, loses nothing.
 */
#include <math.h>
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_plan.h"

#define COUNT_MIN 1024      /* elements of a gradient that is worth coding, and of a group */
#define TOP_GROUP_MAX 65536 /* elements of which the largest are kept */

/* Passes of a code over a gradient in memory (make bench-techniques). */
#define CODE_PASSES 12  /* for coding, and for the residual */
#define DECODE_PASSES 8 /* for decoding, and adding to others */

/* ---- which values can be coded ---- */

static const char *refuse(const struct replicator *r, struct exchange *x)
{
    if (!r->options->code.name)
        return "no code was asked for";
    if (!x->is_gradient)
        return "it is no gradient";
    if (x->is_of_rows)
        return "it is of some rows of a table";
    if (x->output->type != FLOAT32)
        return "it is not float32";
    if (!shape_is_known(&x->output->shape))
        return "its shape is not known";
    return shape_count(&x->output->shape) < COUNT_MIN ? "it is small" : NULL;
}

/* ---- groups ---- */

/* Returns the size of a group: groups are whole rows of the last dimension, all equally many; it is
 * the smallest that has enough elements. */
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

/* ---- costs ---- */

/* Returns whether each worker averages a part of the groups of all codes, and codes the mean again:
 * 2 (n - 1) / n of a code then cross, not n - 1. For thresholds and the largest elements a second
 * code makes no sense, since a mean has other values. Shards that update decode all; as servers
 * they pass on a code, which a worker sends once, and have no residuals. */
static bool is_shared_out(const struct replicator *r)
{
    const char *code = r->options->code.name;
    return !replicate_pushes(r) && !r->options->by_servers &&
           (!strcmp(code, "one_bit") || !strcmp(code, "uniform"));
}

static struct cost_sum price(const struct replicator *r, const struct exchange *x)
{
    const struct shape *shape = &x->output->shape;
    const struct replicate_code *code = &r->options->code;
    struct cost_way way = r->ways->sent;
    int n = r->ways->n;
    int64_t group = group_of(r, shape);
    bool shared = is_shared_out(r);
    double count = (double)shape_count(shape);
    double pass = 1e9 * count * sizeof(float) / r->rates.bandwidth; /* ns of one pass over memory */
    double bits = ceil((double)group * code->bits / 8);
    double row = !strcmp(code->name, "top")        ? 8.0 * (double)kept_of(r, group)
                 : strcmp(code->name, "threshold") ? 8 + bits
                                                   : bits;
    double bytes = count / (double)group * row, both = 2.0 * (n - 1) / n * bytes;
    if (replicate_pushes(r)) {
        /* A code crosses once for each push of the gradient; shards share the decoding of all
         * workers' codes. */
        double every = x->steps;
        double push_ns = replicate_workers_ns(r, CODE_PASSES * pass) +
                         replicate_shards_ns(r, n * DECODE_PASSES * pass);
        return (struct cost_sum){bytes / every,
                                 way.latency + (way.per_byte * bytes + push_ns) / every};
    }
    struct cost_sum crosses = shared
                                  ? (struct cost_sum){both, 2 * way.latency + way.per_byte * both}
                                  : replicate_gather_way(r, bytes);
    double passes =
        shared ? CODE_PASSES * (1 + 1.0 / n) + 2 * DECODE_PASSES : CODE_PASSES + n * DECODE_PASSES;
    return (struct cost_sum){crosses.bytes, crosses.ns + replicate_workers_ns(r, passes * pass)};
}

/* ---- nodes ---- */

/* The mean of the codes of some members, given by inputs[1], on a worker or beside the variable. */
static struct edge decode(struct replicator *r, const struct exchange *x, const char *suffix,
                          const struct edge inputs[2], const struct shape *shape)
{
    struct attr attrs[6];
    memcpy(attrs, x->coded->attrs, sizeof x->coded->attrs);
    attrs[5] = (struct attr){"shape", attr_shape(shape)};
    struct node_spec spec = replicate_spec("DequantizeGradient", inputs, 2, attrs, 6);
    return replicate_add(r, x->push ? replicate_beside(r, x->push->variable, spec) : spec, "%s/%s",
                         x->node->name, suffix);
}

struct edge replicate_quantize(struct replicator *r, const struct exchange *x, const char *name,
                               const struct code_edges *coding)
{
    const struct edge inputs[] = {coding->value, coding->residual, coding->first};
    return replicate_node(r, "QuantizeGradient", inputs, 3, x->coded->attrs, 5, "%s", name);
}

struct edge replicate_keep(struct replicator *r, const struct exchange *x,
                           const struct code_edges *coding, const char *suffix)
{
    const struct edge inputs[] = {coding->residual, coding->value, coding->code, coding->first};
    return replicate_node(r, "ApplyResidual", inputs, 4, x->coded->attrs, 5, "%s/%s", x->node->name,
                          suffix);
}

/* ---- among workers ---- */

static struct bucket *bucket_of_codes(const struct replicator *r)
{
    return edge_exists(r->coding) ? &r->buckets->codes : &r->buckets->plain;
}

/* The workers' ranks are exchanged along with the codes. */
int replicate_exchange_codes(struct replicator *r)
{
    struct bucket *bucket = bucket_of_codes(r);
    exchange_list *all = &r->buckets->coded;
    struct edge members = EDGE_NONE;
    int priority = bucket->priority;
    if (!edge_exists(r->rank))
        r->rank = replicate_op(r, "CollectiveRank", EDGE_NONE, EDGE_NONE, ALLREDUCE_SCOPE "rank");
    replicate_put(r, bucket, NULL, (struct bucket_value){r->rank, "rows", &members});
    replicate_reduce(r, replicate_bucket_name(r), bucket);
    bucket->priority = priority;
    /* Means that are shared out: each worker codes its part for all. */
    vec_each(at, all) {
        struct exchange *x = *at;
        struct coded_gradient *coded = x->coded;
        struct code_edges *mean = &coded->mean;
        const char *name = x->node->name;
        if (!coded->is_shared_out)
            continue;
        int64_t group = coded->attrs[1].value.i;
        struct attr rows = {"rows", attr_int(coded->groups)};
        const struct shape some = shape_matrix(-1, group),
                           whole = shape_matrix(coded->groups, group);
        const struct edge codes[] = {coded->codes, members}, ranks[] = {members, r->rank};
        mean->value = decode(r, x, "part/mean", codes, &some);
        mean->residual = replicate_kept(r, replicate_text(r, name, "part/residual"),
                                        PER_WORKER_ROWS, FLOAT32, &whole);
        mean->first =
            replicate_node(r, "CollectivePart", ranks, 2, &rows, 1, "%s/part/first", name);
        mean->code = replicate_quantize(r, x, replicate_text(r, name, "part/code"), mean);
        replicate_put(r, bucket, x, (struct bucket_value){mean->code, "rows", &coded->means});
    }
    replicate_reduce(r, ALLREDUCE_SCOPE "means", bucket);
    vec_each(at, all) {
        struct exchange *x = *at;
        const struct coded_gradient *coded = x->coded;
        const struct edge inputs[] = {coded->is_shared_out ? coded->means : coded->codes,
                                      coded->is_shared_out ? r->rank : members};
        x->got = decode(r, x, "mean", inputs, &x->output->shape);
        if (edge_exists(r->coding)) {
            x->got = replicate_op(r, "Merge", coded->whole, x->got, "%s/Merge", x->node->name);
            r->merged = x->got.node;
        }
        replicate_settle(r, x);
    }
    all->n = 0;
    return r->w.err->code;
}

static void keep_lost(struct replicator *r, const struct exchange *x,
                      const struct code_edges *coding, const char *suffix)
{
    struct edge kept = replicate_keep(r, x, coding, suffix);
    replicate_wait(r, kept, r->reduced);
    replicate_also(r, &r->ends, kept);
}

/* ---- sending and taking ---- */

/* The value if it is there, that is, if `coding` is not `without`; else nothing: a tensor without
 * rows, with the value's type and other dimensions. */
static struct edge or_nothing(struct replicator *r, const char *name, struct edge value,
                              int without)
{
    if (r->w.err->code)
        return EDGE_NONE;
    const struct node_output *output = graph_output(r->w.to, value);
    struct shape none = output->shape;
    none.dims[0] = 0;
    struct edge nothing = replicate_zeros(r, name, output->type, &none);
    struct edge steered = replicate_op(r, "Switch", nothing, r->coding, "%s/Switch", name);
    return replicate_op(r, "Merge", value, build_slot(steered, without), "%s/Merge", name);
}

/* During a warm-up a push has two values, one of them nothing, and a flag that tells which; workers
 * exchange the one that there is. */
static void send_code(struct replicator *r, struct exchange *x)
{
    const char *name = x->node->name, *kept = replicate_text(r, name, "residual");
    const struct shape *shape = &x->output->shape;
    struct edge value = replicate_pushed(r, x), whole = EDGE_NONE;
    if (x->push && r->options->after > 0 && !edge_exists(r->coding)) {
        /* With shards the version that a worker computes from tells whether gradients are coded: it
         * is the same for all members of a round. */
        struct edge after = replicate_number(r, INT64, r->options->after, "clock/codes/after");
        r->coding =
            replicate_op(r, "GreaterEqual", replicate_out(r->version), after, "clock/codes");
    }
    bool warms_up = edge_exists(r->coding);
    if (warms_up) {
        whole = replicate_op(r, "Switch", value, r->coding, "%s/%s", name,
                             x->push ? "uncoded" : "Switch");
        value = build_slot(whole, 1);
    }
    /* The residual begins at zero. */
    struct edge residual = x->push ? replicate_local(r, kept, FLOAT32, shape)
                                   : replicate_kept(r, kept, PER_WORKER_SUM, FLOAT32, shape);
    const struct replicate_code *options = &r->options->code;
    int64_t group = group_of(r, shape);
    const struct coded_gradient new = {.own = {.value = value, .residual = residual},
                                       .is_shared_out = is_shared_out(r),
                                       .groups = shape_count(shape) / group,
                                       .attrs = {{"code", attr_string(options->name)},
                                                 {"group", attr_int(group)},
                                                 {"bits", attr_int(options->bits)},
                                                 {"threshold", attr_float(options->threshold)},
                                                 {"keep", attr_int(kept_of(r, group))}}};
    struct coded_gradient *coded = x->coded = arena_copy(&r->w.arena, &new, sizeof new);
    coded->own.first = replicate_number(r, INT64, 0, "%s/first", name);
    struct edge code = coded->own.code =
        replicate_quantize(r, x, replicate_text(r, name, "code"), &coded->own);
    if (x->push)
        vec_push_in(&r->w.arena, &r->own->states, ((struct own_state){x, residual, EDGE_NONE}));
    else
        vec_push_in(&r->w.arena, &r->buckets->coded, x);
    if (warms_up && x->push) {
        code = or_nothing(r, replicate_text(r, name, "code/none"), code, 0);
        whole = or_nothing(r, replicate_text(r, name, "uncoded/none"), whole, 1);
    }
    replicate_put(
        r, x->push ? &x->push->sent : bucket_of_codes(r), x,
        (struct bucket_value){code, coded->is_shared_out ? "part" : "rows", &coded->codes});
    if (warms_up)
        replicate_put(r, x->push ? &x->push->sent : &r->buckets->whole, x,
                      (struct bucket_value){whole, "mean", &coded->whole});
    if (warms_up && x->push)
        replicate_put(
            r, &x->push->sent, NULL,
            (struct bucket_value){replicate_due_to_push(r, r->coding), "first", &coded->is_coded});
}

/* The value in rounds whose codes are `there`, or are not. */
static struct edge take_if(struct replicator *r, const struct exchange *x, const char *suffix,
                           struct edge value, int there)
{
    return build_slot(replicate_op_beside(r, "Switch", value, x->coded->is_coded, x->push->variable,
                                          "%s/%s", x->node->name, suffix),
                      there);
}

/* Workers have decoded what they exchanged. */
static void take_code(struct replicator *r, struct exchange *x)
{
    const struct coded_gradient *coded = x->coded;
    struct edge inputs[] = {coded->codes, {r->round, 1}};
    if (!x->push)
        return;
    if (r->options->after > 0)
        inputs[0] = take_if(r, x, "code/taken", coded->codes, 1);
    x->got = decode(r, x, "mean", inputs, &x->output->shape);
    if (r->options->after > 0)
        x->got = replicate_op_beside(r, "Merge", take_if(r, x, "uncoded/taken", coded->whole, 0),
                                     x->got, x->push->variable, "%s/mean/Merge", x->node->name);
}

/* Keeps the residual; if a push is dropped as late, adds the whole value to it. */
static void keep_code(struct replicator *r, struct exchange *x, struct edge counts)
{
    if (x->push) {
        struct code_edges lost = x->coded->own;
        struct edge value =
            replicate_op(r, "Switch", lost.value, counts, "%s/counted", x->node->name);
        lost.value = build_slot(value, 1);
        struct edge kept = replicate_keep(r, x, &lost, "lost");
        replicate_also(r, &r->ends, kept);
        replicate_also(
            r, &r->ends,
            replicate_op(r, "AssignAdd", lost.residual, value, "%s/back", x->node->name));
        return;
    }
    if (r->reduced < 0)
        r->reduced =
            replicate_after(r, "NoOp", WORKER_DEVICE, &r->reducers, ALLREDUCE_SCOPE "exchanged");
    keep_lost(r, x, &x->coded->own, "lost");
    if (x->coded->is_shared_out)
        keep_lost(r, x, &x->coded->mean, "part/lost");
}

const struct technique replicate_code = {.name = "code",
                                         .refuse = refuse,
                                         .price = price,
                                         .send = send_code,
                                         .take = take_code,
                                         .keep = keep_code};
