/* SPDX-License-Identifier: Apache-2.0
 *
 * Replication without shards: every worker has all variables, and values that would be pushed are
 * reduced over the workers instead. Values are reduced in buckets, in the order in which they
 * become known, so that the first are sent while the others are computed; large ones are split into
 * pieces. For gradients that cross as factors all workers' rows are gathered and multiplied, which
 * gives the sum over all rows, by rank. Initial values are the first worker's.
 */
#include "graph/access_nodes.h"
#include "graph/op_cost.h"
#include "graph/update_rows.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_plan.h"
#include "pass/slice/slice.h"

#define BUCKET_BYTES ((int64_t)4 << 20)
#define COUNT ALLREDUCE_SCOPE "updates"
#define PIECE_BYTES ((int64_t)8 << 20)
#define PIECE_ROWS 64  /* pieces have a multiple of it, so that blocks of matrices stay whole */
#define PIECES_AHEAD 2 /* pieces computed before the first has been used */

/* ---- buckets: values reduced together, by one node ---- */

void replicate_put(struct replicator *r, struct bucket *bucket, const struct exchange *x,
                   struct bucket_value value)
{
    if (r->w.err->code)
        return;
    vec_push_in(&r->w.arena, &bucket->values, value);
    bucket->is_late |= x && x->is_delayed;
    bucket->bytes += (int64_t)cost_bytes(graph_output(r->w.to, value.value), r->options->assume);
}

struct edge *replicate_inputs(struct replicator *r, const struct bucket *bucket,
                              struct attr *reductions)
{
    size_t n = bucket->values.n;
    struct edge *inputs = arena_array(&r->w.arena, n + 1, sizeof *inputs);
    const char **names = arena_array(&r->w.to->arena, n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        inputs[i] = bucket->values.items[i].value;
        names[i] = bucket->values.items[i].reduction;
    }
    *reductions =
        (struct attr){"reductions", {.kind = ATTR_LIST_STRING, .n = (int)n, .strings = names}};
    return inputs;
}

int replicate_reduce(struct replicator *r, const char *name, struct bucket *bucket)
{
    const struct bucket full = *bucket;
    size_t n = full.values.n;
    bucket->values.n = 0;
    bucket->bytes = bucket->priority = 0;
    bucket->is_late = false;
    if (!n || r->w.err->code)
        return r->w.err->code;
    struct attr attrs[3];
    struct edge *inputs = replicate_inputs(r, &full, attrs);
    int n_attrs = 1 + (full.is_initial ? 0 : replicate_schedule_attrs(r, attrs + 1));
    struct edge made = replicate_node(r, "AllReduce", inputs, (int)n, attrs, n_attrs, "%s", name);
    if (r->w.err->code)
        return r->w.err->code;
    for (size_t i = 0; i < n; i++)
        *full.values.items[i].got = build_slot(made, (int)i);
    /* Gradients of the step before were checked then, and averages are apart from steps. */
    if (!full.is_initial && !full.is_late && !r->options->average)
        replicate_wait_for_checks(r, made);
    if (!full.is_initial && !full.is_whole)
        vec_push_in(&r->w.arena, &r->reducers, made.node);
    replicate_mark_sent(r, made.node, full.priority);
    return r->w.err->code;
}

/* ---- double buffering ----
 *
 * While a step computes its gradients, it exchanges those of the step before, which each worker has
 * kept. Updates are a step late (Seide et al., Interspeech 2014, section 3.3), and the first one
 * uses zeros. Checkpoints contain the kept gradients. */

struct edge replicate_exchanged(struct replicator *r, struct exchange *x)
{
    if (!x->is_delayed)
        return replicate_crossing(r, x);
    /* Checkpoints keep the sum, so another number of workers loses nothing of it. */
    x->kept = replicate_kept(r, replicate_text(r, x->node->name, "kept"), PER_WORKER_SUM,
                             x->output->type, &x->output->shape);
    return replicate_op(r, "Identity", x->kept, EDGE_NONE, "%s/before", x->node->name);
}

void replicate_settle(struct replicator *r, struct exchange *x)
{
    const struct node_spec spec = {.op = "Identity",
                                   .inputs = &x->got,
                                   .n_inputs = 1,
                                   .controls = &r->computed,
                                   .n_controls = 1};
    if (x->is_delayed)
        x->got = replicate_add(r, spec, ALLREDUCE_SCOPE "settled");
}

