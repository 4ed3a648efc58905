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
#include "graph/walk.h"
#include "pass/dense/dense_private.h"
#include "pass/part/part.h"

/* The value that a pass has of an output of the source. */
struct stands_for {
    struct edge edge;
    int pass;
    struct edge result;
};

struct passes {
    struct dense_cutter *c; /* what is known of the source; its copies are of what is there once */
    int n;
    bool by_worker;        /* pass k has the rows of worker k; else each a part of each worker's */
    bool *is_in;           /* by node: it is there in each pass */
    bool *is_update;       /* by node in passes: it changes layers' variables, or is for that */
    bool *is_writer;       /* by node: it changes them */
    bool *is_written;      /* by variable: passes change it */
    bool *reads;           /* by node: it depends on the value of one that they change */
    int *first;            /* by node in passes: its copy in the first; the others follow */
    struct edge reference; /* of the source: the rows of which shares are meant */
    VEC(struct stands_for) known;
    struct build *b;
};

/* ---- what updates layers ---- */

/* The owners of the gradients that a node depends on. */
enum { OF_LAYERS = 1, OF_OTHERS = 2 };

/* The variable that a node has itself, as its i-th input; NULL: that is another one. */
static const struct node *written_by(const struct passes *p, const struct node *node, int i)
{
    const struct node *from = graph_node(p->c->from, node->inputs[i].node);
    return node_takes_ref(node, i) && node_is(from, "Variable") ? from : NULL;
}

/* Nodes that updates wait for belong to their pass: checks of the loss come to it this way. */
static int find_checks(struct passes *p)
{
    bool *depends = arena_array(&p->c->r.arena, p->c->from->nodes.n + 1, sizeof *depends);
    graph_each_ordered(node, p->c->from, p->c->order) {
        depends[node->id] = p->is_in[node->id];
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            depends[node->id] |= depends[node_dependency(node, k).node];
    }

    graph_each(node, p->c->from) {
        for (int k = 0; p->is_update[node->id] && k < node->n_controls; k++) {
            const struct node *before = graph_node(p->c->from, node->controls[k]);
            if (p->is_in[before->id] || p->is_update[before->id] || !depends[before->id])
                continue;
            if (!node_has(before, OP_CHECKS) || !p->is_in[before->inputs[0].node])
                return dense_refuse(p->c, before,
                                    "the update of a dense layer waits for it, and it comes of "
                                    "all passes: with update=pass that cannot be");
            p->is_in[before->id] = true;
        }
    }
    return 0;
}

static int find_updates(struct passes *p)
{
    size_t n = p->c->from->nodes.n;
    unsigned char *of = arena_alloc(&p->c->r.arena, n + 1);
    graph_each_ordered(node, p->c->from, p->c->order) {
        const struct attr_value *mark = node_attr(node, "_gradient");
        const struct node *variable = mark ? graph_find(p->c->from, mark->s) : NULL;
        if (mark)
            of[node->id] = variable && p->c->cut[variable->id] >= 0 ? OF_LAYERS : OF_OTHERS;
        for (int k = 0; !mark && k < node->n_inputs; k++)
            of[node->id] |= of[node->inputs[k].node];
    }
    /* These nodes change a layer's variable, by its gradient. */
    graph_each(node, p->c->from) {
        for (int k = 0; k < node->n_inputs && of[node->id] & OF_LAYERS; k++) {
            const struct node *variable = written_by(p, node, k);
            if (!variable || p->c->cut[variable->id] < 0)
                continue;
            if (of[node->id] & OF_OTHERS)
                return dense_refuse(p->c, node,
                                    "gradients of what is not in passes change it, too, as by a "
                                    "norm of all: with update=pass that cannot be");
            p->is_update[node->id] = p->is_writer[node->id] = p->is_written[variable->id] = true;
        }
    }
    /* And these are needed by them, of what depends on gradients. */
    for (size_t i = p->c->from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(p->c->from, p->c->order[i]);
        for (int k = 0; p->is_update[node->id] && k < node->n_inputs; k++)
            if (of[node->inputs[k].node])
                p->is_update[node->inputs[k].node] = true;
    }
    if (find_checks(p))
        return p->c->err->code;
    graph_each_ordered(node, p->c->from, p->c->order) {
        for (int k = 0; k < node->n_inputs && !p->is_update[node->id]; k++)
            p->reads[node->id] |=
                p->reads[node->inputs[k].node] || p->is_written[node->inputs[k].node];
    }
    for (size_t i = 0; i < n; i++)
        p->is_in[i] |= p->is_update[i];
    return 0;
}

