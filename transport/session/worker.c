/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/failpoint.h"
#include "base/life.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/name_index.h"
#include "base/time.h"
#include "graph/holders.h"
#include "graph/infer.h"
#include "graph/task.h"
#include "graph/worker_attr.h"
#include "resource/journal.h"
#include "resource/kinds.h"
#include "transport/collective/collective.h"
#include "transport/session/worker_private.h"

/* ---- opening ---- */

/* Opens the devices of the nodes on the worker's own task; other tasks open theirs. */
static int open_devices(struct worker *worker, const struct task_table *table, struct error *err)
{
    struct graph *own = NULL;
    int code = 0;
    for (size_t i = 0; !code && i < table->names.n; i++)
        if (!strcmp(table->names.items[i], worker->member.task))
            code = task_graph(worker->options.graph, table, (int)i, &own, err);
    if (!code && own)
        code = device_set_open(&worker->devices, own, true, &worker->options.device, err);
    graph_free(own);
    return code;
}

static int open_session(struct worker *worker, struct error *err)
{
    const struct member_options *options = &worker->member.options;
    struct driver_session_options session = {.conns = worker->member.conns,
                                             .graph = worker->options.graph,
                                             .task = worker->member.task,
                                             .cluster = &worker->member.cluster,
                                             .local = {.plan = worker->options.plan,
                                                       .devices = worker->devices.devices.items,
                                                       .n_devices = (int)worker->devices.devices.n},
                                             .timeout = options->timeout,
                                             .replica = (uint32_t)worker->replica,
                                             .pumps = true,
                                             .given_up = options->given_up,
                                             .context = options->news.context};
    session.local.plan.variables = worker->variables;
    session.local.plan.outgoing = conns_outgoing(worker->member.conns);
    if (worker->devices.devices.n)
        session.local.plan.device = worker->devices.devices.items[0];
    return driver_session_open(&session, &worker->session, err);
}

static struct journal *own_journal(const struct worker *worker)
{
    return journal_of(worker->variables, "default");
}

uint64_t worker_hash_graph(const struct graph *graph, uint64_t seed)
{
    graph_each(node, graph) {
        seed = hash_bytes(node->name, strlen(node->name), seed);
        seed = hash_bytes(node->op->def->name, strlen(node->op->def->name), seed);
    }
    return seed;
}

/* A restarted worker finds its journal in the job's directory. Each job creates the file `key` anew
 * there, so that a journal of an earlier job is recognised. */
static void place_journal(struct worker *worker)
{
    const struct member *member = &worker->member;
    uint64_t hash = 0;
    struct stat key;
    if (!member->job.folder)
        return;
    if (!fstatat(member->job.fd, "key", &key, 0)) {
        const int64_t made[] = {(int64_t)key.st_ino, key.st_mtim.tv_sec, key.st_mtim.tv_nsec};
        hash = hash_bytes(made, sizeof made, hash);
    }
    hash = hash_bytes(member->task, strlen(member->task), hash);
    char *path = job_path(&member->job, member->task, ".journal");
    journal_place(own_journal(worker), path, worker_hash_graph(worker->options.graph, hash));
    mem_free(path);
}

/* No step needs it: where a worker cannot listen, as at an address without a key, it only answers
 * nobody. */
static void listen_to_answer(struct worker *worker)
{
    const struct peers_news *news = &worker->member.options.news;
    struct address bound;
    struct error why = ERROR_INIT;
    if (member_listen(&worker->member, &bound, &why) && news->tell) {
        error_prefix(&why, "nobody can ask for its variables: ");
        news->tell(news->context, why.text);
    }
}

int worker_open(struct worker *worker, const struct worker_options *options, struct error *err)
{
    struct task_table table = {0};
    memset(worker, 0, sizeof *worker);
    LIFE_BEGINS("worker.meets");
    worker->options = *options;
    worker->variables = variable_store_new();
    int code = member_open(&worker->member, &options->member, err);
    worker->replica =
        code ? 0 : task_replica(options->graph, worker->member.job_name, worker->member.index);
    if (!code)
        code = task_instance(options->graph, worker->member.job_name, worker->member.index, err);
    if (!code)
        code = task_table_fill(&table, options->graph, err);
    if (!code)
        code = open_devices(worker, &table, err);
    if (!code && options->answers)
        options->answers(options->context, worker->member.conns);
    if (!code)
        code = worker_open_collective(worker, err);
    if (!code && options->answers && !worker->collective)
        listen_to_answer(worker);
    if (!code)
        code = member_wait_for(&worker->member, table.names.items, table.names.n, err);
    if (!code)
        code = open_session(worker, err);
    if (!code) {
        worker_react(&worker->state, WORKER_OPENED);
        worker_find_state(worker);
        place_journal(worker);
    }
    task_table_release(&table);
    return code ? error_prefix(err, "%s: ", *worker->member.task ? worker->member.task : "cluster")
                : 0;
}

