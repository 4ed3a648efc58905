/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers that train without shards: each has all variables and runs all updates, and the op
 * AllReduce sums what differs. They join before the first step, begin with the same variables,
 * verify that, and go on only together: when one is lost all end, to be started again from a
 * checkpoint.
 */
#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "exec/device/communicator.h"
#include "exec/step/collective_kernel.h"
#include "transport/collective/collective.h"
#include "transport/session/worker_private.h"

#define LEAVE_SECONDS 30  /* within which the others have received what was sent */
#define LOOK_SECONDS 0.05 /* between checks whether to give up */

/* ---- joining: workers, and the servers that add for them ---- */

/* The exchanges of a graph: whether there are any, and whether some use the cluster's shards as
 * summation servers, or devices. */
struct graph_exchanges {
    bool any, by_servers;
    enum by_device by_device;
};

static struct graph_exchanges find_exchanges(const struct graph *graph)
{
    struct graph_exchanges found = {.by_device = BY_DEVICE_NEVER};
    graph_each(node, graph) {
        bool reduces = node_round(node) == ROUND_REDUCE;
        found.any |= reduces || node_round(node) == ROUND_ROUTE;
        found.by_servers |= reduces && collective_by_servers(node);
        if (reduces && found.by_device == BY_DEVICE_NEVER)
            found.by_device = collective_by_device(node);
    }
    return found;
}

/* The tasks that join: the job's tasks by index, whose places are their ranks, then the servers. */
struct join_tasks {
    int n, n_servers, rank;
    const char **names;
    struct arena arena;
};

static void add_job(struct join_tasks *all, const struct cluster *cluster, const char *job, int n,
                    int at)
{
    for (int index = 0, end = at + n; at < end; index++)
        if (cluster_find(cluster, job, index))
            all->names[at++] = arena_printf(&all->arena, "%s:%d", job, index);
}

static int find_tasks(const struct worker *worker, struct join_tasks *all, struct error *err)
{
    const struct member *member = &worker->member;
    bool served = find_exchanges(worker->options.graph).by_servers;
    all->n = cluster_count(&member->cluster, member->job_name);
    all->n_servers = served ? cluster_count(&member->cluster, SHARD_JOB) : 0;
    if (served && !all->n_servers)
        return error_set(err, ERR_CONFIG,
                         "sums of the graph go by shards, and the cluster has no task of the job "
                         "%s",
                         SHARD_JOB);
    all->names =
        arena_array(&all->arena, (size_t)all->n + (size_t)all->n_servers, sizeof *all->names);
    add_job(all, &member->cluster, member->job_name, all->n, 0);
    add_job(all, &member->cluster, SHARD_JOB, all->n_servers, all->n);
    all->rank = (int)names_find(all->names, (size_t)all->n, member->task);
    return 0;
}

int worker_open_collective(struct worker *worker, struct error *err)
{
    struct member *member = &worker->member;
    struct join_tasks all = {.n = 0};
    struct address bound;
    if (cluster_count(&member->cluster, member->job_name) < 2 ||
        !find_exchanges(worker->options.graph).any)
        return 0;
    int code = find_tasks(worker, &all, err);
    const struct collective_tasks group = {all.names, all.n, all.n_servers, worker_hear_of_leaving,
                                           worker};
    if (!code) {
        worker->collective = collective_links_new(member->conns, &group, all.rank);
        code = member_listen(member, &bound, err);
    }
    if (!code)
        code = member_wait_for(member, all.names, (size_t)(all.n + all.n_servers), err);
    if (!code)
        code = collective_links_join(worker->collective, &member->cluster, &member->options, err);
    arena_release(&all.arena);
    return code;
}

/* ---- the end ---- */

/* Device threads may still be in calls of steps that are over. */
void worker_close_collective(struct worker *worker)
{
    struct error why = ERROR_INIT;
    if (!worker->collective)
        return;
    error_set(&why, ERR_UNAVAILABLE, "it has given up");
    if (worker_react(&worker->state, WORKER_CLOSES) == WORKER_ABORT)
        collective_links_abort(worker->collective, &why); /* does nothing if a reason is known
                                                           * already */
    device_set_settle(&worker->devices);
    worker->collective->free(worker->collective);
    worker->collective = NULL;
}

void worker_leave_collective(struct worker *worker)
{
    if (worker->collective)
        collective_links_end(worker->collective, LEAVE_SECONDS);
}

bool worker_writes(const struct worker *worker)
{
    struct collective *collective = worker->collective;
    return !collective ||
           (collective_links_first(collective) == collective->rank && !worker->before.n);
}

struct last_step {
    struct collective *collective;
    int64_t step;
};

static bool is_known(void *context)
{
    struct last_step *last = context;
    return collective_links_last_step(last->collective, &last->step);
}