/* ---- who would train ---- */

static int check_entries(struct passes *p)
{
    vec_each(entry, &p->c->from->entries) {
        struct graph_walk walk = graph_walk_new(&p->c->r.arena, p->c->from);
        graph_walk_entry(&walk, entry);
        const bool *needed = graph_walk_end(&walk, p->c->from);
        bool reads = false, trains = false;
        for (size_t i = 0; i < p->c->from->nodes.n; i++) {
            reads |= needed[i] && p->is_in[i] && p->reads[i];
            trains |= needed[i] && p->is_writer[i];
        }
        if (reads && !trains)
            return error_set(p->c->err, ERR_DATA,
                             "entry '%s' goes through dense layers, which with update=pass it "
                             "would train: keep it in a graph of its own",
                             entry->name);
    }
    return 0;
}

/* ---- what is in passes ---- */

/* The errors that a layer hands on to what is in front of all of them. */
static bool is_last(const struct dense_cutter *c, const struct node *node)
{
    bool part = false;
    for (int i = 0; node->op->def->product && i < node->n_inputs; i++) {
        const struct node *variable = dense_variable(c, node->inputs[i]);
        part |= variable && c->cut[variable->id] >= 0;
    }
    return part && dense_has(c, node->id, DENSE_GRADIENT) && !dense_has(c, node->id, DENSE_BACK);
}

/* What is in passes, and the rows that shares are of. With update_each also what changes layers in
 * each pass: what a pass reads of their variables is what the one before has left. */
static int find_passes(struct passes *p)
{
    struct dense_cutter *c = p->c;
    /* Down from layers, and from where gradients begin. */
    bool *ended = arena_array(&c->r.arena, c->from->nodes.n + 1, sizeof *ended);
    graph_each_ordered(node, c->from, c->order) {
        bool in = dense_has(c, node->id, DENSE_LAYER) || node_attr(node, "_loss");
        for (int k = 0; k < node->n_inputs; k++) {
            int from = node->inputs[k].node;
            in |= p->is_in[from];
            ended[node->id] |=
                ended[from] || (p->is_in[from] && is_last(c, graph_node(c->from, from)));
        }
        ended[node->id] |= node_has(node, OP_CHECKS) || node_attr(node, "_gradient");
        p->is_in[node->id] = in && !ended[node->id];
    }
    if (c->options->update_each && find_updates(p))
        return c->err->code;
    /* Each pass has its own of what is made of rows, as a shape is, and of what it reads of a
     * variable that passes change. */
    for (size_t i = c->from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(c->from, c->order[i]);
        for (int k = 0; p->is_in[node->id] && k < node->n_inputs; k++) {
            const struct node *from = graph_node(c->from, node->inputs[k].node);
            bool of_pass = p->reads[from->id];
            for (int j = 0; j < from->n_inputs; j++)
                of_pass |= dense_is_rows(c, from->inputs[j]);
            p->is_in[from->id] |= of_pass && !dense_is_rows(c, node->inputs[k]);
        }
    }
    if (c->options->update_each && check_entries(p))
        return c->err->code;
    graph_each_ordered(node, c->from, c->order) {
        if (p->is_in[node->id] && !p->is_update[node->id] &&
            (node_has(node, OP_CONTROL_FLOW) ||
             (node_has(node, OP_STATEFUL) && !node_has(node, OP_RANDOM))))
            return dense_refuse(c, node,
                                "it has a state, or is control flow, and would be run in "
                                "each pass");
        if (!edge_exists(p->reference) && dense_has(c, node->id, DENSE_LAYER))
            p->reference = node->inputs[0];
    }
    return 0;
}