void worker_close(struct worker *worker)
{
    saved_release(&worker->before);
    tensor_release(&worker->parting.ranks);
    driver_session_close(worker->session);
    worker_close_collective(worker);
    member_close(&worker->member);
    variable_store_free(worker->variables);
    device_set_release(&worker->devices);
    vec_release(&worker->own);
    vec_release(&worker->parts);
}

static void trace_link(void *context, struct link *link)
{
    const struct step *step = context;
    const struct link_stats stats = link_stats(link);
    trace_peer(step->trace, step->number,
               &(struct trace_peer){link_peer(link)->task, stats.values_out, stats.values_in});
}

static int run(void *context, const struct plan_request *call, struct step *step,
               struct tensor *fetches, struct error *err)
{
    struct worker *worker = context;
    step->collective = worker->collective;
    enum worker_reaction what = worker_react(&worker->state, WORKER_BEGINS);
    int code = what == WORKER_KEEP ? worker_keep_before(worker, err)
               : what == WORKER_BUG
                   ? error_set(err, ERR_INTERNAL, "%s: a step out of its turn", worker->member.task)
                   : 0;
    if (!code)
        code = driver_session_run(worker->session, call, step, fetches, err);
    if (what != WORKER_BUG)
        worker_react(&worker->state, WORKER_ENDS);
    if (code && worker->collective)
        collective_links_abort(worker->collective, err);
    if (!code && step->trace)
        peers_each(conns_peers(worker->member.conns), trace_link, step);
    return code;
}

/* Returns the version of the variables on the shards; -1: it is not known. */
static int64_t version_now(void *context)
{
    struct worker *worker = context;
    struct saved_variable saved = {.node = worker->version};
    struct error ignored = ERROR_INIT;
    bool is_there = !worker_take(worker, &saved, &ignored) && saved.value.type == INT64;
    int64_t version = is_there ? *(const int64_t *)saved.value.data : -1;
    tensor_release(&saved.value);
    return version;
}

void worker_bind_driver(struct worker *worker, struct driver *driver)
{
    driver->run = run;
    driver->run_context = worker;
    driver->version = worker->version ? version_now : NULL;
    driver->name = worker->member.task;
}

/* ---- variables on any task ---- */

static void pack_variable(void *context, msgpack_packer *packer)
{
    const struct saved_variable *saved = context;
    pack_key_text(packer, "name", saved->node->name);
    pack_key_int(packer, "updates", saved->updates);
}

static void take_value(void *context, const char *task, const struct record *record)
{
    struct saved_variable *saved = context;
    (void)task;
    record_get_int(&record->header, "updates", &saved->updates);
    if (record->n_tensors == 1)
        tensor_share(&saved->value, &record->tensors[0].tensor);
}

int worker_task_of(const struct worker *worker, const struct node *node)
{
    char task[TASK_TEXT_BYTES];
    struct error ignored = ERROR_INIT;
    return task_of_device(task, node->assigned, &ignored)
               ? -1
               : driver_session_find(worker->session, task);
}

int worker_take(struct worker *worker, struct saved_variable *saved, struct error *err)
{
    int task = worker_task_of(worker, saved->node);
    const struct task_request request = {.verb = "read",
                                         .n_fields = 2,
                                         .pack = pack_variable,
                                         .fields = saved,
                                         .answered = take_value,
                                         .context = saved};
    return task < 0 ? variable_take(worker->variables, saved, err)
                    : driver_session_ask(worker->session, task, &request, err);
}