/* ---- large gradients of products in pieces ----
 *
 * Each is computed, summed and used some rows at a time. Two values of a piece replace a gradient
 * and its sum in memory, and the first rows are sent while others are computed. A piece is computed
 * after an earlier one was used, which limits how many exist at once; nodes that do not depend on
 * pieces run meanwhile. */

/* Returns the rows of a piece of a gradient; 0: no pieces. */
static int64_t piece_rows(const struct replicator *r, const struct exchange *x)
{
    const struct node_output *output = x->output;
    int64_t each = r->options->piece_bytes ? r->options->piece_bytes : PIECE_BYTES;
    int64_t bytes = shape_bytes(&output->shape, output->type);
    if (each == REPLICATE_WHOLE || bytes / 2 < each || !x->product || r->options->delay ||
        r->options->by_device)
        return 0;
    /* Only an update takes the gradient, and only that takes the product; a variable that is to be
     * partitioned is updated otherwise. */
    bool is_taken = false;
    int n_uses = 0;
    graph_each(node, r->w.from) {
        int input = node->op->def->descent.gradient;
        is_taken |= input && edge_equal(node->inputs[input], x->edge) &&
                    has(r, node->id, FACT_UPDATE) &&
                    !node_attr(graph_node(r->w.from, node->inputs[0].node), SLICE_WANTED);
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            int used = node_dependency(node, k).node;
            n_uses += used == x->edge.node || used == x->product->id;
        }
    }
    if (!is_taken || n_uses > 2)
        return 0;
    int64_t rows = each / (bytes / output->shape.dims[0]) / PIECE_ROWS * PIECE_ROWS;
    rows = rows < PIECE_ROWS ? PIECE_ROWS : rows;
    return rows < output->shape.dims[0] ? rows : 0;
}

/* Makes the pieces of a gradient, and reduces them. */
static void reduce_pieces(struct replicator *r, struct exchange *x, int64_t each, int priority)
{
    const struct node *product = x->product;
    int64_t rows = x->output->shape.dims[0];
    for (int64_t first = 0; first < rows && !r->w.err->code; first += each) {
        const char *name = arena_printf(&r->w.to->arena, ALLREDUCE_SCOPE "%s/rows_%lld",
                                        x->node->name, (long long)first);
        const int64_t begin[] = {0, first},
                      size[] = {-1, rows - first < each ? rows - first : each};
        /* Some columns of the left factor give some rows of the product. */
        struct edge inputs[] = {replicate_edge(r, product->inputs[0]),
                                replicate_vector(r, replicate_text(r, name, "begin"), begin, 2),
                                replicate_vector(r, replicate_text(r, name, "size"), size, 2)};
        struct edge columns = replicate_node(r, "Slice", inputs, 3, NULL, 0, "%s/columns", name);
        const struct edge factors[] = {columns, replicate_edge(r, product->inputs[1])};
        struct node_spec spec = graph_spec_like(product);
        spec.inputs = factors;
        spec.n_inputs = 2;
        spec.device = replicate_device(r, product, WORKER_DEVICE);
        spec.file = NULL;
        struct gradient_piece piece = {replicate_add(r, spec, "%s/product", name), first,
                                       EDGE_NONE};
        struct bucket bucket = {.priority = priority};
        replicate_put(r, &bucket, x, (struct bucket_value){piece.made, x->reduction, &piece.sum});
        replicate_reduce(r, name, &bucket);
        vec_push_in(&r->w.arena, &x->pieces, piece);
    }
}

/* The gradient that is propagated further back also depends on the variable. The update follows it,
 * since a variable that changes while it has readers is copied. Both nodes run in each step. */
static void wait_for_readers(struct replicator *r, const struct exchange *x,
                             const struct node *update, struct node *copy)
{
    const struct node *variable = graph_node(r->w.from, update->inputs[0].node);
    graph_each(node, r->w.from) {
        bool is_back = false, is_reader = false;
        for (int k = 0; k < node->n_inputs; k++) {
            is_back |= edge_equal(node->inputs[k], x->product->inputs[1]);
            const struct node *read = graph_node(r->w.from, node->inputs[k].node);
            is_reader |= read == variable ||
                         (node_is(read, "Identity") && read->inputs[0].node == variable->id);
        }
        if (is_back && is_reader && !node->n_controls && has(r, node->id, FACT_NEEDED) &&
            !has(r, node->id, FACT_AFTER))
            graph_add_control(r->w.to, copy, r->copy[node->id]);
    }
}

