/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers with shards: the values that a worker sends with a push, the state that it keeps where it
 * does not push or fetch in each step, the pushes and takes, and the clock between them.
 *
 * A worker keeps sums of gradients (accumulation, and Downpour of DistBelief, Dean et al. 2012),
 * and copies of variables. A counter tells which steps push or fetch, and Switches steer them: in a
 * step that does not push, the push is dead.
 *
 * Gradients may be pushed every so many steps of their own, while those of other variables are
 * pushed more often (convolutions every so many images: Chilimbi et al., Project Adam, OSDI 2014).
 * A worker sums those that it holds back. The steady gradients, pushed most often, go with each
 * push to the clock, together with a flag for each interval: whether this push has its gradients.
 * If not, their takes, and the updates that need them, are left out of the round. The sums exist
 * nowhere else, so workers give them to shards, like the residuals of codes.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/infer.h"
#include "graph/walk.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_plan.h"

/* Returns the spec with those of the attributes that its op declares. */
static struct node_spec declared(struct replicator *r, struct node_spec spec,
                                 const struct attr *attrs, int n)
{
    const struct op *op = registry_find(r->w.to->registry, spec.op);
    struct attr *own = arena_array(&r->w.arena, (size_t)n, sizeof *own);
    spec.attrs = own;
    for (int i = 0; i < n; i++)
        if (op_find_attr(op, attrs[i].name) >= 0)
            own[spec.n_attrs++] = attrs[i];
    return spec;
}

/* Returns whether a worker has private state. */
static bool has_states(const struct replicator *r)
{
    bool found = r->steady;
    vec_each(x, &r->planned)
        found |= (*x)->crossing == CROSSES_IN_CODE;
    return found;
}

static int add_to_clock(struct replicator *r, const char *name, struct node_spec spec)
{
    /* The driver of tiles, whose graph is the source, drives the rounds within its steps. */
    bool drives = r->w.to == r->w.from;
    const struct attr attrs[] = {
        {"clock", attr_string(r->entry->name)},
        {"policy", attr_string(arena_strdup(&r->w.to->arena, r->options->policy))},
        {"workers", attr_int(r->options->workers)},
        {"timeout", attr_float(r->options->timeout)},
        {"keeps", attr_bool(has_states(r))},
        {"drives", attr_bool(drives)},
        {"entry", attr_string(drives ? "" : "update")}};
    spec = declared(r, spec, attrs, sizeof attrs / sizeof *attrs);
    spec.device = CLOCK_DEVICE;
    return replicate_add(r, spec, "%s", name).node;
}

/* ---- which steps and pushes ---- */

static struct edge add_due(struct replicator *r, const char *name, struct edge number, int every)
{
    struct edge n = replicate_number(r, INT64, every, "%s/every", name);
    struct edge zero = replicate_number(r, INT64, 0, "%s/zero", name);
    struct edge rest = replicate_op(r, "Mod", number, n, "%s/rest", name);
    return replicate_op(r, "Equal", rest, zero, "%s", name);
}

static int count_steps(struct replicator *r)
{
    if (r->steps <= 1 && r->options->fetch <= 1)
        return 0;
    struct edge count = replicate_local(r, WORKER_STEP_COUNT, INT64, &SHAPE_SCALAR);
    struct edge zero = replicate_number(r, INT64, 0, "clock/count/zero");
    struct edge one = replicate_number(r, INT64, 1, "clock/count/one");
    struct edge next = replicate_op(r, "Add", count, one, "clock/count/next");
    if (r->options->fetch > 1)
        r->own->fetches = add_due(r, "clock/fetches", count, r->options->fetch);
    if (r->steps > 1)
        r->own->fires = add_due(r, WORKER_PUSHES, next, r->steps);
    replicate_assign(r, &r->joined, count, zero, "clock/count/join");
    replicate_assign(r, &r->ends, count, next, "clock/count/Assign");
    return r->w.err->code;
}

static struct due *find_due(struct replicator *r, int steps)
{
    for (size_t i = 0; i < r->own->dues.n; i++)
        if (r->own->dues.items[i].steps == steps)
            return &r->own->dues.items[i];
    return NULL;
}