int worker_put(struct worker *worker, struct saved_variable *saved, struct error *err)
{
    int task = worker_task_of(worker, saved->node);
    const struct named_tensor named = {"", saved->value};
    const struct task_request request = {.verb = "write",
                                         .n_fields = 2,
                                         .pack = pack_variable,
                                         .tensors = &named,
                                         .n_tensors = 1,
                                         .fields = saved};
    if (task >= 0)
        return driver_session_ask(worker->session, task, &request, err);
    if (!worker->devices.devices.n)
        return error_set(err, ERR_CONFIG, "%s: there is no device here", node_text(saved->node));
    return variable_put(worker->variables, saved, worker->devices.devices.items[0], err);
}

struct resource_stream {
    struct resource_sink sink; /* first */
    struct stream_writer *stream;
    int64_t step;
};

static int write_part(struct resource_sink *sink, const char *container, const char *name,
                      const struct tensor *value, struct error *err)
{
    const struct resource_stream *to = (struct resource_stream *)sink;
    const struct variable_record part = {
        .container = container, .name = name, .value = *value, .step = to->step};
    return stream_write_variable(to->stream, &part, err);
}

int worker_save(struct worker *worker, int64_t step, struct stream_writer *writer,
                struct error *err)
{
    const struct graph *graph = worker->options.graph;
    struct resource_stream to = {{write_part, NULL}, writer, step};
    struct resource_snapshots snapshots = {VEC_INIT};
    int code = 0;
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        struct saved_variable saved = {.node = graph_node(graph, (int)i)};
        if (!node_is(saved.node, "Variable") || node_attr(saved.node, WORKER_LOCAL))
            continue;
        code = worker_take(worker, &saved, err);
        if (!code && saved.value.type != DTYPE_INVALID)
            code = variable_write(&saved, step, writer, err);
        else if (!code && holders_must_save(saved.node))
            code =
                error_set(err, ERR_DATA, "nothing saved: %s has no value", node_text(saved.node));
        tensor_release(&saved.value);
    }
    /* Resources hold the other workers' own variables. */
    if (!code) {
        resource_snapshots_place(worker->variables, &snapshots);
        code = resource_snapshots_save(&snapshots, &to.sink, err);
        resource_snapshots_release(&snapshots);
    }
    return code ? error_prefix(err, "%s: ", worker->member.task) : 0;
}

/* Returns whether a checkpoint may lack a variable: with shards any of the worker's, as nobody
 * saves these and joining sets them; without, those that need not be saved. */
static bool is_own(void *context, const struct node *node)
{
    const struct worker *worker = context;
    return worker_task_of(worker, node) < 0 &&
           (driver_session_tasks(worker->session) > 0 || !holders_must_save(node));
}

static int take_part(void *context, const struct variable_record *part, struct error *err)
{
    const struct worker *worker = context;
    return resource_restore(worker->variables, resource_kinds, part->container, part->name,
                            &part->value, err);
}

int worker_restore(struct worker *worker, struct stream_reader *reader, struct error *err)
{
    const struct load_request wanted = {worker->options.graph, NULL, is_own, take_part, worker};
    saved_variables all = VEC_INIT;
    int64_t step;
    int code = variables_load(&wanted, reader, &all, &step, err);
    for (size_t i = 0; !code && i < all.n; i++)
        code = worker_put(worker, &all.items[i], err);
    saved_release(&all);
    return code;
}

/* ---- the update that a shard runs (update_loop.h) ---- */

/* Returns the nodes that the entry needs, with the entry: the same bytes from every worker. */
static struct graph *graph_of(const struct graph *graph, const struct entry *entry)
{
    struct graph *update = task_closure(graph, entry->edges, entry->n_edges);
    struct edge *edges = arena_array(&update->arena, (size_t)entry->n_edges + 1, sizeof *edges);
    for (int i = 0; i < entry->n_edges; i++) {
        const char *name = graph_node(graph, entry->edges[i].node)->name;
        edges[i] = (struct edge){graph_find(update, name)->id, entry->edges[i].slot};
    }
    graph_add_entry(update, entry->name, edges, entry->n_edges);
    return update;
}

