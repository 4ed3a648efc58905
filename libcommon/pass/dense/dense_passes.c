/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense layers in several passes, each of some of the worker's rows: what depends on a layer is
 * there once for each pass, forward and back, up to the loss, and back to what is in front of the
 * layers. A pass begins when the one before has ended, but for bringing its rows together, which
 * goes on beside that one. So what is between layers has the rows of one pass.
 *
 * A pass' gradients begin with the share of the worker's rows that it has, and are added, or put
 * together by rows: what comes of all passes is what one pass of all rows makes.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/index_rule.h"
#include "graph/walk.h"
#include "pass/dense/dense_private.h"

static bool in_pass(const struct dense_cutter *c, int node)
{
    return dense_has(c, node, DENSE_IN);
}

/* ---- what updates layers ---- */

/* The variable that a node has itself, as its i-th input; NULL: that is another one. */
static const struct node *written_by(const struct dense_cutter *c, const struct node *node, int i)
{
    const struct node *from = graph_node(c->r.from, node->inputs[i].node);
    return node_takes_ref(node, i) && node_is(from, "Variable") ? from : NULL;
}

static int find_updates(struct dense_cutter *c)
{
    static const struct spread spreads[] = {
        {.fact = DENSE_OF_LAYERS, .unless = DENSE_HANDED_OVER},
        {.fact = DENSE_OF_OTHERS, .unless = DENSE_HANDED_OVER},
        /* What updates need of all that depends on gradients is for them. */
        {.fact = DENSE_UPDATE, .only = DENSE_OF_LAYERS | DENSE_OF_OTHERS, .up = true},
        {DENSE_WRITTEN, DENSE_READS, .unless = DENSE_UPDATE}};
    graph_each(node, c->r.from) {
        if (node_attr(node, "_gradient"))
            c->facts[node->id] |=
                DENSE_HANDED_OVER |
                (dense_axis_of_gradient(c, node) >= 0 ? DENSE_OF_LAYERS : DENSE_OF_OTHERS);
    }
    for (int i = 0; i < 2; i++)
        spread_facts(c->r.from, c->r.order, c->facts, spreads[i]);
    /* These nodes change a layer's variable, by its gradient. */
    graph_each(node, c->r.from) {
        for (int k = 0; k < node->n_inputs && dense_has(c, node->id, DENSE_OF_LAYERS); k++) {
            const struct node *variable = written_by(c, node, k);
            if (!variable || c->cut[variable->id] < 0)
                continue;
            if (dense_has(c, node->id, DENSE_OF_OTHERS))
                return dense_refuse(c, node,
                                    "gradients of what is not in passes change it, too, as by a "
                                    "norm of all: with update=pass that cannot be");
            c->facts[node->id] |= DENSE_UPDATE | DENSE_WRITER;
            c->facts[variable->id] |= DENSE_WRITTEN;
        }
    }
    spread_facts(c->r.from, c->r.order, c->facts, spreads[2]);
    /* Nodes that updates wait for belong to their pass: checks of the loss come to it this way. */
    spread_facts(c->r.from, c->r.order, c->facts,
                 (struct spread){DENSE_IN, DENSE_COMES_OF_PASS, .controls = true});
    graph_each(node, c->r.from) {
        for (int k = 0; dense_has(c, node->id, DENSE_UPDATE) && k < node->n_controls; k++) {
            const struct node *before = graph_node(c->r.from, node->controls[k]);
            if (dense_has(c, before->id, DENSE_IN | DENSE_UPDATE) ||
                !dense_has(c, before->id, DENSE_COMES_OF_PASS))
                continue;
            if (!node_has(before, OP_CHECKS) || !in_pass(c, before->inputs[0].node))
                return dense_refuse(c, before,
                                    "the update of a dense layer waits for it, and it comes of "
                                    "all passes: with update=pass that cannot be");
            c->facts[before->id] |= DENSE_IN;
        }
    }
    spread_facts(c->r.from, c->r.order, c->facts, spreads[3]);
    graph_each(node, c->r.from) {
        c->facts[node->id] |= dense_has(c, node->id, DENSE_UPDATE) ? DENSE_IN : 0;
    }
    return 0;
}