/* A node that takes a worker's part of an initial value also counts. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node)
{
    return node_attr(node, WORKER_PART_INITIAL) || has(r, node->id, FACT_FIRST);
}

/* Returns the edge that `reader` gets for an edge of the source. */
static struct edge reduced_edge(void *context, const struct node *reader, struct edge edge, int k)
{
    const struct replicator *r = context;
    (void)k;
    const struct exchange *x = replicate_exchange(r, edge);
    int at = replicate_is_initializer(r, reader) ? edge_map_get(&r->initial_at, edge) : -1;
    if (at >= 0 && edge_exists(edge))
        return (struct edge){r->initial, at};
    if (x && edge_exists(x->got) && has(r, reader->id, FACT_UPDATE) &&
        !replicate_is_initializer(r, reader))
        return x->got;
    return (struct edge){edge_exists(edge) ? r->copy[edge.node] : -1, edge.slot};
}

static struct edge in_piece(void *context, const struct node *reader, struct edge edge, int k)
{
    const struct replicator *r = context;
    const struct exchange *x = replicate_exchange(r, edge);
    return x && x->pieces.n ? x->pieces.items[k].sum : reduced_edge(context, reader, edge, k);
}

bool replicate_copy_pieces(struct replicator *r, const struct node *node)
{
    int input = node->op->def->descent.gradient;
    const struct exchange *x = input ? replicate_exchange(r, node->inputs[input]) : NULL;
    int n = x ? (int)x->pieces.n : 0;
    for (int i = 0; i < n; i++) {
        /* The last one has the update's name, and comes after the others. */
        const struct gradient_piece *piece = &x->pieces.items[i];
        const char *name =
            arena_printf(&r->w.to->arena, "%s/rows_%lld", node->name, (long long)piece->first_row);
        const struct rewrite_copy spec = {
            node, i, .name = i + 1 == n ? node->name : rewrite_free_name(r->w.from, r->w.to, name),
            .device = replicate_device(r, node, WORKER_DEVICE)};
        struct attr first = {UPDATE_FIRST_ROW, attr_int(piece->first_row)};
        struct node *copy = rewrite_add_mapped(&r->w, &spec, in_piece);
        graph_set_attr(r->w.to, copy, &first, r->w.err);
        if (i)
            graph_add_control(r->w.to, copy, r->copy[node->id]);
        else
            wait_for_readers(r, x, node, copy);
        r->copy[node->id] = copy->id;
        if (i + PIECES_AHEAD < n)
            replicate_wait(r, x->pieces.items[i + PIECES_AHEAD].made, copy->id);
    }
    return n > 0;
}

/* ---- averages ----
 *
 * Local steps: each worker updates its variables by its own gradients, and every so many steps all
 * average the variables that updates write (model averaging; Moritz et al., SparkNet, ICLR 2016).
 * Updates also write optimizer slots and batch statistics, so these are averaged too (Yu, Jin and
 * Yang, ICML 2019): after each average all workers are equal, and a checkpoint of one of them is
 * one of all.
 *
 * The entry that trains is unchanged. The exchange is in the entry `average`, so steps between two
 * averages do not wait for other workers. With a code the variable's change since the last average
 * crosses, quantized; `anchor` variables have the values from which these changes are computed, and
 * the entry `anchor` sets them when a worker begins. */

enum { IS_WRITTEN = 1, IS_TRAINED = 2 }; /* of a variable, by the entry that trains */

int replicate_plan_averages(struct replicator *r)
{
    const struct graph *from = r->w.from;
    unsigned char *marks = arena_array(&r->w.arena, from->nodes.n + 1, sizeof *marks);
    const int *variables = access_variables(from, &r->w.arena);
    if (replicate_refuse_leaving_out(r, "goes by all gradients: average=N has none of others"))
        return r->w.err->code;
    vec_each(x, &r->exchanges) {
        (*x)->crossing = CROSSES_NOT;
        if ((*x)->is_gradient && (*x)->variable)
            marks[(*x)->variable->id] |= IS_TRAINED;
    }
    graph_each(node, from) {
        for (int i = 0; i < node->n_inputs && has(r, node->id, FACT_WRITER); i++) {
            int variable = access_variable_at(from, variables, node->inputs[i]);
            if (variable >= 0 && node_writes_ref(node, i))
                marks[variable] |= IS_WRITTEN;
        }
    }
    graph_each(node, from) {
        if (!(marks[node->id] & IS_WRITTEN) || !dtype_is_floating(node->outputs[0].type))
            continue;
        struct exchange *x = replicate_new_exchange(r, (struct edge){node->id, 0});
        x->variable = node;
        x->is_gradient = marks[node->id] & IS_TRAINED;
        x->steps = r->options->average;
        x->reduction = "mean";
        vec_push_in(&r->w.arena, &r->planned, x);
    }
    return 0;
}