/* If the graph has a ClockRound, asks its shard to run the ClockRound's entry. */
static int ask_for_updates(struct worker *worker, struct error *err)
{
    const struct graph *graph = worker->options.graph;
    const struct node *round = NULL; /* one that is not in the worker's own step */
    graph_each(node, graph)
        if (!round && node_round(node) == ROUND_BEGIN && *node_string(node, "entry"))
            round = node;
    if (!round)
        return 0;
    const struct entry *entry = graph_entry(graph, node_string(round, "entry"));
    int task = worker_task_of(worker, round);
    if (!entry || task < 0)
        return error_set(err, ERR_DATA, "%s: there is no entry '%s' that another task could run",
                         node_text(round), node_string(round, "entry"));
    struct graph *update = graph_of(graph, entry);
    int code = driver_session_update(worker->session, task, update, err);
    graph_free(update);
    return code ? error_prefix(err, "%s: ", worker->member.task) : 0;
}

/* ---- before the first step: variables get their values, and the worker joins ---- */

/* Reads the boolean that the entry ready fetches. */
static int is_ready(struct driver *driver, bool *ready, struct error *err)
{
    struct tensor value = TENSOR_INIT;
    *ready = false;
    if (!graph_entry(driver->graph, "ready"))
        return 0;
    int code = driver_run_entry(driver, "ready", 0, &value, 1, err);
    if (!code && (value.type != BOOL || shape_count(&value.shape) != 1))
        code = error_set(err, ERR_DATA, "%s: entry 'ready' is no truth value", driver->name);
    if (!code)
        *ready = *(const bool *)value.data;
    tensor_release(&value);
    return code;
}

/* Returns a shard's variable that has no value, for messages. */
static const struct node *first_without_value(struct worker *worker)
{
    const struct graph *graph = worker->options.graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct saved_variable saved = {.node = graph_node(graph, (int)i)};
        struct error ignored = ERROR_INIT;
        bool lacks = node_is(saved.node, "Variable") && worker_task_of(worker, saved.node) >= 0 &&
                     !worker_take(worker, &saved, &ignored) && saved.value.type == DTYPE_INVALID;
        tensor_release(&saved.value);
        if (lacks)
            return saved.node;
    }
    return NULL;
}

static int wait_until_ready(struct worker *worker, struct driver *driver, struct error *err)
{
    const struct member_options *options = &worker->member.options;
    double end = time_now() + options->timeout, told = time_now();
    bool ready = !graph_entry(driver->graph, "ready");
    int code = 0;
    while (!ready && !(code = is_ready(driver, &ready, err)) && !ready) {
        double left = end - time_now();
        if (options->given_up && options->given_up(options->news.context))
            return error_set(err, ERR_CANCELLED, "%s: given up before the variables were there",
                             worker->member.task);
        if (left <= 0) {
            const struct node *node = first_without_value(worker);
            return error_set(err, ERR_UNAVAILABLE, "%s: '%s' was not initialized by %s:0 in %.0f s",
                             worker->member.task, node ? node->name : "?", worker->member.job_name,
                             options->timeout);
        }
        if (options->news.waiting && time_now() - told >= 1) {
            char first[TASK_TEXT_BYTES], text[256];
            snprintf(first, sizeof first, "%s:0", worker->member.job_name);
            snprintf(text, sizeof text, "waiting for %s to initialize the variables, %.0f s left",
                     first, left);
            options->news.waiting(options->news.context, first, text);
            told = time_now();
        }
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    }
    return code;
}

/* ---- init, which would set variables that were trained ---- */

/* A variable may have so many updates by workers that died within init. */
#define INITIAL_UPDATES 16

struct trained {
    const struct graph *graph;
    struct name_index variables; /* its nodes, by the names of variables */
    struct str name;
    uint64_t updates; /* of that one */
};

/* Variables of other containers are of other graphs, even if they have the same names. */
static bool has_variable(const struct trained *found, const char *container, const char *name)
{
    const struct name_link *at = name_index_first(&found->variables, name);
    for (; at; at = name_index_next(&found->variables, at))
        if (!strcmp(variable_of_node(graph_node(found->graph, at->value), NULL).container,
                    container))
            return true;
    return false;
}