/* ---- the order ---- */

static void order_updates(struct passes *p)
{
    graph_each(writer, p->c->from) {
        for (int i = 0; p->is_writer[writer->id] && i < writer->n_inputs; i++) {
            const struct node *variable = written_by(p, writer, i);
            for (size_t j = 0; variable && j < p->c->from->nodes.n; j++) {
                const struct node *node = graph_node(p->c->from, (int)j);
                bool reads = false;
                for (int k = 0; p->is_in[j] && !p->is_update[j] && k < node->n_inputs; k++)
                    reads |= node->inputs[k].node == variable->id;
                for (int k = 1; reads && k < p->n; k++)
                    graph_add_control(p->c->to, graph_node(p->c->to, p->first[j] + k),
                                      p->first[writer->id] + k - 1);
            }
        }
    }
}

/* ---- rows of a pass ---- */

static struct edge known(const struct passes *p, struct edge edge, int pass)
{
    for (size_t i = 0; i < p->known.n; i++)
        if (p->known.items[i].pass == pass && edge_equal(p->known.items[i].edge, edge))
            return p->known.items[i].result;
    return EDGE_NONE;
}

static struct edge remember(struct passes *p, struct edge edge, int pass, struct edge result)
{
    vec_push_in(&p->c->r.arena, &p->known, ((struct stands_for){edge, pass, result}));
    return result;
}

static void begin(struct passes *p, struct edge edge, const char *what, int pass)
{
    const struct node *node = graph_node(p->c->from, edge.node);
    p->b->scope = pass < 0
                      ? arena_printf(&p->c->to->arena, "%s/%s", what, node->name)
                      : arena_printf(&p->c->to->arena, "pass_%d/%s/%s", pass, what, node->name);
    p->b->device = node->device;
    p->b->file = node->file;
    p->b->line = node->line;
}

/* Row k of n of so many parts. */
static struct edge bound(struct passes *p, struct edge rows, int k)
{
    struct edge times = build_binary(p->b, "Mul", rows, build_scalar(p->b, INT32, k));
    return build_binary(p->b, "FloorDiv", times, build_scalar(p->b, INT32, p->n));
}

/* Finds which rows of the worker a pass has: the first, and how many. */
static void find_range(struct passes *p, struct edge rows, int pass, struct edge range[2])
{
    struct build *b = p->b;
    if (!p->by_worker) {
        range[0] = bound(p, rows, pass);
        range[1] = build_binary(b, "Sub", bound(p, rows, pass + 1), range[0]);
        return;
    }
    struct edge rank = build_op(b, "CollectiveRank", NULL, 0, NULL, 0);
    struct edge k = build_scalar(b, INT64, pass);
    struct edge is_own = pass + 1 < p->n ? build_binary(b, "Equal", rank, k)
                                         : build_binary(b, "GreaterEqual", rank, k);
    range[0] = build_ints(b, (int64_t[]){0}, 1);
    range[1] = build_binary(b, "Mul", rows, build_cast(b, is_own, INT32));
}

static struct edge with_rest(struct passes *p, struct edge first, int rank, int64_t rest)
{
    int64_t others[SHAPE_RANK_MAX];
    struct edge parts[3] = {EDGE_NONE, first};
    for (int i = 0; i < rank; i++)
        others[i] = rest;
    if (rank < 2)
        return first;
    parts[0] = build_scalar(p->b, INT32, 0);
    parts[2] = build_ints(p->b, others, rank - 1);
    return build_op(p->b, "Concat", parts, 3, NULL, 0);
}