/* ---- what is in passes ---- */

/* What is in passes, and the rows that shares are of. With update_each also what changes layers in
 * each pass: what a pass reads of their variables is what the one before has left. */
static int find_passes(struct dense_cutter *c)
{
    /* Down from layers, and from where gradients begin. */
    graph_each(node, c->r.from) {
        bool ends = node_has(node, OP_CHECKS) || node_attr(node, "_gradient");
        bool begins = dense_has(c, node->id, DENSE_LAYER) || node_attr(node, "_loss");
        /* The last are the errors that a layer hands on to what is in front of all of them. */
        bool part = false;
        for (int i = 0; rule_is_product(node->op) && i < node->n_inputs; i++) {
            const struct node *variable = dense_variable(c, node->inputs[i]);
            part |= variable && c->cut[variable->id] >= 0;
        }
        bool is_last =
            part && dense_has(c, node->id, DENSE_GRADIENT) && !dense_has(c, node->id, DENSE_BACK);
        c->facts[node->id] |=
            (is_last ? DENSE_LAST : 0) | (ends ? DENSE_ENDED : 0) | (begins ? DENSE_IN : 0);
    }
    spread_facts(c->r.from, c->r.order, c->facts,
                 (struct spread){.roots = DENSE_LAST, .fact = DENSE_ENDED});
    graph_each(node, c->r.from) {
        c->facts[node->id] &= dense_has(c, node->id, DENSE_ENDED) ? ~(unsigned)DENSE_IN : ~0U;
    }
    spread_facts(c->r.from, c->r.order, c->facts,
                 (struct spread){.fact = DENSE_IN, .unless = DENSE_ENDED});
    if (c->options->update_each && find_updates(c))
        return c->r.err->code;
    /* Each pass has its own of what is made of rows, as a shape is, and of what it reads of a
     * variable that passes change. */
    for (size_t i = c->r.from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(c->r.from, c->r.order[i]);
        for (int k = 0; in_pass(c, node->id) && k < node->n_inputs; k++) {
            const struct node *from = graph_node(c->r.from, node->inputs[k].node);
            bool of_pass = dense_has(c, from->id, DENSE_READS);
            for (int j = 0; j < from->n_inputs; j++)
                of_pass |= dense_is_rows(c, from->inputs[j]);
            if (of_pass && !dense_is_rows(c, node->inputs[k]))
                c->facts[from->id] |= DENSE_IN;
        }
    }
    for (size_t i = 0; c->options->update_each && i < c->r.from->entries.n; i++) {
        const struct entry *entry = &c->r.from->entries.items[i];
        const bool *needed = graph_entry_needs(&c->r.arena, c->r.from, entry);
        bool reads = false, trains = false;
        graph_each(node, c->r.from) {
            reads |=
                needed[node->id] && in_pass(c, node->id) && dense_has(c, node->id, DENSE_READS);
            trains |= needed[node->id] && dense_has(c, node->id, DENSE_WRITER);
        }
        if (reads && !trains)
            return error_set(c->r.err, ERR_DATA,
                             "entry '%s' goes through dense layers, which with update=pass it "
                             "would train: keep it in a graph of its own",
                             entry->name);
    }
    graph_each_ordered(node, c->r.from, c->r.order) {
        if (in_pass(c, node->id) && !dense_has(c, node->id, DENSE_UPDATE) &&
            (node_has(node, OP_CONTROL_FLOW) ||
             (node_has(node, OP_STATEFUL) && !node_has(node, OP_RANDOM))))
            return dense_refuse(c, node,
                                "it has a state, or is control flow, and would be run in "
                                "each pass");
        if (!edge_exists(c->reference) && dense_has(c, node->id, DENSE_LAYER))
            c->reference = node->inputs[0];
    }
    return 0;
}

/* ---- the order ---- */

static void wait_for(struct dense_cutter *c, int id, int before)
{
    graph_add_control(c->r.to, graph_node(c->r.to, id), before);
}

/* ---- rows of a pass ---- */

