/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's journal (resource/journal.h): what a worker keeps for itself is written before each
 * push to the clock, so that it finds its own again if it is killed, whether the push has reached
 * the clock or not. What a push leaves in a sum that is held back is known by then. What it leaves
 * of a code is not: the residual if the push counts, else the whole. So the journal has the sum
 * that the code was made of, and whoever begins with it makes the code again.
 */
#include "pass/replicate/replicate_code.h"
#include "pass/replicate/replicate_push.h"

typedef VEC(int) node_vec;

struct edge replicate_journal_heads(struct replicator *r)
{
    bool found = r->has_intervals;
    for (size_t i = 0; i < r->pushes.n && !found; i++)
        for (size_t k = 0; k < r->pushes.items[i].values.n && !found; k++)
            found = r->pushes.items[i].values.items[k].as == PUSHED_CODE;
    if (!found || r->options->replica_tasks > 1)
        return EDGE_NONE;
    return replicate_out(replicate_op(r, "JournalHeads", "journal/heads", EDGE_NONE, EDGE_NONE));
}

static bool has_journal(const struct replicator *r)
{
    return !r->err->code && graph_node(r->to, r->join)->n_inputs > 0;
}

static struct edge add(struct replicator *r, const char *name, struct node_spec spec)
{
    return replicate_out(r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec));
}

static const char *name_of(const struct replicator *r, const struct own_state *state)
{
    return graph_node(r->to, state->variable.node)->name;
}

/* ---- writing ---- */

/* After a node, or -1. */
static int write_after(struct replicator *r, const struct own_state *state, const char *suffix,
                       struct node_spec spec, int after)
{
    const char *name = name_of(r, state);
    struct attr of = {"of", attr_string(name)};
    spec.n_inputs = 1;
    spec.controls = &after;
    spec.n_controls = after >= 0;
    spec.attrs = &of;
    spec.n_attrs = 1;
    return add(r, replicate_text(r, name, suffix), spec).node;
}

int replicate_write_journal(struct replicator *r, int push)
{
    node_vec written = VEC_INIT;
    int pushes = -1; /* a node that is dead in steps without a push; -1: all have one */
    if (has_journal(r) && edge_exists(r->fires)) {
        int steered = replicate_op(r, "Switch", "journal/Switch", r->fires, r->fires);
        pushes =
            replicate_op(r, "Identity", "journal/pushes", (struct edge){steered, 1}, EDGE_NONE);
    }
    for (size_t i = 0; i < r->states.n && has_journal(r); i++) {
        const struct own_state *state = &r->states.items[i];
        bool is_known = edge_exists(state->next);
        const struct edge *value = is_known ? &state->next : &state->variable;
        struct node_spec write = {.op = "JournalWrite", .inputs = value};
        int node = write_after(r, state, "written", write, pushes);
        vec_push(&written, node);
        if (is_known || r->err->code)
            continue;
        struct edge coded = replicate_find_coded(r, state->gradient)->own.value;
        struct node_spec more = {.op = "JournalAdd", .inputs = &coded};
        vec_push(&written, write_after(r, state, "added", more, node));
    }
    if (has_journal(r)) { /* what is not coded in this step adds nothing: it is dead */
        struct edge all = add(r, "journal/written",
                              (struct node_spec){.op = "ControlTrigger",
                                                 .controls = written.items,
                                                 .n_controls = (int)written.n});
        int after[] = {all.node, pushes};
        struct edge commit =
            add(r, "journal/commit",
                (struct node_spec){
                    .op = "JournalCommit", .controls = after, .n_controls = 1 + (pushes >= 0)});
        if (!r->err->code)
            graph_add_control(r->to, graph_node(r->to, push), commit.node);
    }
    vec_release(&written);
    return r->err->code;
}

/* ---- beginning ---- */

struct recall replicate_recall(struct replicator *r)
{
    struct recall recall = {-1, -1};
    if (!has_journal(r))
        return recall;
    struct edge own = {r->join, 4};
    struct edge joined[] = {{r->join, 2}, {r->join, 1}, own};
    int begin = add(r, "journal/begin",
                    (struct node_spec){.op = "JournalBegin", .inputs = joined, .n_inputs = 3})
                    .node;
    int from = replicate_op(r, "Switch", "journal/own", own, own);
    recall.shards =
        replicate_op(r, "Identity", "journal/own/no", (struct edge){from, 0}, EDGE_NONE);
    recall.journal =
        replicate_op(r, "Identity", "journal/own/yes", (struct edge){from, 1}, EDGE_NONE);
    if (r->err->code)
        return recall;
    graph_add_control(r->to, graph_node(r->to, recall.journal), begin);
    vec_push(&r->joined, begin);
    return recall;
}

struct edge replicate_recalled(struct replicator *r, const struct recall *recall,
                               const struct own_state *state, struct edge taken, struct edge *open)
{
    *open = EDGE_NONE;
    if (recall->journal < 0 || r->err->code)
        return taken;
    const struct node_output *output = &graph_node(r->to, state->variable.node)->outputs[0];
    const char *name = name_of(r, state);
    struct attr attrs[] = {{"dtype", attr_type(output->type)},
                           {"shape", attr_shape(&output->shape)},
                           {"of", attr_string(name)}};
    struct node_spec spec = {.op = "JournalRead",
                             .controls = &recall->journal,
                             .n_controls = 1,
                             .attrs = attrs,
                             .n_attrs = 3};
    struct edge read = add(r, replicate_text(r, name, "read"), spec);
    *open = (struct edge){read.node, 1};
    return replicate_out(
        replicate_op(r, "Merge", replicate_text(r, name, "recalled"), taken, read));
}

/* -0: what is added to it stays what it is, to the bit. */
static struct edge add_nothing(struct replicator *r, const struct own_state *state)
{
    const char *name = replicate_text(r, name_of(r, state), "nothing");
    const struct node_output *output = &graph_node(r->to, state->variable.node)->outputs[0];
    struct edge zeros = replicate_zeros(r, name, output->type, &output->shape);
    return replicate_out(replicate_op(r, "Neg", name, zeros, EDGE_NONE));
}

void replicate_lose_again(struct replicator *r, const struct own_state *state, int set,
                          struct edge open)
{
    if (!edge_exists(open) || edge_exists(state->next) || r->err->code)
        return;
    const char *name = replicate_text(r, name_of(r, state), "again");
    const struct coded_gradient *coded = replicate_find_coded(r, state->gradient);
    struct coding again = coded->own;
    int lost = replicate_op(r, "LogicalAnd", replicate_text(r, name, "lost"), open,
                            (struct edge){r->join, 3});
    int steered = replicate_op(r, "Switch", replicate_text(r, name, "Switch"),
                               add_nothing(r, state), replicate_out(lost));
    again.value = (struct edge){steered, 1};
    if (r->err->code)
        return;
    again.code = replicate_quantize(r, coded, replicate_text(r, name, "code"), &again);
    if (r->err->code)
        return;
    graph_add_control(r->to, graph_node(r->to, again.code.node), set);
    int kept = replicate_keep(r, coded, &again, "again").node;
    if (kept >= 0)
        vec_push(&r->joined, kept);
}