/* Returns the last step of all workers. INT64_MAX: nobody asks to end, or the driver's step is
 * cancelled before the last step is known; with `patience` 0 also: it is not known yet. */
static int64_t last_step(struct worker *worker, const struct driver *driver, bool asked,
                         double patience)
{
    struct last_step last = {worker->collective, INT64_MAX};
    struct loop *loop = conns_loop(worker->member.conns);
    if (asked)
        collective_links_ask_to_end(worker->collective);
    while (!loop_run_until(loop, is_known, &last, patience) && patience > 0 &&
           !atomic_load(&driver->at_hand.cancelled))
        ;
    return last.step;
}

bool worker_is_over(struct worker *worker, const struct driver *driver, bool asked)
{
    if (!worker->collective)
        return asked;
    return driver->step >= last_step(worker, driver, asked, LOOK_SECONDS);
}

bool worker_ends_wait(struct worker *worker, const struct driver *driver)
{
    return driver->step >= last_step(worker, driver, true, 0);
}

bool worker_begins(struct worker *worker, const struct driver *driver, bool asked, bool last)
{
    if (!worker->collective)
        return !asked && !last;
    last_step(worker, driver, asked, LOOK_SECONDS);
    bool begins = collective_links_begin(worker->collective, driver->step + 1);
    if (begins && last)
        collective_links_ask_to_end(worker->collective);
    return begins || atomic_load(&driver->at_hand.cancelled);
}

/* ---- gathering ---- */

int worker_exchange(struct worker *worker, struct collective_call call, const struct tensor *value,
                    bool *met, struct tensor *result, struct error *err)
{
    static const enum collective_kind rows = COLLECTIVE_ROWS;
    call.values = value;
    call.n = 1;
    if (!call.kinds)
        call.kinds = &rows;
    return collective_links_run(worker->collective, &call, result, met, err);
}

int worker_gather(struct worker *worker, const struct worker_row *row, bool *met,
                  struct tensor *all, struct error *err)
{
    const struct collective_call call = {.key = row->key, .with_leaving = row->with_leaving};
    struct shape shape = shape_matrix(1, row->n);
    struct tensor mine;
    if (tensor_alloc(&mine, INT64, &shape, err))
        return err->code;
    memcpy(mine.data, row->items, (size_t)row->n * sizeof *row->items);
    int code = worker_exchange(worker, call, &mine, met, all, err);
    tensor_release(&mine);
    return code;
}

/* Gathers a row of every worker, before the first step. */
static int gather(struct worker *worker, const char *name, const int64_t *items, int64_t n,
                  struct tensor *all, struct error *err)
{
    const struct worker_row row = {.key = {name, 0, 0}, .items = items, .n = n};
    int code = worker_gather(worker, &row, NULL, all, err);
    if (!code && all->shape.dims[0] != worker->collective->size)
        code = error_set(err, ERR_UNAVAILABLE, "a worker has left before the first step");
    return code;
}

/* ---- agreeing ---- */

/* The values that workers compare before they begin; rank 0's count. */
struct start {
    int64_t graph, seed;
    int64_t restores, step; /* whether values are restored, and their step */
    int64_t seen;           /* as in struct worker_origin */
};

#define START_COLUMNS ((int64_t)(sizeof(struct start) / sizeof(int64_t)))

static int compare_start(int k, const struct start *start, const struct start *first,
                         struct error *err)
{
    if (start->graph != first->graph)
        return error_set(err, ERR_CONFIG, "the workers %d and 0 run different graphs", k);
    if (start->seed != first->seed)
        return error_set(err, ERR_CONFIG,
                         "worker %d has --seed %" PRId64 ", worker 0 --seed %" PRId64, k,
                         start->seed, first->seed);
    if (start->seen >= 0 && first->seen < 0)
        return error_set(err, ERR_CONFIG,
                         "worker %d would resume at step %" PRId64 ", worker 0 at none", k,
                         start->seen);
    if (start->seen >= 0 && start->seen != first->seen)
        return error_set(err, ERR_CONFIG,
                         "worker %d would resume at step %" PRId64 ", worker 0 at step %" PRId64, k,
                         start->seen, first->seen);
    return 0;
}

/* Checks that all run the same graph with the same seed; *start becomes rank 0's. */
static int agree(struct worker *worker, struct start *start, struct error *err)
{
    struct tensor all = TENSOR_INIT;
    int code = gather(worker, "=start", &start->graph, START_COLUMNS, &all, err);
    const struct start *starts = all.data;
    for (int k = 1; !code && k < worker->collective->size; k++)
        code = compare_start(k, &starts[k], &starts[0], err);
    if (!code)
        *start = starts[0];
    tensor_release(&all);
    return code;
}

/* ---- restoring: rank 0 reads, all get the values ---- */