static struct build *begin(struct dense_cutter *c, struct edge edge, const char *what, int pass)
{
    dense_begin(c, edge, arena_printf(&c->r.arena, "pass_%d/%s", pass, what));
    return &c->b;
}

/* Row k of n of so many parts. */
static struct edge bound(struct dense_cutter *c, struct edge rows, int k)
{
    struct edge times = build_binary(&c->b, "Mul", rows, build_scalar(&c->b, INT32, k));
    return build_binary(&c->b, "FloorDiv", times, build_scalar(&c->b, INT32, c->options->passes));
}

/* Finds which rows of the worker a pass has: the first, and how many. */
static void find_range(struct dense_cutter *c, struct edge rows, int pass, struct edge range[2])
{
    struct build *b = &c->b;
    if (!c->options->by_worker) {
        range[0] = bound(c, rows, pass);
        range[1] = build_binary(b, "Sub", bound(c, rows, pass + 1), range[0]);
        return;
    }
    struct edge rank = build_op(b, "CollectiveRank", NULL, 0, NULL, 0);
    const char *is = pass + 1 < c->options->passes ? "Equal" : "GreaterEqual";
    struct edge is_own = build_binary(b, is, rank, build_scalar(b, INT64, pass));
    range[0] = build_ints(b, (int64_t[]){0}, 1);
    range[1] = build_binary(b, "Mul", rows, build_cast(b, is_own, INT32));
}

static struct edge with_rest(struct build *b, struct edge first, int rank, int64_t rest)
{
    int64_t others[SHAPE_RANK_MAX];
    struct edge parts[3] = {EDGE_NONE, first};
    for (int i = 0; i < rank; i++)
        others[i] = rest;
    if (rank < 2)
        return first;
    parts[0] = build_scalar(b, INT32, 0);
    parts[2] = build_ints(b, others, rank - 1);
    return build_op(b, "Concat", parts, 3, NULL, 0);
}

static void mark(struct dense_cutter *c, int id, const char *name, int64_t value)
{
    const struct attr attr = {name, attr_int(value)};
    if (!c->r.err->code)
        graph_set_attr(c->r.to, graph_node(c->r.to, id), &attr, c->r.err);
}

/* The share of the worker's rows that a pass has. Rows are counted in 32 bits or more. */
static struct edge share_of(struct dense_cutter *c, enum dtype type, int pass)
{
    struct edge range[2], whole = rewrite_edge(&c->r, c->reference);
    enum dtype wide = dtype_bytes(type) < 4 ? FLOAT32 : type;
    struct build *b = begin(c, c->reference, "share", pass);
    struct edge rows = dense_row_count(b, whole);
    find_range(c, rows, pass, range);
    struct edge share =
        build_binary(b, "Div", build_cast(b, range[1], wide), build_cast(b, rows, wide));
    return build_binary(b, "Reshape", build_cast(b, share, type), build_ints(b, NULL, 0));
}

/* ---- what comes of passes ---- */

static struct edge of_pass(const struct dense_cutter *c, struct edge edge, int pass)
{
    return (struct edge){c->first[edge.node] + pass, edge.slot};
}

/* A mean over rows, times their share if that counts; of a pass without rows 0, whatever it is. */
static struct edge mean_of(struct dense_cutter *c, struct edge edge, int pass, bool counts)
{
    enum dtype type = graph_output(c->r.from, edge)->type;
    struct edge x = of_pass(c, edge, pass), share = share_of(c, type, pass);
    struct edge has = build_binary(&c->b, "Greater", share, build_scalar(&c->b, type, 0));
    const struct edge choice[] = {has, counts ? build_binary(&c->b, "Mul", x, share) : x,
                                  build_unary(&c->b, "ZerosLike", x)};
    return build_op(&c->b, "Select", choice, 3, NULL, 0);
}