static void mark(struct passes *p, int id, const char *name, int64_t value)
{
    const struct attr attr = {name, attr_int(value)};
    if (!p->c->err->code)
        graph_set_attr(p->c->to, graph_node(p->c->to, id), &attr, p->c->err);
}

/* The share of the worker's rows that a pass has. Rows are counted in 32 bits or more. */
static struct edge share_of(struct passes *p, enum dtype type, int pass)
{
    struct edge range[2], whole = rewrite_edge(&p->c->r, p->reference);
    enum dtype wide = dtype_bytes(type) < 4 ? FLOAT32 : type;
    begin(p, p->reference, "share", pass);
    struct edge rows = dense_row_count(p->b, whole);
    find_range(p, rows, pass, range);
    struct edge share =
        build_binary(p->b, "Div", build_cast(p->b, range[1], wide), build_cast(p->b, rows, wide));
    share = build_cast(p->b, share, type);
    return build_binary(p->b, "Reshape", share, build_ints(p->b, NULL, 0));
}

/* ---- what comes of passes ---- */

static struct edge of_pass(const struct passes *p, struct edge edge, int pass)
{
    return (struct edge){p->first[edge.node] + pass, edge.slot};
}

/* A mean over rows, times their share if that counts; of a pass without rows 0, whatever it is. */
static struct edge mean_of(struct passes *p, struct edge edge, int pass, bool counts)
{
    enum dtype type = dense_output(p->c, edge)->type;
    struct edge x = of_pass(p, edge, pass), share = share_of(p, type, pass);
    struct edge has = build_binary(p->b, "Greater", share, build_scalar(p->b, type, 0));
    const struct edge choice[] = {has, counts ? build_binary(p->b, "Mul", x, share) : x,
                                  build_unary(p->b, "ZerosLike", x)};
    return build_op(p->b, "Select", choice, 3, NULL, 0);
}

/* The value of all passes, for readers that are in none. */
static struct edge whole_of(struct passes *p, struct edge edge)
{
    bool gradient = dense_has(p->c, edge.node, DENSE_GRADIENT);
    struct edge *known = &p->c->r.edges[p->c->r.first[edge.node] + edge.slot], all = *known;
    if (edge_exists(all) || p->c->err->code)
        return all;
    if (p->is_update[edge.node] && !node_attr(graph_node(p->c->from, edge.node), "_gradient"))
        return *known = of_pass(p, edge, p->n - 1);
    if (!gradient && !dense_is_rows(p->c, edge) &&
        (!dtype_is_floating(dense_output(p->c, edge)->type) ||
         dense_output(p->c, edge)->shape.rank))
        return *known = of_pass(p, edge, 0);
    begin(p, edge, "passes", -1);
    if (dense_is_rows(p->c, edge)) {
        struct edge *inputs = arena_array(&p->c->r.arena, (size_t)p->n + 1, sizeof *inputs);
        inputs[0] = build_scalar(p->b, INT32, 0);
        for (int k = 0; k < p->n; k++)
            inputs[k + 1] = of_pass(p, edge, k);
        return *known = build_op(p->b, "Concat", inputs, p->n + 1, NULL, 0);
    }
    all = gradient ? of_pass(p, edge, 0) : mean_of(p, edge, 0, true);
    for (int k = 1; k < p->n; k++) {
        struct edge one = gradient ? of_pass(p, edge, k) : mean_of(p, edge, k, true);
        begin(p, edge, "passes", -1);
        all = build_binary(p->b, "Add", all, one);
    }
    return *known = all;
}

/* The value that is known by name, or to readers that are in no pass. */
static struct edge once(struct passes *p, struct edge edge)
{
    bool is_value = edge_exists(edge) && edge.slot != CONTROL_SLOT;
    return is_value && p->is_in[edge.node] ? whole_of(p, edge)
           : is_value                      ? rewrite_edge(&p->c->r, edge)
                                           : EDGE_NONE;
}

/* ---- nodes ---- */