static int add_dues(struct replicator *r)
{
    if (!r->steady || r->w.err->code)
        return r->w.err->code;
    /* Pushes to the clock are counted from the worker's first step. */
    r->own->pushed_before = replicate_local(r, "clock/pushed", INT64, &SHAPE_SCALAR);
    struct edge steps = replicate_number(r, INT64, r->steps, "clock/pushed/steps");
    struct edge decided = replicate_op(r, "Div", build_slot(replicate_out(r->join), 1), steps,
                                       "clock/pushed/decided");
    replicate_assign(r, &r->joined, r->own->pushed_before, decided, "clock/pushed/join");
    struct edge one = replicate_number(r, INT64, 1, "clock/pushed/one");
    r->own->pushed = replicate_op(r, "Add", r->own->pushed_before, one, "clock/pushed/next");
    vec_each(push, &r->pushes) {
        if (replicate_is_steady(r, push) || find_due(r, push->steps))
            continue;
        const char *name = arena_printf(&r->w.to->arena, "clock/pushes/%d", push->steps);
        struct edge due = add_due(r, name, r->own->pushed, push->steps / r->steps);
        vec_push_in(&r->w.arena, &r->own->dues, ((struct due){push->steps, due, EDGE_NONE}));
    }
    return r->w.err->code;
}

struct edge replicate_due_to_push(struct replicator *r, struct edge flag)
{
    if (!edge_exists(r->own->fires) || r->w.err->code)
        return flag;
    return replicate_when(r, flag, r->own->fires, "%s/push", graph_node(r->w.to, flag.node)->name);
}

/* ---- sums over steps ---- */

/* A sum over steps, in the result. */
struct step_sum {
    struct edge variable;
    struct edge full; /* pushed when it is due */
    struct edge rest; /* the variable's next value */
};

static const struct shape *shape_of_sum(const struct exchange *x)
{
    const struct shape *shape = &x->output->shape;
    return x->variable && !shape_is_known(shape) ? &x->variable->outputs[0].shape : shape;
}

int replicate_check_sums(struct replicator *r)
{
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        if (x->steps < 2 || !x->is_gradient || x->crossing == CROSSES_BY_FACTORS ||
            (!x->is_of_rows && shape_is_known(shape_of_sum(x))))
            continue;
        return error_set(r->w.err, ERR_DATA,
                         x->is_of_rows
                             ? "%s: is a gradient of some rows, of which there is no sum over steps"
                             : "%s: its shape must be known to be summed over steps",
                         node_text(x->node));
    }
    return 0;
}

/* Adds a worker's sum of a gradient; the caller assigns the variable, at the join and after each
 * step. */
static struct step_sum sum_steps(struct replicator *r, const char *name, const struct exchange *x,
                                 struct edge gradient, struct edge due)
{
    struct step_sum sum = {.variable = replicate_local(r, name, x->output->type, shape_of_sum(x))};
    struct edge total = replicate_op(r, "Add", sum.variable, gradient, "%s/Add", name);
    struct edge steered = replicate_op(r, "Switch", total, due, "%s/Switch", name);
    sum.full = build_slot(steered, 1);
    struct edge zeros = replicate_op(r, "ZerosLike", sum.full, EDGE_NONE, "%s/ZerosLike", name);
    sum.rest = replicate_op(r, "Merge", steered, zeros, "%s/Merge", name);
    return sum;
}

/* The pushed value: the sum over steps, or their mean. */
static struct edge mean_of_steps(struct replicator *r, const char *name, struct edge sum,
                                 enum dtype type)
{
    if (r->options->mode == REPLICATE_DOWNPOUR)
        return sum;
    struct edge k = replicate_number(r, type, r->steps, "%s/steps", name);
    return replicate_op(r, "Div", sum, k, "%s/mean", name);
}

struct edge replicate_pushed(struct replicator *r, struct exchange *x)
{
    struct edge value = replicate_exchanged(r, x);
    enum dtype type = x->output->type;
    if (edge_exists(r->own->fires) && x->is_gradient) {
        const char *name = replicate_text(r, x->node->name, "sum");
        struct step_sum sum = sum_steps(r, name, x, value, r->own->fires);
        replicate_assign(r, &r->joined, sum.variable,
                         replicate_zeros(r, name, type, shape_of_sum(x)), "%s/join", name);
        replicate_assign(r, &r->ends, sum.variable, sum.rest, "%s/Assign", name);
        value = mean_of_steps(r, name, sum.full, type);
    } else if (edge_exists(r->own->fires))
        value = replicate_when(r, value, r->own->fires, "%s/push", x->node->name);
    if (!x->push || replicate_is_steady(r, x->push))
        return value;
    /* Holds the gradient back: the result is the sum, in pushes to the clock that have this
     * interval. */
    const char *name = replicate_text(r, x->node->name, "held");
    struct step_sum sum = sum_steps(r, name, x, value, find_due(r, x->push->steps)->due);
    vec_push_in(&r->w.arena, &r->own->states, ((struct own_state){x, sum.variable, sum.rest}));
    replicate_assign(r, &r->own->held, sum.variable, sum.rest, "%s/Assign", name);
    return sum.full;
}

/* ---- rows of factors ---- */