enum { META_UPDATES, META_RANK, META_DIMS, META_MAX = META_DIMS + SHAPE_RANK_MAX };

/* Makes two vectors of rank 0's value of a variable; the other workers contribute empty ones. */
static int flatten(const struct saved_variable *saved, enum dtype type, struct tensor flat[2],
                   struct error *err)
{
    bool here = saved->value.type != DTYPE_INVALID;
    struct shape shape = shape_vector(here ? tensor_count(&saved->value) : 0);
    struct shape meta = shape_vector(here ? META_DIMS + saved->value.shape.rank : 0);
    if (tensor_alloc(&flat[0], type, &shape, err) || tensor_alloc(&flat[1], INT64, &meta, err))
        return err->code;
    if (!here)
        return 0;
    memcpy(flat[0].data, saved->value.data, tensor_bytes(&saved->value));
    tensor_set_int64(&flat[1], META_UPDATES, saved->updates);
    tensor_set_int64(&flat[1], META_RANK, saved->value.shape.rank);
    for (int i = 0; i < saved->value.shape.rank; i++)
        tensor_set_int64(&flat[1], META_DIMS + i, saved->value.shape.dims[i]);
    return 0;
}

static int take_over(struct worker *worker, const struct node *node, const struct tensor flat[2],
                     struct error *err)
{
    struct saved_variable saved = {.node = node, .value = flat[0]}; /* borrows */
    const int64_t *meta = flat[1].data;
    int64_t n = tensor_count(&flat[1]);
    if (!n || !worker->collective->rank)
        return 0;
    if (n < META_DIMS || n > META_MAX || meta[META_RANK] != n - META_DIMS)
        return error_set(err, ERR_PROTOCOL, "%s: the first worker sends a value without its shape",
                         node_text(node));
    saved.updates = meta[META_UPDATES];
    saved.value.shape = shape_of((int)meta[META_RANK], meta + META_DIMS);
    if (shape_count(&saved.value.shape) != tensor_count(&flat[0]))
        return error_set(err, ERR_PROTOCOL, "%s: the first worker sends a value of another shape",
                         node_text(node));
    return worker_put(worker, &saved, err);
}

static int spread(struct worker *worker, const struct node *node, uint64_t which, struct error *err)
{
    static const enum collective_kind kinds[2] = {COLLECTIVE_ROWS, COLLECTIVE_ROWS};
    struct saved_variable saved = {.node = node};
    struct tensor flat[2] = {TENSOR_INIT, TENSOR_INIT}, all[2] = {TENSOR_INIT, TENSOR_INIT};
    struct collective_call call = {{"=restore", 0, which}, flat, kinds, 2, .yields = false};
    int code = worker->collective->rank ? 0 : worker_take(worker, &saved, err);
    if (!code)
        code = flatten(&saved, node->outputs[0].type, flat, err);
    if (!code)
        code = collective_links_run(worker->collective, &call, all, NULL, err);
    if (!code)
        code = take_over(worker, node, all, err);
    for (int i = 0; i < 2; i++) {
        tensor_release(&flat[i]);
        tensor_release(&all[i]);
    }
    tensor_release(&saved.value);
    return code;
}

static bool is_own_variable(const struct worker *worker, const struct node *node)
{
    return node_is(node, "Variable") && worker_task_of(worker, node) < 0 &&
           !worker_has_own(worker, node);
}

static int restore_all(struct worker *worker, const struct worker_origin *origin, struct error *err)
{
    const struct graph *graph = worker->options.graph;
    bool reads = !worker->collective->rank && !origin->is_restored;
    int code = reads ? worker_restore(worker, origin->reader, err) : 0;
    for (size_t i = 0; !code && i < graph->nodes.n; i++)
        if (is_own_variable(worker, graph_node(graph, (int)i)))
            code = spread(worker, graph_node(graph, (int)i), i, err);
    if (!code)
        code = worker_take_states(worker, err);
    return code ? code : worker_cut_parts(worker, err);
}

/* ---- verifying that all have the same variables ---- */

static int verify(struct worker *worker, struct error *err)
{
    const struct graph *graph = worker->options.graph;
    const struct node **nodes = mem_array(graph->nodes.n + 1, sizeof *nodes);
    int64_t *row = mem_array(graph->nodes.n + 1, sizeof *row), n = 0;
    struct tensor all = TENSOR_INIT;
    int code = 0;
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        struct saved_variable saved = {.node = graph_node(graph, (int)i)};
        if (!is_own_variable(worker, saved.node) || worker_has_part(worker, saved.node))
            continue;
        code = worker_take(worker, &saved, err);
        if (!code && saved.value.type != DTYPE_INVALID)
            row[n] = (int64_t)hash_bytes(saved.value.data, tensor_bytes(&saved.value),
                                         (uint64_t)tensor_count(&saved.value));
        tensor_release(&saved.value);
        nodes[n++] = saved.node;
    }
    if (!code)
        code = gather(worker, "=variables", row, n, &all, err);
    for (int64_t i = n; !code && i < worker->collective->size * n; i++)
        if (tensor_get_int64(&all, i) != tensor_get_int64(&all, i % n))
            code = error_set(err, ERR_DATA,
                             "%s begins with other values in worker %d than in worker 0",
                             node_text(nodes[i % n]), (int)(i / n));
    tensor_release(&all);
    mem_free(row);
    mem_free(nodes);
    return code;
}