/* A variable in code exchanges its change since the last average. */
static void begin_averages(struct replicator *r)
{
    vec_each(at, &r->planned) {
        struct exchange *x = *at;
        if (!r->options->average || x->crossing != CROSSES_IN_CODE)
            continue;
        const char *name = x->node->name;
        struct edge variable = replicate_edge(r, x->edge);
        x->kept = replicate_local(r, replicate_text(r, name, "anchor"), x->output->type,
                                  &x->output->shape);
        replicate_assign(r, &r->joined, x->kept, variable, "%s/anchor/Assign", name);
        x->brought = replicate_op(r, "Sub", variable, x->kept, "%s/change", name);
    }
}

static int end_averages(struct replicator *r)
{
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        const char *name = x->node->name;
        struct edge mean = x->got;
        if (edge_exists(x->kept)) {
            mean = replicate_op(r, "Add", x->kept, x->got, "%s/average", name);
            replicate_assign(r, &r->ends, x->kept, mean, "%s/anchor/average", name);
        }
        replicate_assign(r, &r->ends, replicate_edge(r, x->edge), mean, "%s/average/Assign", name);
    }
    struct edge every = replicate_number(r, INT64, r->options->average, WORKER_AVERAGE "/every");
    int set = replicate_after(r, "NoOp", WORKER_DEVICE, &r->ends, WORKER_AVERAGE "/set");
    const struct edge average[] = {every, {set, CONTROL_SLOT}};
    r->ends.n = 0; /* they belong to no step */
    if (replicate_entry(r, WORKER_AVERAGE, average, 2) || !r->joined.n)
        return r->w.err->code;
    int begun = replicate_after(r, "NoOp", WORKER_DEVICE, &r->joined, WORKER_ANCHOR "/set");
    return replicate_entry(r, WORKER_ANCHOR, &(struct edge){begun, CONTROL_SLOT}, 1);
}

/* ---- gradients ---- */

static void flush(struct replicator *r, struct buckets *b)
{
    replicate_reduce(r, ALLREDUCE_SCOPE "warm_up", &b->whole);
    if (b->coded.n)
        replicate_exchange_codes(r);
    replicate_reduce(r, replicate_bucket_name(r), &b->plain);
    vec_each(x, &b->late)
        replicate_settle(r, *x);
    b->late.n = 0;
}

struct bucket *replicate_bucket(const struct replicator *r, const struct exchange *x)
{
    return x->push ? &x->push->sent : &r->buckets->plain;
}

static void send_whole(struct replicator *r, struct exchange *x)
{
    struct edge value = replicate_pushed(r, x);
    replicate_put(r, replicate_bucket(r, x), x,
                  (struct bucket_value){value, x->reduction, &x->got});
    if (x->is_delayed)
        vec_push_in(&r->w.arena, &r->buckets->late, x);
}

const struct technique replicate_whole = {
    .name = "gradient", .price = replicate_price_whole, .send = send_whole};

/* A bucket is as urgent as its most urgent value. */
static void urge(struct bucket *bucket, int priority)
{
    if (priority && (!bucket->priority || priority < bucket->priority))
        bucket->priority = priority;
}

static void send_around(struct replicator *r, struct buckets *b, struct exchange *x)
{
    int priority = x->variable ? r->priority[x->variable->id] : 0;
    int64_t rows = x->crossing == CROSSES_WHOLE ? piece_rows(r, x) : 0;
    if (rows) {
        flush(r, b);
        reduce_pieces(r, x, rows, priority);
        return;
    }
    x->technique->send(r, x);
    urge(&b->plain, priority);
    urge(&b->codes, priority);
    urge(&b->whole, priority);
    if (b->plain.bytes + b->codes.bytes >= BUCKET_BYTES || b->whole.bytes >= BUCKET_BYTES)
        flush(r, b);
}