/* Where gradients begin they are the pass' share of what they were. */
static struct edge input_in(struct passes *p, const struct node *reader, struct edge edge, int pass)
{
    const struct node *node = graph_node(p->c->from, edge.node);
    if (!p->is_in[edge.node]) {
        /* A pass takes its rows of a value that is there once. */
        struct edge whole = rewrite_edge(&p->c->r, edge), range[2], part = known(p, edge, pass);
        const struct shape *shape = &dense_output(p->c, edge)->shape;
        if (edge_exists(part) || !dense_is_rows(p->c, edge))
            return edge_exists(part) ? part : whole;
        begin(p, edge, "rows", pass);
        find_range(p, dense_row_count(p->b, whole), pass, range);
        const struct edge inputs[] = {whole, with_rest(p, range[0], shape->rank, 0),
                                      with_rest(p, range[1], shape->rank, -1)};
        part = build_op(p->b, "Slice", inputs, 3, NULL, 0);
        if (p->b->failed)
            return EDGE_NONE;
        graph_node(p->c->to, part.node)->outputs[0].shape = *shape;
        mark(p, part.node, DENSE_PASS, pass);
        mark(p, part.node, "_priority", 1 + pass);
        return remember(p, edge, pass, part);
    }
    if (node_has(reader, OP_CHECKS))
        return mean_of(p, edge, pass, false);
    if (!node_attr(node, "_loss"))
        return of_pass(p, edge, pass);
    struct edge start = known(p, edge, pass);
    if (edge_exists(start))
        return start;
    struct edge share = share_of(p, dense_output(p->c, edge)->type, pass);
    return remember(p, edge, pass, build_binary(p->b, "Mul", of_pass(p, edge, pass), share));
}

static int visit_in(struct passes *p, const struct node *node)
{
    struct edge *inputs =
        arena_array(&p->c->r.arena, (size_t)(node->n_inputs * p->n) + 1, sizeof *inputs);
    for (int k = 0; k < p->n; k++)
        for (int i = 0; i < node->n_inputs; i++)
            inputs[k * node->n_inputs + i] = input_in(p, node, node->inputs[i], k);
    if (p->c->err->code)
        return p->c->err->code;
    p->first[node->id] = (int)p->c->to->nodes.n;
    struct edge *copies = arena_array(&p->c->r.arena, (size_t)p->n, sizeof *copies);
    for (int k = 0; k < p->n; k++) {
        struct node_spec spec = rewrite_spec_like(node);
        spec.name = arena_printf(&p->c->to->arena, "pass_%d/%s", k, node->name);
        spec.inputs = inputs + k * node->n_inputs;
        spec.n_inputs = node->n_inputs;
        struct node *copy = graph_add_trusted(p->c->to, &spec, node->outputs, node->n_outputs);
        for (int i = 0; i < node->n_controls; i++) {
            int from = node->controls[i];
            graph_add_control(p->c->to, copy,
                              p->is_in[from] ? p->first[from] + k : p->c->r.after[from][0]);
        }
        mark(p, copy->id, DENSE_PASS, k);
        if (node_has(node, OP_RANDOM) && k) /* each pass draws other random numbers */
            mark(p, copy->id, "seed2", node_int(copy, "seed2") + k);
        copies[k] = (struct edge){copy->id, 0};
    }
    rewrite_await_parts(&p->c->r, node, copies, p->n);
    return p->c->err->code;
}

/* ---- one pass after the other ---- */

/* Nodes of the source with which a pass ends: gradients that go to who is in no pass, and updates.
 */
struct pass_ends {
    int *nodes;
    int n;
};

static void wait_for(struct passes *p, const struct pass_ends *ends, int id, int pass)
{
    for (int i = 0; i < ends->n; i++)
        graph_add_control(p->c->to, graph_node(p->c->to, id), p->first[ends->nodes[i]] + pass);
}

/* ---- names ---- */