static void see_variables(void *context, const char *task, const struct record *reply)
{
    struct trained *found = context;
    (void)task;
    const msgpack_object *all = record_field(&reply->header, "variables");
    struct arena arena = ARENA_INIT;
    for (uint32_t i = 0; all && all->type == MSGPACK_OBJECT_ARRAY && i < all->via.array.size; i++) {
        const msgpack_object *row = &all->via.array.ptr[i];
        const char *container, *name;
        uint64_t updates;
        bool has_value;
        if (!found->updates && record_get_text(row, "container", &arena, &container) &&
            record_get_text(row, "name", &arena, &name) &&
            record_get_bool(row, "initialized", &has_value) && has_value &&
            record_get_uint(row, "updates", &updates) && updates > INITIAL_UPDATES &&
            has_variable(found, container, name)) {
            str_clear(&found->name);
            str_append(&found->name, name);
            found->updates = updates;
        }
    }
    arena_release(&arena);
}

/* A shard that lost its variables, or a checkpoint that lacks one which the graph has, must not
 * cost what the others have learned. */
static int check_untrained(struct worker *worker, struct error *err)
{
    struct trained found = {.graph = worker->options.graph, .name = STR_INIT};
    const struct task_request list = {.verb = "list", .answered = see_variables, .context = &found};
    graph_each(node, found.graph)
        if (node_is(node, "Variable"))
            name_index_add(&found.variables, variable_of_node(node, NULL).name, node->id);
    for (int i = 0; i < driver_session_tasks(worker->session); i++) {
        struct error ignored = ERROR_INIT; /* tasks of workers have no list */
        driver_session_ask(worker->session, i, &list, &ignored);
    }
    const struct node *node = found.updates ? first_without_value(worker) : NULL;
    if (node)
        error_set(err, ERR_DATA,
                  "%s: '%s' has no value, but '%s' was trained (%" PRIu64
                  " updates), and init would set both: tf-ps put gives a value to one, tf-ps reset "
                  "takes all of them",
                  worker->member.task, node->name, str_text(&found.name), found.updates);
    name_index_release(&found.variables);
    str_release(&found.name);
    return err->code;
}

static int initialize(struct worker *worker, struct driver *driver,
                      const struct worker_origin *origin, int64_t *counted, struct error *err)
{
    bool ready;
    if (worker->collective)
        return worker_start_collective(worker, driver, origin, counted, err);
    if (worker->member.index)
        return wait_until_ready(worker, driver, err);
    *counted = origin->step;
    if (origin->reader && worker_restore(worker, origin->reader, err))
        return err->code;
    if (origin->is_restored || origin->reader)
        return worker_take_states(worker, err);
    if (is_ready(driver, &ready, err) || ready || check_untrained(worker, err))
        return err->code;
    return driver_initialize(driver, err);
}

/* The second tensor that join fetches is the number of this worker's pushes that count. */
static int join(struct driver *driver, int64_t *counted, struct error *err)
{
    struct tensor values[2] = {TENSOR_INIT, TENSOR_INIT};
    if (!graph_entry(driver->graph, "join"))
        return 0;
    int code = driver_run_entry(driver, "join", 0, values, 2, err);
    if (!code && (values[1].type != INT64 || shape_count(&values[1].shape) != 1))
        code = error_set(err, ERR_DATA, "%s: entry 'join' does not fetch version and count",
                         driver->name);
    if (!code)
        *counted = *(const int64_t *)values[1].data;
    tensor_release(&values[0]);
    tensor_release(&values[1]);
    return code;
}

int worker_start(struct worker *worker, struct driver *driver, const struct worker_origin *origin,
                 int64_t *counted, struct error *err)
{
    *counted = 0;
    int code = initialize(worker, driver, origin, counted, err);
    if (!code)
        code = ask_for_updates(worker, err);
    if (!code)
        code = join(driver, counted, err);
    if (!code)
        code = worker_moment(worker, driver, MOMENT_START, err);
    worker->averaged = *counted;
    if (!code)
        worker_react(&worker->state, WORKER_STARTED);
    const struct peers_news *news = &worker->member.options.news;
    struct error damage; /* of a journal, or it belonged to another owner */
    if (journal_take_damage(own_journal(worker), &damage) && news->tell)
        news->tell(news->context, damage.text);
    conns_trim(worker->member.conns); /* initial values used more memory than steps do */
    return code;
}

/* ---- between steps, and after the last one ---- */

struct device *worker_device(struct worker *worker)
{
    return worker->devices.devices.n ? worker->devices.devices.items[0] : NULL;
}

bool worker_is_settled(const struct worker *worker, int64_t step)
{
    return !worker->average_every || step <= worker->averaged;
}

