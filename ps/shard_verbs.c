/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of users about what a shard keeps, and about itself.
 */
#include <unistd.h>

#include "base/time.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

/* In a worker, steps stand still from here, unless it fails, to reading_ends. */
static int reading_begins(const struct shard_query *query, struct error *err)
{
    int64_t step;
    struct step_pause *steps = query->shard->steps;
    return steps ? step_pause_begin(steps, query->fields.seconds, &step, err) : 0;
}

static void reading_ends(const struct shard_query *query)
{
    if (query->shard->steps)
        step_pause_end(query->shard->steps);
}

/* ---- list ---- */

void shard_list(struct shard_query *query)
{
    const struct shard_fields *fields = &query->fields;
    const struct variable_place place = {fields->container, fields->name};
    variable_vec locked = VEC_INIT;
    struct error err = ERROR_INIT;
    if (!reading_begins(query, &err)) {
        containers_lock(query->shard->options.variables, &place, false, fields->seconds, &locked,
                        &err);
        reading_ends(query);
    }
    if (err.code)
        shard_reply_failure(query, &err);
    msgpack_packer *packer = err.code ? NULL : reply_begin(query->peer, query->id, 1);
    if (packer) {
        pack_key_array(packer, "variables", locked.n);
        for (size_t i = 0; i < locked.n; i++) {
            const struct variable *v = locked.items[i];
            const struct shape *shape = v->initialized ? &v->value.shape : &v->shape;
            msgpack_pack_map(packer, 6);
            pack_key_text(packer, "container", v->container);
            pack_key_text(packer, "name", v->name);
            pack_key_text(packer, "type", shape_text_typed(v->type, shape));
            pack_key_bool(packer, "initialized", v->initialized);
            pack_key_uint(packer, "updates", v->updates);
            pack_key_int(packer, "bytes", v->initialized ? (int64_t)tensor_bytes(&v->value) : 0);
        }
        reply_end(query->peer, NULL, 0);
    }
    containers_unlock(&locked, false);
    shard_query_free(query);
}

/* ---- get, put, reset ---- */

/* Returns false if the query was answered with an error. */
static bool check_name(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    if (query->fields.name && query->fields.container)
        return true;
    error_set(&err, ERR_PROTOCOL, "a request about a variable needs container and name");
    shard_query_end(query, NULL, &err);
    return false;
}

void shard_get(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    struct named_tensor found = {fields->name, TENSOR_INIT};
    if (!check_name(query))
        return;
    if (!reading_begins(query, &err)) {
        containers_get(query->shard->options.variables, fields->container, fields->name,
                       fields->seconds, &found.tensor, &err);
        reading_ends(query);
    }
    if (err.code) {
        shard_reply_failure(query, &err);
    } else {
        reply_tensors(query->peer, query->id, &found, 1);
        tensor_release(&found.tensor);
    }
    shard_query_free(query);
}

void shard_put(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    if (!check_name(query))
        return;
    if (query->value.type == DTYPE_INVALID)
        error_set(&err, ERR_PROTOCOL, "a request to put needs one tensor");
    else
        containers_put(query->shard->options.variables, fields->container, fields->name,
                       fields->seconds, &query->value, &err);
    shard_query_end(query, NULL, &err);
}

void shard_reset(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    struct shard_fields reply = {.origin.step = -1};
    int n = 0;
    if (!fields->container)
        error_set(&err, ERR_PROTOCOL, "a request to reset needs a container");
    else
        containers_reset(query->shard->options.variables, fields->container, fields->seconds, &n,
                         &err);
    reply.variables = n;
    shard_query_end(query, &reply, &err);
}

/* ---- status and stats: in the loop's thread; they never wait for a lock ---- */

void shard_status(void *context, const struct query *query)
{
    struct shard *shard = context;
    struct error failure = ERROR_INIT;
    struct clock *clock = containers_clock(shard->options.variables);
    const struct link_hello *self = peers_self(conns_peers(query->conns));
    struct clock_member workers[SHARD_WORKERS_MAX];
    int n = clock ? clock_workers(clock, workers, SHARD_WORKERS_MAX) : 0, joined = 0;
    for (int i = 0; i < n && i < SHARD_WORKERS_MAX; i++)
        joined += workers[i].joined && !workers[i].left;
    bool failed = clock && clock_has_failed(clock, &failure);
    msgpack_packer *packer = reply_begin(query->peer, query->id, 10);
    if (!packer)
        return;
    pack_key_text(packer, "task", shard->options.task);
    pack_key_uint(packer, "incarnation", self->incarnation);
    pack_key_int(packer, "pid", getpid());
    pack_key_float(packer, "seconds", time_now() - shard->began);
    pack_key_float(packer, "still", loop_longest_stillness(conns_loop(query->conns)));
    pack_key_int(packer, "version", clock ? clock_version(clock) : -1);
    pack_key_int(packer, "workers", joined);
    pack_key_text(packer, "failed", failed ? failure.text : "");
    pthread_mutex_lock(&shard->lock);
    pack_key_int(packer, "saved", shard->saved_step);
    pack_key_text(packer, "save_error", shard->save_text);
    pthread_mutex_unlock(&shard->lock);
    reply_end(query->peer, NULL, 0);
}