/* The number of rows may differ from step to step. */
static void assign_rows(struct replicator *r, node_list *nodes, struct edge variable,
                        struct edge value, const char *name)
{
    const struct edge inputs[] = {variable, value};
    const struct attr attr = {"validate_shape", attr_bool(false)};
    replicate_also(r, nodes, replicate_node(r, "Assign", inputs, 2, &attr, 1, "%s", name));
}

struct edge replicate_factor(struct replicator *r, const struct exchange *x, int i)
{
    static const char *const names[] = {"gradient/left/rows", "gradient/right/rows"};
    struct edge value = replicate_edge(r, x->product->inputs[i]);
    if (!edge_exists(r->own->fires))
        return value;
    /* The rows of some steps, concatenated; after a push the worker begins with none. */
    const char *name = replicate_text(r, x->push->variable, names[i]);
    const struct node_output *rows = graph_output(r->w.from, x->product->inputs[i]);
    const struct shape none = shape_matrix(0, rows->shape.dims[1]);
    const struct shape any = shape_matrix(-1, rows->shape.dims[1]);
    struct edge kept = replicate_local(r, name, rows->type, &any);
    struct edge empty = replicate_zeros(r, name, rows->type, &none);
    struct edge inputs[] = {replicate_number(r, INT32, 0, "%s/axis", name), kept, value};
    struct edge all = replicate_node(r, "Concat", inputs, 3, NULL, 0, "%s/all", name);
    struct edge steered = replicate_op(r, "Switch", all, r->own->fires, "%s/Switch", name);
    struct edge begin = replicate_op(r, "Switch", empty, r->own->fires, "%s/begin", name);
    struct edge rest = replicate_op(r, "Merge", steered, build_slot(begin, 1), "%s/Merge", name);
    assign_rows(r, &r->joined, kept, empty, replicate_text(r, name, "join"));
    assign_rows(r, &r->ends, kept, rest, replicate_text(r, name, "end"));
    value = build_slot(steered, 1);
    return i ? mean_of_steps(r, name, value, rows->type) : value; /* it divides the product */
}

/* ---- variables fetched every so often ---- */

/* Returns the edge that a worker's node reads for an edge of the source. */
static struct edge read_edge(void *context, const struct node *reader, struct edge edge, int k)
{
    struct replicator *r = context;
    (void)k;
    /* The edge may be a variable's value, on a shard. */
    const struct node *node = graph_node(r->w.from, edge.node);
    if (node_is(node, "Identity") && has(r, node->id, FACT_SHARD))
        node = graph_node(r->w.from, node->inputs[0].node);
    const struct node *variable = edge.slot == 0 && node_is(node, "Variable") ? node : NULL;
    if (!edge_exists(r->own->fetches) || !variable || has(r, reader->id, FACT_SHARD | FACT_INITIAL))
        return replicate_edge(r, edge);
    for (size_t i = 0; i < r->own->locals.n; i++)
        if (r->own->locals.items[i].variable == variable)
            return r->own->locals.items[i].used;
    struct edge shared = replicate_edge(r, edge);
    const struct node_output *output = &variable->outputs[0];
    const char *name = replicate_text(r, variable->name, "local");
    struct edge copy = replicate_local(r, name, output->type, &output->shape);
    /* The shard sends the variable only in steps that fetch. */
    struct edge fetched = replicate_op_beside(r, "Switch", shared, r->own->fetches, variable->name,
                                              "%s/local/fetched", variable->name);
    replicate_mark_sent(r, fetched.node, r->priority[variable->id]);
    struct edge kept = replicate_op(r, "Switch", copy, r->own->fetches, "%s/kept", name);
    struct edge used =
        replicate_op(r, "Merge", build_slot(kept, 0), build_slot(fetched, 1), "%s/used", name);
    replicate_assign(r, &r->joined, copy, shared, "%s/join", name);
    vec_push_in(&r->w.arena, &r->own->locals, ((struct local_copy){variable, copy, used}));
    return used;
}

/* After a step the copy is the value that was used, minus the step's own change. */
static int keep_locals(struct replicator *r)
{
    for (size_t i = 0; i < r->own->locals.n && !r->w.err->code; i++) {
        struct local_copy local = r->own->locals.items[i];
        const struct node *gradient = NULL, *descent = NULL;
        graph_each(node, r->w.from) {
            if (!gradient && replicate_variable_of(r, node) == local.variable)
                gradient = node;
            if (!descent && has(r, node->id, FACT_WRITER) && node->op->def->descent.is_plain &&
                node->inputs[0].node == local.variable->id)
                descent = node;
        }
        /* The learning rate of the worker's own steps: the one asked for, or the optimizer's. */
        double rate = r->options->rate;
        if (rate < 0 && descent) {
            struct edge input = descent->inputs[descent->op->def->descent.rate];
            const struct tensor *value = graph_constant(r->w.from, input);
            rate = value && tensor_count(value) == 1 ? tensor_get_float64(value, 0) : 0;
        }
        const char *name = replicate_text(r, local.variable->name, "local");
        struct edge next = local.used;
        if (rate > 0 && gradient) {
            if (replicate_refuse_leaving_out(
                    r, "steps of a worker's own cannot: give downpour rate=0"))
                return r->w.err->code;
            struct edge factor =
                replicate_number(r, local.variable->outputs[0].type, rate, "%s/rate", name);
            struct edge change =
                replicate_op(r, "Mul", replicate_edge(r, replicate_out(gradient->id)), factor,
                             "%s/change", name);
            next = replicate_op(r, "Sub", local.used, change, "%s/next", name);
        }
        replicate_assign(r, &r->ends, local.copy, next, "%s/Assign", name);
    }
    return r->w.err->code;
}