/* The value that is known by name, or to readers that are in no pass: of passes that of all. */
static struct edge once(void *context, const struct node *asker, struct edge edge)
{
    struct dense_cutter *c = context;
    (void)asker;
    if (!edge_exists(edge) || edge.slot == CONTROL_SLOT)
        return EDGE_NONE;
    bool gradient = dense_has(c, edge.node, DENSE_GRADIENT);
    const struct node_output *output = graph_output(c->r.from, edge);
    struct edge *known = &c->r.edges[c->r.first[edge.node] + edge.slot], all = *known;
    int n = c->options->passes;
    if (edge_exists(all) || c->r.err->code || !in_pass(c, edge.node))
        return all;
    if (dense_has(c, edge.node, DENSE_UPDATE) &&
        !node_attr(graph_node(c->r.from, edge.node), "_gradient"))
        return *known = of_pass(c, edge, n - 1);
    if (!gradient && !dense_is_rows(c, edge) &&
        (!dtype_is_floating(output->type) || output->shape.rank))
        return *known = of_pass(c, edge, 0);
    dense_begin(c, edge, "passes");
    if (dense_is_rows(c, edge)) {
        struct edge *parts = arena_array(&c->r.arena, (size_t)n, sizeof *parts);
        for (int k = 0; k < n; k++)
            parts[k] = of_pass(c, edge, k);
        return *known = cut_concat(&c->b, 0, parts, n);
    }
    for (int k = 0; k < n; k++) {
        struct edge one = gradient ? of_pass(c, edge, k) : mean_of(c, edge, k, true);
        dense_begin(c, edge, "passes");
        all = k ? build_binary(&c->b, "Add", all, one) : one;
    }
    return *known = all;
}

/* ---- nodes ---- */

/* Where gradients begin they are the pass' share of what they were. */
static struct edge input_in(struct dense_cutter *c, const struct node *reader, struct edge edge,
                            int pass)
{
    const struct node *node = graph_node(c->r.from, edge.node);
    struct edge part = dense_known(c, edge, pass);
    if (!in_pass(c, edge.node)) {
        /* A pass takes its rows of a value that is there once. */
        struct edge whole = rewrite_edge(&c->r, edge), range[2];
        const struct shape *shape = &graph_output(c->r.from, edge)->shape;
        if (edge_exists(part) || !dense_is_rows(c, edge))
            return edge_exists(part) ? part : whole;
        struct build *b = begin(c, edge, "rows", pass);
        find_range(c, dense_row_count(b, whole), pass, range);
        const struct edge inputs[] = {whole, with_rest(b, range[0], shape->rank, 0),
                                      with_rest(b, range[1], shape->rank, -1)};
        part = build_op(b, "Slice", inputs, 3, NULL, 0);
        if (b->err->code)
            return EDGE_NONE;
        graph_node(c->r.to, part.node)->outputs[0].shape = *shape;
        mark(c, part.node, DENSE_PASS, pass);
        mark(c, part.node, "_priority", 1 + pass);
        return dense_note(c, edge, pass, part);
    }
    if (node_has(reader, OP_CHECKS))
        return mean_of(c, edge, pass, false);
    if (!node_attr(node, "_loss"))
        return of_pass(c, edge, pass);
    if (edge_exists(part))
        return part;
    struct edge share = share_of(c, graph_output(c->r.from, edge)->type, pass);
    return dense_note(c, edge, pass, build_binary(&c->b, "Mul", of_pass(c, edge, pass), share));
}

static void visit_in(struct dense_cutter *c, const struct node *node)
{
    int n = c->options->passes;
    struct edge *inputs =
        arena_array(&c->r.arena, (size_t)(node->n_inputs * n) + 1, sizeof *inputs);
    struct edge *copies = arena_array(&c->r.arena, (size_t)n, sizeof *copies);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < node->n_inputs; i++)
            inputs[k * node->n_inputs + i] = input_in(c, node, node->inputs[i], k);
    if (c->r.err->code)
        return;
    c->first[node->id] = (int)c->r.to->nodes.n;
    for (int k = 0; k < n; k++) {
        struct node_spec spec = graph_spec_like(node);
        spec.name = arena_printf(&c->r.to->arena, "pass_%d/%s", k, node->name);
        spec.inputs = inputs + k * node->n_inputs;
        spec.n_inputs = node->n_inputs;
        struct node *copy = graph_add_trusted(c->r.to, &spec, node->outputs, node->n_outputs);
        for (int i = 0; i < node->n_controls; i++) {
            int from = node->controls[i];
            wait_for(c, copy->id, in_pass(c, from) ? c->first[from] + k : c->r.after[from][0]);
        }
        mark(c, copy->id, DENSE_PASS, k);
        if (node_has(node, OP_RANDOM) && k) /* each pass draws other random numbers */
            mark(c, copy->id, "seed2", node_int(copy, "seed2") + k);
        copies[k] = (struct edge){copy->id, 0};
    }
    rewrite_await_parts(&c->r, node, copies, n);
}

