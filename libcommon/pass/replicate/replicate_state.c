/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's private state: the residuals of its codes, and gradients that it holds back. It exists
 * nowhere else, so the clock asks for it before a checkpoint, and the worker then runs the entry
 * `rest`, which gives it to the shards. The worker also gives it when it leaves. When it joins,
 * perhaps as another process, it begins with the state that it gave, or that of its journal.
 */
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_push.h"
#include "pass/replicate/replicate_reduce.h"

/* ---- the journal ----
 *
 * A worker writes its state before each push to the clock (resource/journal.h), so that it recovers
 * the state if it is killed, whether the push has reached the clock or not. By then it is known
 * what the push leaves in a sum that is held back, but not what it leaves of a code: the residual
 * if the push counts, else the whole. So the journal has the sum that was coded, and a worker that
 * recovers codes it again. */

bool replicate_has_states(const struct replicator *r)
{
    bool found = r->has_intervals;
    vec_each(x, &r->planned)
        found |= (*x)->crossing == CROSSES_IN_CODE;
    return found;
}

struct edge replicate_journal_heads(struct replicator *r)
{
    if (!replicate_has_states(r) || r->options->replica_tasks > 1)
        return EDGE_NONE;
    return replicate_op(r, "JournalHeads", EDGE_NONE, EDGE_NONE, "journal/heads");
}

static bool has_journal(const struct replicator *r)
{
    return !r->err->code && graph_node(r->to, r->join)->n_inputs > 0;
}

/* ---- nodes of a state ---- */

static const struct node *state_variable(const struct replicator *r, const struct own_state *state)
{
    return graph_node(r->to, state->variable.node);
}

/* Adds a node that names the state, after the node `after` (-1: at once): of the journal with the
 * worker, of a value that shards have beside the variable whose gradient the state is for. */
static struct edge add_of(struct replicator *r, const struct own_state *state, const char *op,
                          const char *suffix, struct edge value, int after)
{
    const struct node *variable = state_variable(r, state);
    const struct attr attrs[] = {{"of", attr_string(variable->name)},
                                 {"dtype", attr_type(variable->outputs[0].type)},
                                 {"shape", attr_shape(&variable->outputs[0].shape)},
                                 {"workers", attr_int(r->options->workers)}};
    struct node_spec spec = {.op = op,
                             .inputs = &value,
                             .n_inputs = edge_exists(value),
                             .controls = &after,
                             .n_controls = after >= 0};
    spec = replicate_declared(r, spec, attrs, 4);
    if (str_starts(op, "WorkerValue"))
        spec = replicate_beside(r, state->of->variable->name, spec);
    return replicate_add(r, spec, "%s/%s", variable->name, suffix);
}

/* ---- writing ---- */

static void write_journal(struct replicator *r, int push)
{
    node_list written = VEC_INIT;
    int pushes = -1; /* a node that is dead in steps without a push; -1: all have one */
    if (!has_journal(r))
        return;
    if (edge_exists(r->own->fires)) {
        struct edge due = replicate_when(r, r->own->fires, r->own->fires, "journal/Switch");
        pushes = replicate_op(r, "Identity", due, EDGE_NONE, "journal/pushes").node;
    }
    vec_each(state, &r->own->states) {
        bool is_known = edge_exists(state->next);
        struct edge node = add_of(r, state, "JournalWrite", "written",
                                  is_known ? state->next : state->variable, pushes);
        replicate_also(r, &written, node);
        if (!is_known)
            replicate_also(
                r, &written,
                add_of(r, state, "JournalAdd", "added", state->of->coded->own.value, node.node));
    }
    /* A gradient that is not coded in this step is dead, and adds nothing. */
    int after[] = {replicate_after(r, "ControlTrigger", WORKER_DEVICE, &written, "journal/written"),
                   pushes};
    const struct node_spec commit = {
        .op = "JournalCommit", .controls = after, .n_controls = 1 + (pushes >= 0)};
    replicate_wait(r, replicate_out(push), replicate_add(r, commit, "journal/commit").node);
}

/* ---- beginning ---- */

/* Returns a node that is dead unless a joining worker begins with its journal, and sets one that is
 * dead if it does; -1: there is no journal. */
