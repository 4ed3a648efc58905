/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which nodes are computed in 16 bits, and makes the new graph: painted nodes change their
 * types, and casts are inserted where types meet.
 */
#include "pass/half/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "graph/frames.h"
#include "graph/infer.h"
#include "pass/place/place.h"
#include "pass/rewrite.h"
#include "pass/simplify/simplify.h"

enum half_fact {
    HALF_FACT_PAINTED = 1 << 0, /* computed in 16 bits */
    HALF_FACT_REFUSED = 1 << 1, /* inferred from a denied node */
    HALF_FACT_ABOVE = 1 << 2,   /* clear, and an inferred or denied node depends on it */
    HALF_FACT_BEHIND = 1 << 3,  /* depends on an allowed node */
    HALF_FACT_BETWEEN = 1 << 4, /* and an allowed node depends on it */
    HALF_FACT_INITIAL = 1 << 5, /* only initial values need it */
    HALF_FACT_UPDATE = 1 << 6,  /* computed from gradients that were handed over */
    HALF_FACT_LOSS = 1 << 7,    /* where the gradient of a loss begins */
    HALF_FACT_KIND = 1 << 8,    /* times two for each enum op_half before its own */
};

struct halver {
    struct rewrite r;
    const struct half_options *options;
    unsigned char *kind; /* by node: enum op_half */
    unsigned *facts;     /* by node */
    int *next;           /* by node: next one with the same type; a ring */
    int *unit;           /* by node: its ring */
    int *users;          /* by node: float32 inputs from it, */
    int *painted;        /* and those of painted nodes */
    struct edge *casts;  /* by output of the source, as r.edges: in the other type */
};

