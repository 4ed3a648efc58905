/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker keeps for itself and is nowhere else: what its codes have lost, and gradients that
 * it holds back. So the clock asks for it before a checkpoint is made, and the worker then runs the
 * entry `rest`, in which it gives it to the shards; when it leaves it gives it, too, and when it
 * joins, perhaps as another process, it begins with what it gave, or with what its journal has.
 */
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_push.h"

/* A node beside the variable whose gradient it comes of. */
static struct edge add_beside(struct replicator *r, const struct own_state *state,
                              const char *suffix, struct node_spec spec)
{
    const char *name = graph_node(r->to, state->variable.node)->name;
    struct attr attrs[4] = {{"of", attr_string(name)}};
    for (int i = 0; i < spec.n_attrs; i++)
        attrs[1 + i] = spec.attrs[i];
    spec.attrs = attrs;
    spec.n_attrs++;
    const char *beside = replicate_gradient_of(graph_node(r->from, state->gradient.node));
    return replicate_add(r, replicate_beside(r, beside, spec), "%s/%s", name, suffix);
}

static void take_at_join(struct replicator *r, const struct own_state *state,
                         const struct recall *recall)
{
    const struct node *variable = graph_node(r->to, state->variable.node);
    struct attr attrs[] = {{"dtype", attr_type(variable->outputs[0].type)},
                           {"shape", attr_shape(&variable->outputs[0].shape)},
                           {"workers", attr_int(r->options->workers)}};
    struct node_spec spec = {.op = "WorkerValueTake",
                             .attrs = attrs,
                             .n_attrs = 3,
                             .controls = recall->shards < 0 ? &r->join : &recall->shards,
                             .n_controls = 1};
    struct edge taken = add_beside(r, state, "taken", spec), open;
    struct edge value = replicate_recalled(r, recall, state, taken, &open);
    struct edge set = replicate_assign(r, &r->joined, state->variable, value, "%s/join",
                                       graph_node(r->to, state->variable.node)->name);
    if (edge_exists(set))
        replicate_lose_again(r, state, set.node, open);
}

/* Returns whether the clock asks for it: `asked` after a push, or when it joins. */
static struct edge add_asked(struct replicator *r, struct edge asked)
{
    const struct attr mark = {WORKER_ASKED, attr_bool(true)};
    struct edge variable = replicate_variable(r, &mark, "clock/asked", BOOL, &SHAPE_SCALAR);
    struct edge no = replicate_number(r, BOOL, 0, "clock/asked/no");
    replicate_assign(r, &r->joined, variable, build_slot(replicate_out(r->join), 5),
                     "clock/asked/join");
    replicate_assign(r, &r->ends, variable, asked, "clock/asked/set");
    return replicate_op(r, "Assign", variable, no, "clock/asked/rest");
}

int replicate_keep_states(struct replicator *r, int push)
{
    struct edge *tokens = arena_array(&r->arena, r->states.n + 1, sizeof *tokens);
    const struct recall recall = replicate_recall(r);
    for (size_t i = 0; i < r->states.n && !r->err->code; i++) {
        take_at_join(r, &r->states.items[i], &recall);
        /* The token. */
        const struct own_state *state = &r->states.items[i];
        struct node_spec spec = {
            .op = "WorkerValueGive", .inputs = &state->variable, .n_inputs = 1};
        tokens[i] = add_beside(r, state, "given", spec);
        replicate_wait(r, replicate_out(r->leave), tokens[i].node);
    }
    return r->states.n && !r->err->code ? replicate_add_rest(r, tokens, (int)r->states.n,
                                                             add_asked(r, (struct edge){push, 2}))
                                        : r->err->code;
}

int replicate_tell_clocks(struct replicator *r)
{
    const struct attr keeps = {"keeps", attr_bool(true)};
    for (size_t i = 0; i < r->to->nodes.n && r->states.n && !r->err->code; i++)
        if (node_attr(graph_node(r->to, (int)i), keeps.name))
            graph_set_attr(r->to, graph_node(r->to, (int)i), &keeps, r->err);
    return r->err->code;
}