static int begin_journal(struct replicator *r, int *shards)
{
    if (!has_journal(r))
        return -1;
    struct edge own = {r->join, 4};
    struct edge joined[] = {{r->join, 2}, {r->join, 1}, own};
    struct edge begin = replicate_node(r, "JournalBegin", joined, 3, NULL, 0, "journal/begin");
    struct edge from = replicate_op(r, "Switch", own, own, "journal/own");
    *shards = replicate_op(r, "Identity", from, EDGE_NONE, "journal/own/no").node;
    struct edge yes =
        replicate_op(r, "Identity", build_slot(from, 1), EDGE_NONE, "journal/own/yes");
    replicate_wait(r, yes, begin.node);
    replicate_also(r, &r->joined, begin);
    return yes.node;
}

/* After `set`, which restores from the journal: recomputes the residual of a code if the push
 * counts, which may be `open`. */
static void lose_again(struct replicator *r, const struct own_state *state, int set,
                       struct edge open)
{
    const struct node *variable = state_variable(r, state);
    const struct node_output *output = &variable->outputs[0];
    const char *name = replicate_text(r, variable->name, "again");
    struct code_edges again = state->of->coded->own;
    struct edge lost =
        replicate_op(r, "LogicalAnd", open, build_slot(replicate_out(r->join), 3), "%s/lost", name);
    /* -0 keeps the bits of any value that is added to it. */
    const char *nothing = replicate_text(r, variable->name, "nothing");
    struct edge zeros = replicate_zeros(r, nothing, output->type, &output->shape);
    zeros = replicate_op(r, "Neg", zeros, EDGE_NONE, "%s", nothing);
    again.value = replicate_when(r, zeros, lost, "%s/Switch", name);
    again.code = replicate_quantize(r, state->of, replicate_text(r, name, "code"), &again);
    replicate_wait(r, again.code, set);
    replicate_also(r, &r->joined, replicate_keep(r, state->of, &again, "again"));
}

/* The worker begins with the shards' copy of the state, or its journal's. */
static void begin(struct replicator *r, const struct own_state *state, int shards, int journal)
{
    const char *name = state_variable(r, state)->name;
    struct edge value = add_of(r, state, "WorkerValueTake", "taken", EDGE_NONE, shards);
    struct edge read = EDGE_NONE;
    if (journal >= 0) {
        read = add_of(r, state, "JournalRead", "read", EDGE_NONE, journal);
        value = replicate_op(r, "Merge", value, read, "%s/recalled", name);
    }
    struct edge set = replicate_assign(r, &r->joined, state->variable, value, "%s/join", name);
    if (edge_exists(read) && !edge_exists(state->next))
        lose_again(r, state, set.node, build_slot(read, 1));
}

/* ---- the shards' copies ---- */

int replicate_keep_states(struct replicator *r, int push)
{
    struct edge *tokens = arena_array(&r->arena, r->own->states.n + 1, sizeof *tokens);
    write_journal(r, push);
    int shards = r->join, journal = begin_journal(r, &shards);
    for (size_t i = 0; i < r->own->states.n && !r->err->code; i++) {
        const struct own_state *state = &r->own->states.items[i];
        begin(r, state, shards, journal);
        tokens[i] = add_of(r, state, "WorkerValueGive", "given", state->variable, -1);
        replicate_wait(r, replicate_out(r->leave), tokens[i].node);
    }
    if (!r->own->states.n || r->err->code)
        return r->err->code;
    /* Tells whether the clock asks for states: after a push, or when the worker joins. */
    const struct attr mark = {WORKER_ASKED, attr_bool(true)};
    struct edge asked = replicate_variable(r, &mark, "clock/asked", BOOL, &SHAPE_SCALAR);
    struct edge no = replicate_number(r, BOOL, 0, "clock/asked/no");
    replicate_assign(r, &r->joined, asked, build_slot(replicate_out(r->join), 5),
                     "clock/asked/join");
    replicate_assign(r, &r->ends, asked, ((struct edge){push, 2}), "clock/asked/set");
    /* The entry that a worker runs when asked to rest: the tokens prove that it has given its
     * states, and `set` ends the request. */
    struct edge set = replicate_op(r, "Assign", asked, no, "clock/asked/rest");
    int rest = replicate_clock(r, "clock/rest",
                               replicate_spec("ClockRest", tokens, (int)r->own->states.n, NULL, 0));
    struct edge version = replicate_op(r, "Assign", replicate_out(r->version), replicate_out(rest),
                                       "clock/rest/version");
    const struct edge edges[] = {{version.node, CONTROL_SLOT}, {set.node, CONTROL_SLOT}};
    return replicate_entry(r, "rest", edges, 2);
}