/* Averages in code start from the present values. */
static int set_anchor(struct worker *worker, struct driver *driver, enum worker_moment moment,
                      struct error *err)
{
    (void)moment;
    return worker->average_every && graph_entry(driver->graph, WORKER_ANCHOR)
               ? driver_run_entry(driver, WORKER_ANCHOR, 0, NULL, 0, err)
               : 0;
}

/* If workers step separately, all take the mean of their variables every so many steps; after its
 * last step a worker takes part in the average that is due next. */
static int take_average(struct worker *worker, struct driver *driver, enum worker_moment moment,
                        struct error *err)
{
    int64_t due = worker_average_step(worker, driver->step);
    struct tensor every = TENSOR_INIT;
    if (worker_is_settled(worker, driver->step) || (due != driver->step && moment != MOMENT_LAST))
        return 0;
    int code = driver_run_entry(driver, WORKER_AVERAGE, due, &every, 1, err);
    tensor_release(&every);
    worker->averaged = due;
    return code;
}

/* If shards ask for the worker's private state, gives it to them and waits until it is in a
 * checkpoint. An idle worker gives it in any case, so that shards need not wait for it. */
static int rest(struct worker *worker, struct driver *driver, enum worker_moment moment,
                struct error *err)
{
    struct saved_variable asked = {.node = worker->asked};
    if (!worker->asked || worker_react(&worker->state, WORKER_RESTS) == WORKER_IGNORE ||
        worker_take(worker, &asked, err))
        return err->code;
    bool rests =
        moment == MOMENT_IDLE || (asked.value.type == BOOL && *(const bool *)asked.value.data);
    tensor_release(&asked.value);
    if (rests && FAILPOINT("worker.rest"))
        return error_set(err, ERR_UNAVAILABLE, "failpoint worker.rest");
    return rests ? driver_run_entry(driver, "rest", driver->step, NULL, 0, err) : 0;
}

int worker_moment(struct worker *worker, struct driver *driver, enum worker_moment moment,
                  struct error *err)
{
    static const struct {
        unsigned moments;
        int (*act)(struct worker *worker, struct driver *driver, enum worker_moment moment,
                   struct error *err);
    } acts[] = {{MOMENT_START, set_anchor},
                {MOMENT_STEPPED | MOMENT_LAST, take_average},
                {MOMENT_STARTED | MOMENT_STEPPED | MOMENT_IDLE, rest}};
    int code = 0;
    for (size_t i = 0; !code && i < sizeof acts / sizeof *acts; i++)
        code = acts[i].moments & moment ? acts[i].act(worker, driver, moment, err) : 0;
    return code;
}

int worker_count_unpushed(struct worker *worker, int64_t *n, int64_t *every, struct error *err)
{
    const struct graph *graph = worker->options.graph;
    const struct node *interval = graph_find(graph, WORKER_PUSHES_EVERY);
    struct saved_variable count = {.node = graph_find(graph, WORKER_STEP_COUNT)};
    const struct tensor *value =
        interval ? graph_constant(graph, (struct edge){interval->id, 0}) : NULL;
    *n = 0;
    *every = value ? tensor_get_int64(value, 0) : 1;
    if (*every < 2 || !count.node || worker_take(worker, &count, err))
        return err->code;
    if (count.value.type == INT64)
        *n = *(const int64_t *)count.value.data % *every;
    tensor_release(&count.value);
    return 0;
}

/* Nobody waits for a worker that has not joined: its links end, and the journal of an earlier
 * incarnation stays for the next one. */
int worker_leave(struct worker *worker, struct driver *driver, struct error *err)
{
    enum worker_reaction what = worker_react(&worker->state, WORKER_LEAVES);
    if (FAILPOINT("worker.leave"))
        return error_set(err, ERR_UNAVAILABLE, "failpoint worker.leave");
    if (what == WORKER_IGNORE)
        return 0;
    int code = graph_entry(driver->graph, "leave")
                   ? driver_run_entry(driver, "leave", 0, NULL, 0, err)
                   : 0;
    if (!code)
        journal_remove(own_journal(worker));
    if (!code && what == WORKER_TELL_GIVE)
        code = worker_give_state(worker, err);
    if (code)
        return code;
    worker_leave_collective(worker);
    worker_react(&worker->state, WORKER_GOES);
    return 0;
}
