/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that are pushed to shards in few bits. Each worker codes the sum of its gradient and of
 * what its codes have lost so far, a variable of its own; the shard takes the mean of what the
 * codes of a round's members stand for. Once a push is decided the worker keeps what its code has
 * lost; of one that is dropped, as late, the whole.
 *
 * What a worker has lost is nowhere else. So the clock asks for it before a checkpoint is made, and
 * the worker then runs the entry `rest`, in which it gives it to the shards; when it leaves it
 * gives it, too, and when it joins, perhaps as another process, it begins with what it gave.
 */
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"

const struct coded_gradient *replicate_find_coded(const struct replicator *r, struct edge gradient)
{
    size_t i = 0;
    while (!edge_equal(r->coded.items[i].gradient, gradient))
        i++;
    return &r->coded.items[i];
}

/* ---- pushing ---- */

struct edge replicate_push_code(struct replicator *r, struct edge gradient, struct edge value)
{
    const struct node_output *output = &graph_node(r->from, gradient.node)->outputs[gradient.slot];
    const char *name = replicate_name_of(r, gradient, "residual");
    struct edge residual = replicate_local(r, name, FLOAT32, &output->shape);
    const struct coded_gradient *coded = replicate_code_value(r, gradient, value, residual);
    return r->err->code ? EDGE_NONE : coded->own.code;
}

int replicate_add_decoded(struct replicator *r, const struct push *push)
{
    const char *group = arena_printf(&r->to->arena, "loc:@%s", push->variable);
    for (size_t i = 0; i < push->values.n && !r->err->code; i++) {
        struct edge gradient = push->values.items[i].edge;
        if (push->values.items[i].as != PUSHED_CODE)
            continue;
        const struct coded_gradient *coded = replicate_find_coded(r, gradient);
        const struct edge inputs[] = {{push->take, (int)i}, {r->round, 1}};
        struct edge mean = replicate_decode(r, coded, replicate_name_of(r, gradient, "mean"),
                                            inputs, &coded->shape, group);
        vec_push(&r->reduced, ((struct reduced){gradient, mean, FOR_UPDATES, "mean"}));
    }
    return r->err->code;
}

/* ---- what is lost ---- */

/* `counted`: whether the push is in the variables. */
static void keep_or_take_back(struct replicator *r, const struct coded_gradient *coded,
                              struct edge counted)
{
    struct coding lost = coded->own;
    int value = replicate_op(r, "Switch", replicate_name_of(r, coded->gradient, "counted"),
                             coded->own.value, counted);
    lost.value = (struct edge){value, 1};
    int kept = replicate_keep(r, coded, &lost, "lost").node;
    int back = replicate_op(r, "AssignAdd", replicate_name_of(r, coded->gradient, "back"),
                            coded->own.residual, (struct edge){value, 0});
    if (r->err->code)
        return;
    vec_push(&r->ends, kept);
    vec_push(&r->ends, back);
}

/* ---- giving it, and getting it back ---- */

/* A node beside the variable that the gradient is of. */
static int add_beside(struct replicator *r, const struct coded_gradient *coded, const char *suffix,
                      struct node_spec spec)
{
    const struct node *gradient = graph_node(r->from, coded->gradient.node);
    const char *group = arena_printf(&r->to->arena, "loc:@%s", node_attr(gradient, "_gradient")->s);
    struct attr attrs[5] = {{"of", attr_string(graph_node(r->to, coded->own.residual.node)->name)},
                            {"_class",
                             {.kind = ATTR_LIST_STRING,
                              .n = 1,
                              .strings = arena_copy(&r->to->arena, &group, sizeof group)}}};
    int n = 2;
    for (int i = 0; i < spec.n_attrs; i++)
        attrs[n++] = spec.attrs[i];
    spec.attrs = attrs;
    spec.n_attrs = n;
    return r->err->code ? -1
                        : replicate_add(r, SHARD_DEVICE,
                                        replicate_name_of(r, coded->gradient, suffix), &spec);
}

static void take_at_join(struct replicator *r, const struct coded_gradient *coded)
{
    struct attr attrs[] = {{"dtype", attr_type(FLOAT32)},
                           {"shape", attr_shape(&coded->shape)},
                           {"workers", attr_int(r->options->workers)}};
    struct node_spec spec = {.op = "WorkerValueTake",
                             .attrs = attrs,
                             .n_attrs = 3,
                             .controls = &r->join,
                             .n_controls = 1};
    int taken = add_beside(r, coded, "residual/taken", spec);
    int set = replicate_op(r, "Assign", replicate_name_of(r, coded->gradient, "residual/join"),
                           coded->own.residual, replicate_out(taken));
    if (set >= 0)
        vec_push(&r->joined, set);
}

/* The token. */
static struct edge give(struct replicator *r, const struct coded_gradient *coded)
{
    struct node_spec spec = {
        .op = "WorkerValueGive", .inputs = &coded->own.residual, .n_inputs = 1};
    return replicate_out(add_beside(r, coded, "residual/given", spec));
}

/* Whether the clock asks for it: `asked` after a push. */
static struct edge add_asked(struct replicator *r, struct edge asked)
{
    const struct attr mark = {WORKER_ASKED, attr_bool(true)};
    struct edge variable = replicate_variable(r, &mark, "clock/asked", BOOL, &SHAPE_SCALAR);
    struct edge no = replicate_number(r, "clock/asked/no", BOOL, 0);
    int join = replicate_op(r, "Assign", "clock/asked/join", variable, no);
    int set = replicate_op(r, "Assign", "clock/asked/set", variable, asked);
    int rest = replicate_op(r, "Assign", "clock/asked/rest", variable, no);
    if (rest >= 0) {
        vec_push(&r->joined, join);
        vec_push(&r->ends, set);
    }
    return replicate_out(rest);
}

int replicate_keep_states(struct replicator *r, int push)
{
    struct edge *tokens = arena_array(&r->arena, r->coded.n + 1, sizeof *tokens);
    for (size_t i = 0; i < r->coded.n && !r->err->code; i++) {
        const struct coded_gradient *coded = &r->coded.items[i];
        keep_or_take_back(r, coded, (struct edge){push, 1});
        take_at_join(r, coded);
        tokens[i] = give(r, coded);
        if (!r->err->code)
            graph_add_control(r->to, graph_node(r->to, r->leave), tokens[i].node);
    }
    return r->coded.n && !r->err->code ? replicate_add_rest(r, tokens, (int)r->coded.n,
                                                            add_asked(r, (struct edge){push, 2}))
                                       : r->err->code;
}

int replicate_tell_clocks(struct replicator *r)
{
    const struct attr keeps = {"keeps", attr_bool(true)};
    for (size_t i = 0; i < r->to->nodes.n && r->coded.n && !r->err->code; i++)
        if (node_attr(graph_node(r->to, (int)i), keeps.name))
            graph_set_attr(r->to, graph_node(r->to, (int)i), &keeps, r->err);
    return r->err->code;
}