static void pack_workers(msgpack_packer *packer, struct clock *clock)
{
    struct clock_member workers[SHARD_WORKERS_MAX];
    int n = clock ? clock_workers(clock, workers, SHARD_WORKERS_MAX) : 0;
    if (n > SHARD_WORKERS_MAX)
        n = SHARD_WORKERS_MAX;
    pack_key_array(packer, "workers", (size_t)n);
    for (const struct clock_member *worker = workers; worker < workers + n; worker++) {
        msgpack_pack_map(packer, 11);
        pack_key_int(packer, "worker", worker->worker);
        pack_key_bool(packer, "here", worker->joined && !worker->left);
        pack_key_int(packer, "clock", worker->clock);
        pack_key_int(packer, "behind", worker->behind);
        pack_key_float(packer, "waited", worker->waited);
        pack_key_int(packer, "pushed", worker->pushed);
        pack_key_int(packer, "counted", worker->counted);
        pack_key_int(packer, "late", worker->late);
        pack_key_int(packer, "dropped", worker->dropped);
        pack_key_int(packer, "duplicate", worker->duplicate);
        pack_key_float(packer, "seen", worker->seen);
    }
}

struct traffic {
    int64_t links;
    uint64_t in, out;
    VEC(struct link *) tasks; /* to tasks, not to tools */
    size_t n_stuck;           /* links whose tasks' loops are stalled */
};

static void add_link(void *context, struct link *link)
{
    struct traffic *traffic = context;
    struct link_stats stats = link_stats(link);
    traffic->links++;
    traffic->in += stats.bytes_in + stats.shared_in;
    traffic->out += stats.bytes_out + stats.shared_out;
    if (!*link_peer(link)->task)
        return;
    vec_push(&traffic->tasks, link);
    traffic->n_stuck += link_stillness(link) > 0;
}

static struct resource_size size_of(const struct resource *r)
{
    struct resource_size size = {0};
    if (r->kind->size)
        r->kind->size(r->object, &size);
    return size;
}

/* More may be created meanwhile: only those counted first are reported. */
static void pack_resources(msgpack_packer *packer, struct variable_store *store)
{
    struct resource *r = NULL;
    uint32_t n = 0;
    while ((r = resource_next(store, r)))
        n++;
    pack_key_array(packer, "resources", n);
    for (uint32_t i = 0; i < n; i++) {
        r = resource_next(store, r);
        struct resource_size size = size_of(r);
        struct str name = STR_INIT, what = STR_INIT;
        str_printf(&name, "%s:%s", r->kind->name, r->name);
        r->kind->describe(r->object, &what);
        msgpack_pack_map(packer, 5);
        pack_key_text(packer, "container", r->container);
        pack_key_text(packer, "name", str_text(&name));
        pack_key_int(packer, "items", size.items);
        pack_key_int(packer, "bytes", size.bytes);
        pack_key_text(packer, "is", str_text(&what));
        str_release(&name);
        str_release(&what);
    }
}

static void pack_traffic(msgpack_packer *packer, const struct traffic *traffic)
{
    pack_key_int(packer, "links", traffic->links);
    pack_key_int(packer, "in", (int64_t)traffic->in);
    pack_key_int(packer, "out", (int64_t)traffic->out);
    pack_key_map(packer, "peers", traffic->tasks.n);
    for (size_t i = 0; i < traffic->tasks.n; i++)
        pack_key_float(packer, link_peer(traffic->tasks.items[i])->task,
                       link_silence(traffic->tasks.items[i]));
    pack_key_array(packer, "values", traffic->tasks.n);
    for (size_t i = 0; i < traffic->tasks.n; i++) {
        struct link_stats stats = link_stats(traffic->tasks.items[i]);
        msgpack_pack_map(packer, 3);
        pack_key_text(packer, "peer", link_peer(traffic->tasks.items[i])->task);
        pack_key_int(packer, "got", (int64_t)stats.values_in);
        pack_key_int(packer, "sent", (int64_t)stats.values_out);
    }
    pack_key_map(packer, "stuck", traffic->n_stuck);
    for (size_t i = 0; i < traffic->tasks.n; i++)
        if (link_stillness(traffic->tasks.items[i]) > 0)
            pack_key_float(packer, link_peer(traffic->tasks.items[i])->task,
                           link_stillness(traffic->tasks.items[i]));
}

void shard_stats(void *context, const struct query *query)
{
    struct shard *shard = context;
    struct traffic traffic = {0};
    struct clock *clock = containers_clock(shard->options.variables);
    struct peers *peers = conns_peers(query->conns);
    peers_each(peers, add_link, &traffic);
    struct resource_size staged = {0};
    for (struct resource *r = NULL; (r = resource_next(shard->options.variables, r));) {
        struct resource_size size = size_of(r);
        staged.bytes += size.bytes;
        staged.items += size.items;
    }
    msgpack_packer *packer = reply_begin(query->peer, query->id, 18);
    if (packer) {
        pack_traffic(packer, &traffic);
        pack_key_float(packer, "seconds", time_now() - shard->began);
        pack_key_float(packer, "still", loop_longest_stillness(conns_loop(query->conns)));
        pack_key_int(packer, "version", clock ? clock_version(clock) : -1);
        pack_key_int(packer, "staged", staged.items);
        pack_key_int(packer, "staged_bytes", staged.bytes);
        pack_key_uint(packer, "refused", peers_refused(peers));
        pthread_mutex_lock(&shard->lock);
        pack_key_int(packer, "saves", shard->saves);
        pack_key_int(packer, "saves_failed", shard->saves_failed);
        pack_key_int(packer, "failed_step", shard->failed_step);
        pack_key_text(packer, "failed_why", shard->failed_text);
        pthread_mutex_unlock(&shard->lock);
        pack_workers(packer, clock);
        pack_resources(packer, shard->options.variables);
        reply_end(query->peer, NULL, 0);
    }
    vec_release(&traffic.tasks);
}