/* Iterates over the nodes of a ring. */
#define ring_each(i, h, node)                                                                      \
    for (int i = (node), i##_more = 1; i##_more; i = (h)->next[i], i##_more = i != (node))

static bool has(const struct halver *h, int node, unsigned facts)
{
    return (h->facts[node] & facts) != 0;
}

static bool is_painted(const struct halver *h, int node)
{
    return has(h, node, HALF_FACT_PAINTED);
}

/* Returns whether an edge of the source is a float32 value, not a variable's reference. */
static bool is_float(const struct graph *graph, struct edge edge)
{
    const struct node_output *output = graph_output(graph, edge);
    return output->type == FLOAT32 && !output->is_ref;
}

/* ---- the kind of each node ----
 *
 * A node's kind is that declared by its op, unless the node itself must stay as it is. The nodes of
 * a loop variable, and those of a stack, must share one type. */

/* ---- numbers outside the range of 16 bits ---- */

/* Returns whether 16 bits may not hold a value: as infinite, a single number as 0, or a count. */
static bool is_beyond(const struct halver *h, struct edge edge)
{
    const struct graph *from = h->r.from;
    const struct node *source = graph_node(from, edge.node);
    const struct tensor *value = graph_constant(from, edge);
    enum dtype type = h->options->type;
    if (!is_float(from, edge))
        return false;
    if (!value) {
        /* A count: floats converted from integers, element by element. */
        const struct edge in = source->n_inputs == 1 ? source->inputs[0] : EDGE_NONE;
        if (!edge_exists(in) || node_rows(source) != ROWS_ALIKE)
            return false;
        enum dtype made_of = graph_output(from, in)->type;
        return dtype_is_integer(made_of) && dtype_bytes(made_of) > 1;
    }
    int64_t n = tensor_count(value);
    for (int64_t i = 0; i < n; i++) {
        double number = tensor_get_float64(value, i);
        if ((isfinite(number) && fabs(number) >= (type == FLOAT16 ? 65520 : 0x1.ffp127)) ||
            (n == 1 && number != 0 && fabs(number) <= (type == FLOAT16 ? 0x1p-25 : 0x1p-134)))
            return true;
    }
    return false;
}

static enum op_half kind_of(const struct halver *h, const struct node *node)
{
    enum op_half kind = node->op->def->half;
    if (kind == HALF_UNSAID || has(h, node->id, HALF_FACT_UPDATE))
        return HALF_KEPT;
    bool found = false;
    for (int i = 0; i < node->n_outputs; i++)
        found |= node->outputs[i].type == FLOAT32;
    if (kind == HALF_DENIED || kind == HALF_AROUND)
        return found ? kind : HALF_KEPT;
    for (int i = 0; i < node->n_inputs + node->n_outputs; i++) {
        bool is_in = i < node->n_inputs;
        int k = is_in ? i : i - node->n_inputs;
        const struct op_arg *args = is_in ? node->op->inputs : node->op->outputs;
        const struct edge edge = is_in ? node->inputs[k] : (struct edge){node->id, k};
        const struct node_output *value = graph_output(h->r.from, edge);
        const struct op_arg *arg = &args[node_argument(node, args, &k)];
        if (value->is_ref || (value->type == FLOAT32 && (arg->type_attr < 0 || arg->is_ref)))
            return HALF_KEPT;
    }
    /* Some type attribute must be float32, and each such attribute must allow 16 bits. */
    found = false;
    for (int i = 0; i < node->op->n_attrs; i++) {
        const struct op_attr *declared = &node->op->attrs[i];
        const struct attr_value *value = node_attr(node, declared->name);
        for (int k = 0; declared->kind == ATTR_LIST_TYPE && k < value->n; k++)
            if (value->types[k] == FLOAT32)
                return HALF_KEPT;
        if (declared->kind != ATTR_TYPE || value->type != FLOAT32)
            continue;
        if (!(declared->types & DTYPE_BIT(h->options->type)))
            return HALF_KEPT;
        found = true;
    }
    if (!found)
        return HALF_KEPT;
    /* Initial values, and inputs of updates, stay float32. So does what may be fed, and what an
     * entry names unless a Cast can take over its name. */
    unsigned char flags = h->r.flags[node->id];
    if (has(h, node->id, HALF_FACT_INITIAL | HALF_FACT_UPDATE) || flags & REWRITE_OPAQUE ||
        (flags & REWRITE_KEPT && node->n_outputs > 1))
        return HALF_KEPT;
    for (int i = 0; kind == HALF_INFERRED && i < node->n_inputs; i++)
        if (is_beyond(h, node->inputs[i]))
            kind = HALF_AROUND;
    return kind;
}

/* ---- nodes that share a type ---- */

static void join(struct halver *h, int a, int b)
{
    if (h->unit[a] == h->unit[b])
        return;
    int next = h->next[a];
    ring_each(i, h, b)
        h->unit[i] = h->unit[a];
    h->next[a] = h->next[b];
    h->next[b] = next;
}

static bool hands_on(const struct node *node)
{
    return node_has(node, OP_CONTROL_FLOW | OP_PASSES);
}

/* Sets kind, next, unit. */
static int classify(struct halver *h)
{
    size_t n = h->r.from->nodes.n;
    h->kind = arena_alloc(&h->r.arena, n + 1);
    h->facts = arena_array(&h->r.arena, n + 1, sizeof *h->facts);
    h->next = arena_array(&h->r.arena, n, sizeof *h->next);
    h->unit = arena_array(&h->r.arena, n, sizeof *h->unit);
    const struct graph *from = h->r.from;
    const bool *initial = place_find_initial(from, &h->r.arena);
    for (size_t i = 0; i < n; i++)
        h->facts[i] |= (initial[i] ? HALF_FACT_INITIAL : 0) |
                       (node_attr(graph_node(from, (int)i), "_gradient") ? HALF_FACT_UPDATE : 0);
    spread_facts(from, h->r.order, h->facts, (struct spread){.fact = HALF_FACT_UPDATE});
    for (size_t i = 0; i < n; i++) {
        h->next[i] = h->unit[i] = (int)i;
        h->kind[i] = (unsigned char)kind_of(h, graph_node(h->r.from, (int)i));
    }

    if (!h->r.has_control_flow)
        return 0;
    if (frames_new(from, &h->r.frames, h->r.err))
        return h->r.err->code;
    vec_each(v, &h->r.frames->variables) {
        const int others[] = {v->enter, v->next, v->switch_, v->exit};
        for (size_t k = 0; v->merge >= 0 && k < sizeof others / sizeof *others; k++)
            if (others[k] >= 0)
                join(h, v->merge, others[k]);
    }
    for (size_t i = 0; i < from->nodes.n; i++) {
        /* Values pushed onto a stack share the type of those popped. A stack that is itself pushed
         * onto a stack, as in nested loops, is not followed: all nodes connected to it keep their
         * types. */
        const struct node *node = graph_node(from, (int)i);

        for (int j = 0; !hands_on(node) && j < node->n_inputs; j++) {
            struct edge edge = node->inputs[j];
            if (graph_output(from, edge)->type != RESOURCE)
                continue;
            /* Find the node that makes the resource, through nodes that pass it on. */
            const struct node *maker = graph_node(from, edge.node);
            for (size_t k = 0; k < from->nodes.n && hands_on(maker); k++)
                maker = graph_node(from, maker->inputs[0].node);
            if (!node_makes_resource(maker))
                h->kind[node->id] = HALF_KEPT;
            else if (h->kind[node->id] == HALF_CLEAR)
                join(h, maker->id, node->id);
            else if (j > 0)
                h->kind[maker->id] = HALF_KEPT;
        }
    }
    for (int i = 0; i < (int)from->nodes.n; i++) {
        /* A ring keeps its type if one of its nodes does, or if its name is in use. */
        bool stays = h->kind[i] != HALF_CLEAR || h->r.flags[i] & REWRITE_KEPT;
        for (int k = h->next[i]; stays && k != i; k = h->next[k])
            h->kind[i] = h->kind[k] = HALF_KEPT;
    }
    return 0;
}

#define UNKNOWN_SIZE 32 /* assumed size of an unknown dimension */

/* ---- the colouring of the graph ----
 *
 * As in TensorFlow's automatic mixed precision: HALF_ALLOWED nodes are painted; HALF_DENIED nodes
 * block nodes inferred from them; clear or inferred nodes between painted ones are painted; and so
 * are clear nodes beside them, where that saves casts or costs none. */

static unsigned kind_fact(enum op_half kind)
{
    return HALF_FACT_KIND << kind;
}

/* Spreads a fact along float32 values, and around rings. */
static void spread_floats(struct halver *h, struct spread how)
{
    how.follows = is_float;
    for (bool news = true; news;) {
        news = spread_facts(h->r.from, h->r.order, h->facts, how);
        for (int i = 0; i < (int)h->r.from->nodes.n; i++) {
            int next = h->next[i];
            for (; has(h, i, how.fact) && !has(h, next, how.fact); next = h->next[next]) {
                h->facts[next] |= how.fact;
                news = true;
            }
        }
    }
}

/* ---- clear nodes beside painted ones ---- */

static double size_of(const struct shape *shape)
{
    double size = shape->rank < 0 ? 0 : 1;
    for (int i = 0; i < shape->rank; i++)
        size *= shape->dims[i] < 0 ? UNKNOWN_SIZE : (double)shape->dims[i];
    return size;
}

static bool joins(const struct halver *h, int node)
{
    const struct graph *from = h->r.from;
    double in = 0, out = 0;                   /* float32 elements */
    int n_users = 0, n_painted = 0;           /* inputs of others from it */
    bool by_painted = false, foreign = false; /* an input is neither painted nor a constant */
    ring_each(i, h, node) {
        const struct node *member = graph_node(from, i);
        for (int k = 0; k < member->n_inputs; k++) {
            const struct edge edge = member->inputs[k];
            const struct node *source = graph_node(from, edge.node);
            bool within = h->unit[edge.node] == h->unit[i];
            n_users -= within && is_float(from, edge);
            if (!is_float(from, edge) || within)
                continue;
            by_painted |= is_painted(h, edge.node);
            foreign |= !is_painted(h, edge.node) && !node_is(source, "Const");
            in += size_of(&source->outputs[edge.slot].shape);
        }
        n_users += h->users[i];
        n_painted += h->painted[i];
        for (int k = 0; k < member->n_outputs; k++)
            if (member->outputs[k].type == FLOAT32)
                out += size_of(&member->outputs[k].shape);
    }

    bool even = h->next[node] != node || node_has(graph_node(h->r.from, node), OP_VIEW);
    if (n_users && n_users == n_painted && !(h->r.flags[node] & REWRITE_KEPT) &&
        (even || in <= out))
        return true;
    return by_painted && !foreign && (even || out <= in);
}

static void add_users(struct halver *h, int node, int *users)
{
    const struct node *user = graph_node(h->r.from, node);
    for (int k = 0; k < user->n_inputs; k++)
        users[user->inputs[k].node] += is_float(h->r.from, user->inputs[k]);
}

static bool paint_one(struct halver *h, int node)
{
    if (h->kind[node] != HALF_CLEAR || has(h, node, HALF_FACT_PAINTED | HALF_FACT_REFUSED) ||
        !joins(h, node))
        return false;
    ring_each(i, h, node) {
        h->facts[i] |= HALF_FACT_PAINTED;
        add_users(h, i, h->painted);
    }
    return true;
}

static int paint(struct halver *h)
{
    const unsigned allowed = kind_fact(HALF_ALLOWED), inferred = kind_fact(HALF_INFERRED);
    const unsigned clear = kind_fact(HALF_CLEAR), around = kind_fact(HALF_AROUND);
    const unsigned denied = kind_fact(HALF_DENIED);
    size_t n = h->r.from->nodes.n;
    if (classify(h))
        return h->r.err->code;
    /* The loss's gradient is float32 like the loss, up to the first product. */
    for (size_t i = 0; i < n; i++)
        h->facts[i] |= kind_fact(h->kind[i]) |
                       (node_attr(graph_node(h->r.from, (int)i), "_loss") ? HALF_FACT_LOSS : 0);
    spread_floats(h,
                  (struct spread){denied | inferred, HALF_FACT_ABOVE, .only = clear, .up = true});
    spread_floats(h, (struct spread){denied | HALF_FACT_LOSS, HALF_FACT_REFUSED,
                                     .only = inferred | HALF_FACT_ABOVE});
    spread_floats(h, (struct spread){allowed, HALF_FACT_BEHIND, .only = inferred | clear | around,
                                     .unless = HALF_FACT_REFUSED});
    spread_floats(
        h, (struct spread){allowed, HALF_FACT_BETWEEN, .only = HALF_FACT_BEHIND, .up = true});
    h->users = arena_array(&h->r.arena, n + 1, sizeof *h->users);
    h->painted = arena_array(&h->r.arena, n + 1, sizeof *h->painted);
    for (int i = 0; i < (int)n; i++) {
        add_users(h, i, h->users);
        if (has(h, i, allowed) || (has(h, i, HALF_FACT_BETWEEN) && !has(h, i, around))) {
            h->facts[i] |= HALF_FACT_PAINTED;
            add_users(h, i, h->painted);
        }
    }
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < n; i++)
            more |= paint_one(h, h->r.order[i]);
        for (size_t i = n; i-- > 0;)
            more |= paint_one(h, h->r.order[i]);
    }
    return 0;
}