static void reduce_gradients(struct replicator *r)
{
    struct buckets *b = r->buckets = arena_alloc(&r->w.arena, sizeof *b);
    b->whole.is_whole = true;
    r->merged = r->reduced = -1;
    vec_each(at, &r->planned) {
        /* Rows of tables have no fixed shape for a variable, and values that are no gradients
         * belong to their step. */
        struct exchange *x = *at;
        x->is_delayed = r->options->delay && x->is_gradient && !x->is_of_rows &&
                        shape_is_known(&x->output->shape);
    }
    if (r->options->delay) {
        node_list controls = VEC_INIT;
        for (size_t i = 0; i < r->w.from->nodes.n; i++)
            if (r->copy[i] >= 0 && has(r, (int)i, FACT_MARKED | FACT_CONTROLS) &&
                !has(r, (int)i, FACT_AFTER))
                vec_push_in(&r->w.arena, &controls, r->copy[i]);
        r->computed =
            replicate_after(r, "NoOp", WORKER_DEVICE, &controls, ALLREDUCE_SCOPE "computed");
    }
    /* Warm-up: gradients cross whole in the first updates, when they are large and change quickly,
     * and in code afterwards. A count of updates, which checkpoints contain, steers this. It is
     * equal in all workers, so all do the same. */
    struct edge updates = EDGE_NONE;
    if (r->options->code.name && r->options->after > 0) {
        const struct attr mark = {PER_WORKER, attr_string(PER_WORKER_SAME)};
        updates = replicate_variable(r, &mark, COUNT, INT64, &SHAPE_SCALAR);
        struct edge after = replicate_number(r, INT64, r->options->after, COUNT "/after");
        struct edge zero = replicate_number(r, INT64, 0, COUNT "/zero");
        replicate_assign(r, &r->inits, updates, zero, COUNT "/Assign");
        r->coding = replicate_op(r, "GreaterEqual", updates, after, ALLREDUCE_SCOPE "codes");
    }
    begin_averages(r);
    vec_each(x, &r->planned) {
        if ((*x)->technique)
            send_around(r, b, *x);
    }
    flush(r, b);
    for (int keeps = 0; keeps < 2; keeps++)
        for (size_t i = 0; i < r->planned.n && !r->w.err->code; i++) {
            const struct technique *technique = r->planned.items[i]->technique;
            if (technique && !keeps && technique->take)
                technique->take(r, r->planned.items[i]);
            if (technique && keeps && technique->keep)
                technique->keep(r, r->planned.items[i], EDGE_NONE);
        }
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        if (!x->is_delayed)
            continue;
        /* The step's gradient is kept after all workers have received the previous one. */
        struct edge keeps = replicate_assign(r, &r->ends, x->kept, replicate_edge(r, x->edge),
                                             "%s/keep", x->node->name);
        vec_each(reducer, &r->reducers)
            replicate_wait(r, keeps, *reducer);
    }
    if (r->merged >= 0) { /* the update is counted after the last gradient has come */
        struct edge one = replicate_number(r, INT64, 1, COUNT "/one");
        struct edge counted = replicate_op(r, "AssignAdd", updates, one, COUNT "/AssignAdd");
        replicate_wait(r, counted, r->merged);
        replicate_also(r, &r->ends, counted);
    }
    if (r->options->average)
        end_averages(r);
}

/* ---- the graph ---- */

int replicate_allreduce(struct replicator *r)
{
    for (size_t i = 0; i < r->w.from->nodes.n; i++)
        r->facts[i] &= ~(unsigned)FACT_WRITER; /* updates are each worker's own */
    replicate_copy_all(r, 0, reduced_edge);
    replicate_sum_rows(r);
    reduce_gradients(r);
    struct bucket initial = {.is_initial = true};
    struct edge last = EDGE_NONE;
    graph_each(node, r->w.from) {
        if (!replicate_is_initializer(r, node))
            continue;
        /* A constant, or a part of one, is the same everywhere. */
        struct edge value = node->inputs[node_attr(node, WORKER_PART_INITIAL) ? 0 : 1];
        const struct node *source = graph_node(r->w.from, value.node);
        if (node_is(source, "Const") || node_attr(source, WORKER_PART_INITIAL))
            continue;
        edge_map_add(&r->initial_at, value, (int)initial.values.n);
        replicate_put(r, &initial, NULL,
                      (struct bucket_value){replicate_edge(r, value), "first", &last});
    }
    replicate_reduce(r, ALLREDUCE_SCOPE "initial", &initial);
    r->initial = last.node;
    return r->w.err->code || replicate_copy_all(r, FACT_AFTER, reduced_edge) ? r->w.err->code : 0;
}