/* ---- sums on the workers' devices ----
 *
 * Devices add (exec/device/communicator.h) if the graph asks for it, and all workers have a device
 * of one kind with one library. */

/* A worker's description of its device before the first step. */
struct worker_device {
    int64_t kind; /* a hash; 0: it has none */
    char id[COMMUNICATOR_ID_BYTES];
};

#define DEVICE_COLUMNS ((int64_t)(sizeof(struct worker_device) / sizeof(int64_t)))

/* `why` says what this worker lacks. */
static void describe(const struct worker *worker, struct device *device,
                     struct worker_device *facts, struct error *why)
{
    char text[128] = "";
    *facts = (struct worker_device){0};
    if (!device)
        error_set(why, ERR_UNAVAILABLE, "no node is on a GPU");
    else if (!device->communicators->describe(device, text, sizeof text, why) &&
             (worker->collective->rank || !device->communicators->make_id(device, facts->id, why)))
        facts->kind = (int64_t)(hash_bytes(text, strlen(text), 0) | 1);
}

static int compare(const struct worker *worker, const struct worker_device *all,
                   const struct error *own, struct error *err)
{
    const struct collective *collective = worker->collective;
    if (own->code)
        return error_set(err, ERR_UNAVAILABLE, "schedule=nccl: %s", own->text);
    for (int k = 0; k < collective->size; k++)
        if (!all[k].kind)
            return error_set(err, ERR_UNAVAILABLE, "schedule=nccl: worker %d has no NCCL", k);
    for (int k = 1; k < collective->size; k++)
        if (all[k].kind != all[0].kind)
            return error_set(err, ERR_UNAVAILABLE,
                             "schedule=nccl: worker %d has another kind of GPU, or another "
                             "version of CUDA or NCCL, than worker 0",
                             k);
    return 0;
}

/* Called after the workers have joined. ERR_UNAVAILABLE: the graph requires sums on devices, and a
 * worker, which is named, has no such device or library. */
static int join_devices(struct worker *worker, struct error *err)
{
    enum by_device by = find_exchanges(worker->options.graph).by_device;
    struct device *device = NULL;
    struct error missing = ERROR_INIT, unlike = ERROR_INIT;
    struct worker_device facts;
    struct tensor all = TENSOR_INIT;
    if (by == BY_DEVICE_NEVER)
        return 0;
    for (size_t i = 0; i < worker->devices.devices.n && !device; i++)
        if (worker->devices.devices.items[i]->communicators)
            device = worker->devices.devices.items[i];
    describe(worker, device, &facts, &missing);
    int code = gather(worker, "=devices", &facts.kind, DEVICE_COLUMNS, &all, err);
    bool alike = !code && !compare(worker, all.data, &missing, &unlike);
    if (alike) {
        struct communicator_place place = {.n = worker->collective->size,
                                           .rank = worker->collective->rank};
        memcpy(place.id, ((const struct worker_device *)all.data)->id, sizeof place.id);
        code = collective_links_add_on(worker->collective, device, &place, err);
    } else if (!code && by == BY_DEVICE_ALWAYS) {
        code = error_set(err, unlike.code, "%s", unlike.text);
    }
    tensor_release(&all);
    return code;
}

/* ---- the start ---- */

int worker_start_collective(struct worker *worker, struct driver *driver,
                            const struct worker_origin *origin, int64_t *counted, struct error *err)
{
    struct start start = {.graph = (int64_t)worker_hash_graph(worker->options.graph, 0),
                          .seed = (int64_t)driver->at_hand.seed,
                          .restores = origin->reader || origin->is_restored,
                          .step = origin->step,
                          .seen = origin->seen};
    int code = agree(worker, &start, err);
    if (!code)
        code = start.restores ? restore_all(worker, origin, err) : driver_initialize(driver, err);
    if (!code)
        code = verify(worker, err);
    if (!code)
        code = join_devices(worker, err);
    *counted = start.step;
    if (!code)
        collective_links_begin(worker->collective, start.step);
    collective_links_trim(worker->collective);
    if (code)
        collective_links_abort(worker->collective, err);
    return code ? error_prefix(err, "%s: ", worker->member.task) : 0;
}