/* ---- one pass after the other ---- */

static void order_passes(struct dense_cutter *c)
{
    VEC(int) ends = VEC_INIT;
    int n = c->options->passes;
    /* A pass ends with gradients that go to who is in no pass, and with updates. */
    graph_each(node, c->r.from) {
        bool goes_out = false;
        for (int k = 0; k < node->n_outputs; k++)
            goes_out |= edge_exists(rewrite_edge(&c->r, (struct edge){node->id, k}));
        if (in_pass(c, node->id) && (dense_has(c, node->id, DENSE_WRITER) ||
                                     (goes_out && dense_has(c, node->id, DENSE_GRADIENT))))
            vec_push_in(&c->r.arena, &ends, node->id);
    }
    /* Errors that go to who is in front of the layers. Its own exchanges have priority 0, so that
     * no layer waits for what a later pass needs, or for what is needed after all passes. */
    vec_each(end, &ends) {
        for (int k = 0; dense_is_rows(c, (struct edge){*end, 0}) && k < n; k++)
            mark(c, c->first[*end] + k, "_priority", 1 + n);
    }
    graph_each(node, c->r.from) {
        for (int k = 1; dense_has(c, node->id, DENSE_LAYER) && k < n; k++)
            vec_each(end, &ends)
                wait_for(c, c->first[node->id] + k, c->first[*end] + k - 1);
    }
    vec_each(part, &c->converted) {
        int pass = part->layout;
        if (pass > 1 && !in_pass(c, part->edge.node))
            vec_each(end, &ends)
                wait_for(c, part->result.node, c->first[*end] + pass - 2);
    }
    /* What reads a variable that passes change comes after the change of the pass before. */
    graph_each(writer, c->r.from) {
        for (int i = 0; dense_has(c, writer->id, DENSE_WRITER) && i < writer->n_inputs; i++) {
            const struct node *variable = written_by(c, writer, i);
            graph_each(node, c->r.from) {
                bool reads = false;
                for (int k = 0; variable && k < node->n_inputs; k++)
                    reads |= node->inputs[k].node == variable->id;
                reads &= in_pass(c, node->id) && !dense_has(c, node->id, DENSE_UPDATE);
                for (int k = 1; reads && k < n; k++)
                    wait_for(c, c->first[node->id] + k, c->first[writer->id] + k - 1);
            }
        }
    }
}

int dense_unroll(struct dense_cutter *c)
{
    c->first = arena_array(&c->r.arena, c->r.from->nodes.n + 1, sizeof *c->first);
    c->reference = EDGE_NONE;
    c->r.rules.context = c;
    c->r.make = once;
    if (find_passes(c))
        return c->r.err->code;
    graph_each_ordered(node, c->r.from, c->r.order) {
        if (in_pass(c, node->id))
            visit_in(c, node);
        else
            rewrite_copy(&c->r, node);
        if (c->r.err->code)
            return c->r.err->code;
    }
    /* A name that the script gave stands for the value of all passes. */
    graph_each(node, c->r.from) {
        bool is_named = in_pass(c, node->id) && !strchr(node->name, '/') && node->n_outputs == 1;
        struct edge whole = is_named ? once(c, node, (struct edge){node->id, 0}) : EDGE_NONE;
        if (c->r.err->code || (is_named && graph_add_alias(c->r.to, node->name, whole, c->r.err)))
            return c->r.err->code;
    }
    rewrite_make_named(&c->r);
    if (!c->r.err->code)
        order_passes(c);
    return c->r.err->code;
}