/* A name that the script gave stands for the value of all passes. */
static int find_names(struct passes *p)
{
    struct dense_cutter *c = p->c;
    graph_each(node, c->from) {
        bool is_named = p->is_in[node->id] && !strchr(node->name, '/') && node->n_outputs == 1;
        struct edge whole = is_named ? whole_of(p, (struct edge){node->id, 0}) : EDGE_NONE;
        if (c->err->code || (is_named && graph_add_alias(c->to, node->name, whole, c->err)))
            return c->err->code;
    }
    for (size_t i = 0; i < c->from->entries.n; i++)
        for (int k = 0; k < c->from->entries.items[i].n_edges; k++)
            once(p, c->from->entries.items[i].edges[k]);
    for (size_t i = 0; i < c->from->aliases.n; i++)
        once(p, c->from->aliases.items[i].edge);
    return c->err->code;
}

int dense_unroll(struct dense_cutter *c)
{
    struct passes p = {.c = c,
                       .n = c->options->passes,
                       .by_worker = c->options->by_worker,
                       .reference = EDGE_NONE,
                       .b = &c->b};
    size_t n = c->from->nodes.n;
    p.is_in = arena_array(&c->r.arena, n + 1, sizeof *p.is_in);
    p.is_update = arena_array(&c->r.arena, n + 1, sizeof *p.is_update);
    p.is_writer = arena_array(&c->r.arena, n + 1, sizeof *p.is_writer);
    p.is_written = arena_array(&c->r.arena, n + 1, sizeof *p.is_written);
    p.reads = arena_array(&c->r.arena, n + 1, sizeof *p.reads);
    p.first = arena_array(&c->r.arena, n + 1, sizeof *p.first);
    int code = find_passes(&p);
    for (size_t i = 0; !code && i < n; i++) {
        const struct node *node = graph_node(c->from, c->order[i]);
        if (p.is_in[node->id]) {
            code = visit_in(&p, node);
            continue;
        }
        struct node view = rewrite_view(&c->r, node);
        for (int k = 0; k < node->n_inputs; k++)
            view.inputs[k] = once(&p, node->inputs[k]);
        if (!c->err->code)
            rewrite_add(&c->r, node, &view);
        code = c->err->code;
    }
    if (!code)
        code = find_names(&p);
    if (!code) {
        size_t n_nodes = p.c->from->nodes.n;
        struct pass_ends ends = {arena_array(&p.c->r.arena, n_nodes + 1, sizeof(int)), 0};
        bool *goes_out = arena_array(&p.c->r.arena, n_nodes + 1, sizeof *goes_out);
        for (size_t i = 0; i < n_nodes; i++)
            for (int k = 0; k < graph_node(c->from, (int)i)->n_outputs; k++)
                goes_out[i] |= edge_exists(rewrite_edge(&c->r, (struct edge){(int)i, k}));
        for (size_t i = 0; i < n_nodes; i++)
            if (p.is_in[i] &&
                (p.is_writer[i] || (goes_out[i] && dense_has(p.c, (int)i, DENSE_GRADIENT))))
                ends.nodes[ends.n++] = (int)i;

        /* Errors that go to who is in front of the layers. Its own exchanges have priority 0, so
         * that no layer waits for what a later pass needs, or for what is needed after all passes.
         */
        for (int i = 0; i < ends.n; i++)
            for (int k = 0; dense_is_rows(p.c, (struct edge){ends.nodes[i], 0}) && k < p.n; k++)
                mark(&p, p.first[ends.nodes[i]] + k, "_priority", 1 + p.n);
        for (size_t i = 0; i < p.c->from->nodes.n; i++)
            for (int k = 1; dense_has(p.c, (int)i, DENSE_LAYER) && k < p.n; k++)
                wait_for(&p, &ends, p.first[i] + k, k - 1);
        vec_each(part, &p.known) {
            if (part->pass > 1 && !p.is_in[part->edge.node])
                wait_for(&p, &ends, part->result.node, part->pass - 2);
        }
        order_updates(&p);
    }
    return code ? code : c->err->code;
}