int half_parse(struct half_options *options, const char *type, const char *scale, struct error *err)
{
    options->type = !strcmp(type, "bf16")   ? BFLOAT16
                    : !strcmp(type, "fp16") ? FLOAT16
                                            : DTYPE_INVALID;
    if (options->type == DTYPE_INVALID)
        return error_set(err, ERR_USAGE, "--half is bf16 or fp16, not '%s'", type);
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

/* Returns whether a Cast takes over the node's name, under which others expect float32. Nobody
 * looks up names within loops. */
static bool is_known(struct halver *h, const struct node *node)
{
    return is_painted(h, node->id) && node->n_outputs == 1 &&
           is_float(h->r.from, (struct edge){node->id, 0}) &&
           (h->r.flags[node->id] & REWRITE_KEPT ||
            (!node_has(node, OP_CONTROL_FLOW) && rewrite_has_own_name(&h->r, node)));
}

static struct edge add_cast(struct halver *h, struct edge edge, enum dtype type, const char *name)
{
    const struct node *near = graph_node(h->r.from, edge.node);
    struct edge input = rewrite_edge(&h->r, edge);
    struct attr *attrs = arena_array(&h->r.to->arena, 2, sizeof *attrs);
    struct node_output output = {type, false, near->outputs[edge.slot].shape};
    attrs[0] = (struct attr){"DstT", attr_type(type)};
    attrs[1] = (struct attr){"SrcT", attr_type(graph_output(h->r.to, input)->type)};
    const struct node cast = {.op = registry_find(h->r.to->registry, "Cast"),
                              .inputs = &input,
                              .n_inputs = 1,
                              .attrs = attrs,
                              .n_attrs = 2,
                              .outputs = &output,
                              .n_outputs = 1};
    return (struct edge){rewrite_add_as(&h->r, near, &cast, name)->id, 0};
}

/* Returns an edge of the source in 16 bits, or in float32. It is cast once for all users. */
static struct edge typed(struct halver *h, struct edge edge, bool is_half)
{
    struct edge *made = &h->casts[h->r.first[edge.node] + edge.slot];
    const struct node *node = graph_node(h->r.from, edge.node);
    if (is_painted(h, edge.node) == is_half)
        return rewrite_edge(&h->r, edge);
    if (!edge_exists(*made)) {
        bool has_name = h->r.flags[node->id] & REWRITE_KEPT && is_known(h, node);
        const char *suffix = is_half ? "half" : "float32";
        *made = add_cast(h, edge, is_half ? h->options->type : FLOAT32,
                         has_name ? node->name : rewrite_name_near(&h->r, node->name, suffix));
    }
    return *made;
}

/* ---- nodes ---- */

static int half_graph(const struct graph *from, const struct half_options *options,
                      struct graph **to, int *n, struct error *err)
{
    struct halver h = {.options = options};
    *to = NULL;
    *n = 0;
    if (rewrite_open(&h.r, from, options->pass, err))
        return err->code;
    int code = paint(&h);
    if (!code) {
        h.casts = rewrite_edges(&h.r);
        graph_each_ordered(node, from, h.r.order) {
            struct node view = rewrite_view(&h.r, node), named = *node;
            /* A value from a back edge has the type of its ring. */
            for (int j = 0; j < node->n_inputs; j++) {
                if (!edge_exists(view.inputs[j]) || !is_float(h.r.from, node->inputs[j]))
                    continue;
                view.inputs[j] = typed(&h, node->inputs[j], is_painted(&h, node->id));
            }
            if (is_painted(&h, node->id)) {
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
            struct edge cast = typed(&h, edge, false);
            if (!(h.r.flags[node->id] & REWRITE_KEPT))
                vec_push_in(&h.r.arena, &h.r.lost, ((struct alias){node->name, cast}));
        }
        /* Values that are named are widened; one in a loop's cycle has no place for casts. */
        graph_each_named(at, from)
            if (at.edge.slot != CONTROL_SLOT && h.next[at.edge.node] == at.edge.node &&
                is_float(from, at.edge))
                h.r.edges[h.r.first[at.edge.node] + at.edge.slot] = typed(&h, at.edge, false);
    }
    return rewrite_close(&h.r, code, to, n);
}

/* ---- all rewrites in order ---- */

int half_rewrite(struct graph *source, const struct half_options *options,
                 struct pass_result *result, struct error *err)
{
    typedef int half_pass(const struct graph *, const struct half_options *, struct graph **, int *,
                          struct error *);
    half_pass *const passes[] = {[HALF_HALVED] = half_graph, [HALF_SCALED] = half_scale};
    const struct pass *prune = pass_find("prune");
    int code = pass_optimize(source, &prune, 1, options->pass, result, err);
    for (int i = HALF_HALVED; !code && i <= HALF_SCALED; i++) {
        struct graph *made;
        code = passes[i](result->graph, options, &made, &result->n_changes[i], err);
        if (code || !made)
            continue;
        vec_push(&result->graphs, made);
        result->graph = made;
    }
    return code;
}