/* ---- a worker's private state ----
 *
 * The residuals of its codes, and gradients that it holds back, exist nowhere else, so the clock
 * asks for them before a checkpoint, and the worker then runs the entry `rest`, which gives them to
 * the shards. The worker also gives them when it leaves. When it joins, perhaps as another process,
 * it begins with the state that it gave, or that of its journal.
 *
 * A worker writes its state before each push to the clock (resource/journal.h), so that it recovers
 * the state if it is killed, whether the push has reached the clock or not. By then it is known
 * what the push leaves in a sum that is held back, but not what it leaves of a code: the residual
 * if the push counts, else the whole. So the journal has the sum that was coded, and a worker that
 * recovers codes it again. */

static const struct node *state_variable(const struct replicator *r, const struct own_state *state)
{
    return graph_node(r->w.to, state->variable.node);
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
    spec = declared(r, spec, attrs, 4);
    if (str_starts(op, "WorkerValue"))
        spec = replicate_beside(r, state->of->variable->name, spec);
    return replicate_add(r, spec, "%s/%s", variable->name, suffix);
}

static void write_journal(struct replicator *r, int push)
{
    node_list written = VEC_INIT;
    int pushes = -1; /* a node that is dead in steps without a push; -1: all have one */
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

/* The worker begins with the shards' copy of the state, or its journal's. */
static void begin_state(struct replicator *r, const struct own_state *state, int shards,
                        int journal)
{
    const char *name = state_variable(r, state)->name;
    struct edge value = add_of(r, state, "WorkerValueTake", "taken", EDGE_NONE, shards);
    struct edge read = EDGE_NONE;
    if (journal >= 0) {
        read = add_of(r, state, "JournalRead", "read", EDGE_NONE, journal);
        value = replicate_op(r, "Merge", value, read, "%s/recalled", name);
    }
    struct edge set = replicate_assign(r, &r->joined, state->variable, value, "%s/join", name);
    if (!edge_exists(read) || edge_exists(state->next))
        return;
    /* Recomputes the residual of a code if the push counts, which may be open. */
    const struct shape *shape = &state_variable(r, state)->outputs[0].shape;
    const char *again = replicate_text(r, name, "again");
    struct code_edges coding = state->of->coded->own;
    struct edge lost = replicate_op(r, "LogicalAnd", build_slot(read, 1),
                                    build_slot(replicate_out(r->join), 3), "%s/lost", again);
    /* -0 keeps the bits of any value that is added to it. */
    const char *nothing = replicate_text(r, name, "nothing");
    struct edge zeros = replicate_zeros(r, nothing, FLOAT32, shape);
    zeros = replicate_op(r, "Neg", zeros, EDGE_NONE, "%s", nothing);
    coding.value = replicate_when(r, zeros, lost, "%s/Switch", again);
    coding.code = replicate_quantize(r, state->of, replicate_text(r, again, "code"), &coding);
    replicate_wait(r, coding.code, set.node);
    replicate_also(r, &r->joined, replicate_keep(r, state->of, &coding, "again"));
}

static int keep_states(struct replicator *r, int push)
{
    struct edge *tokens = arena_array(&r->w.arena, r->own->states.n + 1, sizeof *tokens);
    int shards = r->join, journal = -1;
    if (!r->w.err->code && graph_node(r->w.to, r->join)->n_inputs) {
        /* `journal` is dead unless a joining worker begins with its journal, `shards` if it does.
         */
        const struct edge own = {r->join, 4}, joined[] = {{r->join, 2}, {r->join, 1}, own};
        write_journal(r, push);
        struct edge begin = replicate_node(r, "JournalBegin", joined, 3, NULL, 0, "journal/begin");
        struct edge from = replicate_op(r, "Switch", own, own, "journal/own");
        shards = replicate_op(r, "Identity", from, EDGE_NONE, "journal/own/no").node;
        struct edge yes =
            replicate_op(r, "Identity", build_slot(from, 1), EDGE_NONE, "journal/own/yes");
        replicate_wait(r, yes, begin.node);
        replicate_also(r, &r->joined, begin);
        journal = yes.node;
    }
    for (size_t i = 0; i < r->own->states.n && !r->w.err->code; i++) {
        const struct own_state *state = &r->own->states.items[i];
        begin_state(r, state, shards, journal);
        tokens[i] = add_of(r, state, "WorkerValueGive", "given", state->variable, -1);
        replicate_wait(r, replicate_out(r->leave), tokens[i].node);
    }
    if (!r->own->states.n || r->w.err->code)
        return r->w.err->code;
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
    int rest = add_to_clock(r, "clock/rest",
                            replicate_spec("ClockRest", tokens, (int)r->own->states.n, NULL, 0));
    struct edge version = replicate_op(r, "Assign", replicate_out(r->version), replicate_out(rest),
                                       "clock/rest/version");
    const struct edge edges[] = {{version.node, CONTROL_SLOT}, {set.node, CONTROL_SLOT}};
    return replicate_entry(r, "rest", edges, 2);
}

/* ---- a worker joins ---- */

/* The version that a worker computes from is a variable of its own. */
static int add_join(struct replicator *r)
{
    struct edge heads = EDGE_NONE;
    if (has_states(r) && r->options->replica_tasks < 2)
        heads = replicate_op(r, "JournalHeads", EDGE_NONE, EDGE_NONE, "journal/heads");
    r->leave = add_to_clock(r, "clock/leave", (struct node_spec){.op = "ClockLeave"});
    r->join = add_to_clock(
        r, "clock/join",
        (struct node_spec){.op = "ClockJoin", .inputs = &heads, .n_inputs = edge_exists(heads)});
    r->version = replicate_local(r, WORKER_VERSION, INT64, &SHAPE_SCALAR).node;
    replicate_assign(r, &r->joined, replicate_out(r->version), replicate_out(r->join),
                     "clock/join/version");
    return replicate_entry(r, "leave", &(struct edge){r->leave, CONTROL_SLOT}, 1);
}

/* ---- a worker pushes ---- */

static int add_push(struct replicator *r, struct push *push)
{
    vec_each(x, &push->exchanges) {
        (*x)->push = push;
        (*x)->technique->send(r, *x);
    }
    for (size_t i = 0; push == r->steady && i < r->own->dues.n; i++) {
        struct due *due = &r->own->dues.items[i];
        struct edge flag = replicate_due_to_push(r, due->due);
        replicate_put(r, &push->sent, NULL, (struct bucket_value){flag, "first", &due->taken});
    }
    struct attr unused;
    struct edge *edges = replicate_inputs(r, &push->sent, &unused);
    const struct node *variable = graph_find(r->w.from, push->variable);
    int n = (int)push->sent.values.n;
    for (int j = 0; j < n; j++)
        replicate_mark_sent(r, edges[j].node, variable ? r->priority[variable->id] : 0);
    const struct attr aggregator = {"aggregator", attr_string(push->variable)};
    struct node_spec spec = replicate_spec("AggregatorPush", edges, n, &aggregator, 1);
    push->token =
        replicate_add(r, replicate_beside(r, push->variable, spec), "%s/push", push->variable);
    replicate_wait_for_checks(r, push->token); /* the update waits for its own nodes */
    return r->w.err->code;
}

/* The step's push waits for those of its gradients. It takes the token of the first; the others are
 * control edges, which need only one message for all pushes on one shard. */
static int add_pushes(struct replicator *r)
{
    node_list waits = VEC_INIT;
    if (replicate_sum_rows(r) || add_join(r) || add_dues(r))
        return r->w.err->code;
    struct edge inputs[2] = {replicate_out(r->version), EDGE_NONE};
    vec_each(push, &r->pushes) {
        if (add_push(r, push))
            return r->w.err->code;
        if (!replicate_is_steady(r, push))
            continue;
        if (edge_exists(inputs[1]))
            replicate_also(r, &waits, push->token);
        else
            inputs[1] = push->token;
    }
    struct node_spec spec = replicate_spec_of_two("ClockPush", inputs);
    spec.controls = waits.items;
    spec.n_controls = (int)waits.n;
    struct edge push = {add_to_clock(r, "clock/push", spec), 0};
    replicate_assign(r, &r->ends, replicate_out(r->version), push, "clock/push/version");
    if (r->w.err->code || keep_locals(r))
        return r->w.err->code;
    if (r->steady) {
        /* The clock's push waits for all that is staged, and sums are kept until the clock has
         * replied. */
        node_list staged = VEC_INIT;
        vec_each(held, &r->pushes) {
            if (!replicate_is_steady(r, held))
                replicate_also(r, &staged, held->token);
        }
        replicate_wait(
            r, push,
            replicate_after(r, "ControlTrigger", CLOCK_DEVICE, &staged, "clock/push/staged"));
        replicate_assign(r, &r->own->held, r->own->pushed_before, r->own->pushed,
                         "clock/pushed/Assign");
        vec_each(held, &r->own->held) {
            replicate_wait(r, replicate_out(*held), push.node);
            vec_push_in(&r->w.arena, &r->ends, *held);
        }
    }
    vec_each(x, &r->planned) {
        if ((*x)->technique->keep)
            (*x)->technique->keep(r, *x, build_slot(push, 1));
    }
    if (keep_states(r, push.node))
        return r->w.err->code;
    /* Also runs in steps that do not push, where a NoOp would be dead. */
    r->done = replicate_after(r, "ControlTrigger", WORKER_DEVICE, &r->ends, "clock/done");
    return r->w.err->code;
}

/* ---- the update ---- */

/* Adds the node that takes all workers' pushes on the shard, and the values made from them. */
static int add_take(struct replicator *r, struct push *push)
{
    int n = (int)push->sent.values.n;
    struct attr attrs[4] = {{"aggregator", attr_string(push->variable)}};
    const struct edge *sent = replicate_inputs(r, &push->sent, &attrs[1]);
    enum dtype *types = arena_array(&r->w.to->arena, (size_t)n + 1, sizeof *types);
    struct shape *shapes = arena_array(&r->w.to->arena, (size_t)n + 1, sizeof *shapes);
    for (int j = 0; j < n; j++) {
        const struct node_output *output = graph_output(r->w.to, sent[j]);
        types[j] = output->type;
        shapes[j] = output->shape;
        if (strstr(attrs[1].value.strings[j], "rows") && shapes[j].rank > 0)
            shapes[j].dims[0] = -1;
    }
    attrs[2] = (struct attr){"T", {.kind = ATTR_LIST_TYPE, .n = n, .types = types}};
    attrs[3] = (struct attr){"shapes", {.kind = ATTR_LIST_SHAPE, .n = n, .shapes = shapes}};
    struct edge members = {r->round, 1};
    if (!replicate_is_steady(r, push)) { /* dead in a round without the push */
        struct edge taken = find_due(r, push->steps)->taken;
        members = build_slot(replicate_op_beside(r, "Switch", members, taken, push->variable,
                                                 "%s/take/members", push->variable),
                             1);
    }
    const struct edge inputs[] = {members, {r->round, 2}};
    struct node_spec spec = replicate_spec("AggregatorTake", inputs, 2, attrs, 4);
    struct edge take =
        replicate_add(r, replicate_beside(r, push->variable, spec), "%s/take", push->variable);
    for (int j = 0; j < n; j++)
        *push->sent.values.items[j].got = build_slot(take, j);
    vec_each(x, &push->exchanges) {
        if ((*x)->technique->take && !r->w.err->code)
            (*x)->technique->take(r, *x);
    }
    return r->w.err->code;
}

/* If the node has two versions, the update's has a name of its own. */
static const char *update_name(struct replicator *r, const struct node *node)
{
    if (!has(r, node->id, FACT_KEPT))
        return node->name;
    return r->updated[node->id] >= 0
               ? graph_node(r->w.to, r->updated[node->id])->name
               : rewrite_free_name(r->w.from, r->w.to, replicate_text(r, node->name, "update"));
}

/* The update's node is grouped with the update's version of its leader. */
static const char *leader_in_update(void *context, const struct node *leader, int k)
{
    struct replicator *r = context;
    return k >= 0 && has(r, leader->id, FACT_UPDATE) ? update_name(r, leader) : leader->name;
}

/* Controls are added by wait_in_update. */
static struct edge in_update(void *context, const struct node *reader, struct edge edge, int k)
{
    const struct replicator *r = context;
    const struct exchange *x = replicate_exchange(r, edge);
    (void)reader, (void)k;
    if (edge.slot == CONTROL_SLOT)
        return EDGE_NONE;
    if (has(r, edge.node, FACT_UPDATE))
        return (struct edge){r->updated[edge.node], edge.slot};
    return x ? x->got : (struct edge){r->copy[edge.node], edge.slot};
}

static int wait_in_update(struct replicator *r, const struct node *node, int copy)
{
    node_list left_out = VEC_INIT;
    const struct edge waits = replicate_out(copy);
    for (int i = 0; i < node->n_controls; i++) {
        int control = node->controls[i], before = r->updated[control];
        if (!has(r, control, FACT_UPDATE))
            continue;
        if (r->steady && r->interval[control] != r->steps &&
            r->interval[control] != r->interval[node->id])
            vec_push_in(&r->w.arena, &left_out, before);
        else
            replicate_wait(r, waits, before);
    }
    if (left_out.n)
        replicate_wait(r, waits,
                       replicate_after(r, "ControlTrigger", SHARD_DEVICE, &left_out,
                                       replicate_text(r, node->name, "waits")));
    return r->w.err->code;
}

static int add_update(struct replicator *r)
{
    r->round = add_to_clock(r, "clock/round", (struct node_spec){.op = "ClockRound"});
    for (int pass = 0; pass < 2; pass++) { /* a steady one tells whether there are others */
        vec_each(push, &r->pushes) {
            if (replicate_is_steady(r, push) == !pass && add_take(r, push))
                return r->w.err->code;
        }
    }
    graph_each_ordered(node, r->w.from, r->w.order) {
        if (!has(r, node->id, FACT_UPDATE))
            continue;
        const struct rewrite_copy spec = {node, 0, .name = update_name(r, node),
                                          .device = replicate_device(r, node, SHARD_DEVICE)};
        size_t n_open = r->w.open.n;
        struct node *copy = rewrite_add_mapped(&r->w, &spec, in_update);
        if (r->w.open.n > n_open)
            return error_set(r->w.err, ERR_DATA, "%s: %s: an update cannot have a loop",
                             node_text(node), node->op->def->name);
        if (wait_in_update(r, node, copy->id))
            return r->w.err->code;
        bool reads_state = node_has(node, OP_STATEFUL);
        for (int j = 0; j < node->n_inputs; j++)
            reads_state |= access_is_variable(r->w.from, node->inputs[j]);
        if (reads_state)
            graph_add_control(r->w.to, copy, r->round);
        r->updated[node->id] = copy->id;
        rewrite_note(&r->w, copy->name, "update");
    }
    return 0;
}

/* Adds the node that ends the round, after all of the list. */
static int advance_after(struct replicator *r, const node_list *over)
{
    struct edge round = replicate_out(r->round);
    int advance =
        add_to_clock(r, "clock/advance", replicate_spec("ClockAdvance", &round, 1, NULL, 0));
    vec_each(before, over)
        replicate_wait(r, replicate_out(advance), *before);
    return advance;
}

static int end_update(struct replicator *r)
{
    node_list over = VEC_INIT;
    graph_each(node, r->w.from) {
        if (has(r, node->id, FACT_WRITER) || (has(r, node->id, FACT_UPDATE) && !node->n_outputs))
            vec_push_in(&r->w.arena, &over, r->updated[node->id]);
    }
    if (replicate_may_leave_out(r) || r->steady) {
        /* Nodes that are left out are dead, and the clock continues. */
        over.items[0] = replicate_after(r, "ControlTrigger", CLOCK_DEVICE, &over, "clock/updated");
        over.n = 1;
    }
    int advance = advance_after(r, &over);
    replicate_entry(r, "update", &(struct edge){advance, CONTROL_SLOT}, 1);
    /* Values from the journal are dead in a worker that begins with the shards' values, and the
     * reverse. */
    int joined = replicate_after(r, "ControlTrigger", WORKER_DEVICE, &r->joined, "clock/join/over");
    const struct edge edges[] = {{r->join, 0}, {r->join, 1}, {joined, CONTROL_SLOT}};
    return replicate_entry(r, "join", edges, 3);
}

/* ---- the graph ---- */

int replicate_shards(struct replicator *r)
{
    r->w.rules.leader = leader_in_update;
    return count_steps(r) || replicate_copy_all(r, 0, read_edge) || add_pushes(r) ||
                   add_update(r) || end_update(r) || replicate_copy_all(r, FACT_AFTER, read_edge)
               ? r->w.err->code
               : 0;
}

/* ---- the clock of tiles on shards ----
 *
 * Its one worker is the driver: each step is a round, so that shards make checkpoints between two
 * of them, and a driver that begins again is told how many of its feed records count. Unlike a
 * replicated graph's, the round is part of the driver's step: nodes that change variables wait for
 * it, and it ends when all changes are over. Nobody else would begin the round that a push of a
 * driver waits for that has died: the next one pushes it again. */

/* Returns the node of that name on the node's device, which is added if it is new: few edges go
 * from task to task. */
static int beside(struct replicator *r, node_list *made, const struct node *node, const char *name)
{
    const char *device = *node->device ? node->device : CLOCK_DEVICE;
    const node_list none = VEC_INIT;
    if (r->w.err->code)
        return -1;
    vec_each(known, made) {
        if (!strcmp(graph_node(r->w.to, *known)->device, device))
            return *known;
    }
    vec_push_in(&r->w.arena, made, replicate_after(r, "NoOp", device, &none, name));
    return made->items[made->n - 1];
}

/* Adds on each device a node after those of the list there. */
static void add_after(struct replicator *r, const node_list *nodes, const char *name,
                      node_list *made)
{
    vec_each(node, nodes)
        replicate_wait(r, replicate_out(beside(r, made, graph_node(r->w.to, *node), name)), *node);
}

static int add_clock(struct replicator *r)
{
    const struct spread after = {FACT_WRITER, FACT_AFTER, .only = FACT_NEEDED, .controls = true};
    node_list computed = VEC_INIT, writers = VEC_INIT; /* what the round begins after, and is of */
    node_list before = VEC_INIT, begins = VEC_INIT, updated = VEC_INIT;
    bool *is_met = arena_alloc(&r->w.arena, r->w.from->nodes.n + 1);
    /* The round begins when all that the nodes that change variables, with what comes after them,
     * need of the rest of the step is there, also the check of the loss. */
    graph_each_ordered(node, r->w.from, r->w.order) {
        if (!has(r, node->id, FACT_NEEDED) || !access_written(r->w.from, node))
            continue;
        r->facts[node->id] |= FACT_WRITER | FACT_AFTER;
        vec_push_in(&r->w.arena, &writers, node->id);
    }
    spread_facts(r->w.from, r->w.order, r->facts, after);
    graph_each_ordered(node, r->w.from, r->w.order) {
        for (int k = 0; has(r, node->id, FACT_AFTER) && k < node->n_inputs + node->n_controls;
             k++) {
            const struct node *needed = graph_node(r->w.from, node_dependency(node, k).node);
            if (is_met[needed->id] || has(r, needed->id, FACT_AFTER) || !needed->n_inputs)
                continue;
            is_met[needed->id] = true;
            vec_push_in(&r->w.arena, &computed, needed->id);
        }
    }
    /* Nobody would push for another entry that writes. */
    vec_each(entry, &r->w.from->entries) {
        const bool *needed = graph_entry_needs(&r->w.arena, r->w.from, entry);
        graph_each(node, r->w.from) {
            if (entry != r->entry && needed[node->id] && has(r, node->id, FACT_AFTER))
                return error_set(r->w.err, ERR_DATA,
                                 "the entry '%s' needs %s, which changes in a step of '%s' only",
                                 entry->name, node_text(node), r->entry->name);
        }
    }
    if (add_join(r))
        return r->w.err->code;
    /* The push says that the step is computed. It is answered when the round is over. */
    add_after(r, &computed, "clock/computed", &before);
    struct edge version = replicate_out(r->version);
    int push = add_to_clock(r, "clock/push", replicate_spec("ClockPush", &version, 1, NULL, 0));
    vec_each(node, &before)
        replicate_wait(r, replicate_out(push), *node);
    r->round = add_to_clock(r, "clock/round", (struct node_spec){.op = "ClockRound"});
    vec_each(writer, &writers) {
        int begun = beside(r, &begins, graph_node(r->w.to, *writer), "clock/begun");
        replicate_wait(r, replicate_out(begun), r->round);
        replicate_wait(r, replicate_out(*writer), begun);
    }
    add_after(r, &writers, "clock/updated", &updated);
    int advance = advance_after(r, &updated);
    replicate_assign(r, &r->ends, version, replicate_out(push), "clock/push/version");
    if (r->w.err->code)
        return r->w.err->code;
    const struct edge join[] = {{r->join, 0}, {r->join, 1}, {r->joined.items[0], CONTROL_SLOT}};
    int n = r->entry->n_edges;
    struct edge *edges = arena_array(&r->w.arena, (size_t)n + 2, sizeof *edges);
    memcpy(edges, r->entry->edges, (size_t)n * sizeof *edges);
    edges[n] = (struct edge){advance, CONTROL_SLOT};
    edges[n + 1] = (struct edge){r->ends.items[0], CONTROL_SLOT};
    graph_add_entry(r->w.to, r->entry->name, edges, n + 2);
    return replicate_entry(r, "join", join, 3) ? r->w.err->code : graph_check(r->w.to, r->w.err);
}

int replicate_grid_clock(struct graph *graph, const char *entry, double timeout, struct error *err)
{
    const struct replicate_options options = {
        .policy = "sync", .workers = 1, .entry = entry, .timeout = timeout};
    struct replicator r = {.w = {.from = graph, .to = graph, .err = err}, .options = &options};
    r.w.order = arena_array(&r.w.arena, graph->nodes.n + 1, sizeof *r.w.order);
    r.facts = arena_array(&r.w.arena, graph->nodes.n + 1, sizeof *r.facts);
    if (!graph_order(graph, r.w.order, err) && !replicate_find_entry(&r, "counts steps")) {
        if (r.entry)
            add_clock(&r);
        else if (entry)
            error_set(err, ERR_DATA, "the entry '%s' does not exist or nothing of it trains",
                      entry);
    }
    arena_release(&r.w.arena);
    return err->code;
}
