/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard goes back to a checkpoint: when it starts, or at a request.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "checkpoint/variables/restore.h"
#include "ps/claims.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

struct teller {
    struct checkpoint_skipped skipped; /* first */
    struct shard *shard;
};

static void say(struct shard *shard, const char *line)
{
    if (shard->options.tell)
        shard->options.tell(shard->options.context, line);
}

static void say_skipped(struct checkpoint_skipped *skipped, const char *why)
{
    char line[ERROR_TEXT_BYTES + 32];
    snprintf(line, sizeof line, "passed over: %s", why);
    say(((struct teller *)skipped)->shard, line);
}

/* ---- what is undone ---- */

static void read_counts(const struct shard *shard, int64_t counts[PUSHES_WORKERS])
{
    for (int i = 0; i < PUSHES_WORKERS; i++)
        counts[i] = shard->pushes.counts ? atomic_load(&shard->pushes.counts[i]) : 0;
}

/* Those of the clock that was restored, into the file; all zero if there is none. */
static void write_counts(struct shard *shard)
{
    struct clock_worker workers[SHARD_WORKERS_MAX];
    struct clock *clock = shard_clock(shard);
    int n = clock ? clock_workers(clock, workers, SHARD_WORKERS_MAX) : 0;
    if (!shard->pushes.counts)
        return;
    for (int i = 0; i < PUSHES_WORKERS; i++)
        atomic_store(&shard->pushes.counts[i], 0);
    for (int i = 0; i < n && i < SHARD_WORKERS_MAX; i++)
        if (workers[i].worker >= 0 && workers[i].worker < PUSHES_WORKERS)
            atomic_store(&shard->pushes.counts[workers[i].worker], workers[i].counted);
}

/* "; 3 pushes that had counted are undone (worker:0 2, worker:1 1)" */
static void print_undone(struct shard *shard, const int64_t before[PUSHES_WORKERS],
                         struct str *line)
{
    int64_t after[PUSHES_WORKERS], all = 0;
    struct str each = STR_INIT;
    read_counts(shard, after);
    for (int i = 0; i < PUSHES_WORKERS; i++) {
        int64_t undone = before[i] - after[i];
        if (undone <= 0)
            continue;
        str_printf(&each, "%sworker:%d %" PRId64, all ? ", " : "", i, undone);
        all += undone;
    }
    if (all)
        str_printf(line, "; %" PRId64 " push%s that had counted %s undone (%s)", all,
                   all == 1 ? "" : "es", all == 1 ? "is" : "are", str_text(&each));
    str_release(&each);
}

/* "restored from ckpt@300" of "a/ckpt/" */
static void say_restored(struct shard *shard, const char *folder, int64_t step,
                         const int64_t before[PUSHES_WORKERS])
{
    struct str line = STR_INIT;
    char *copy = mem_strdup(folder);
    if (step >= 0)
        str_printf(&line, "restored from %s@%" PRId64, basename(copy), step);
    else
        str_printf(&line, "%s: no checkpoint there", basename(copy));
    size_t n = line.n;
    print_undone(shard, before, &line);
    if (step >= 0 || line.n > n)
        say(shard, str_text(&line));
    str_release(&line);
    mem_free(copy);
}

/* ---- variables whose shard is known when a graph comes ---- */

/* With the lock. */
static void shut(struct shard *shard)
{
    if (shard->claims)
        claims_shut(shard->claims);
}

static void unlock_claims(struct shard *shard)
{
    if (shard->n_written)
        shut(shard);
    pthread_mutex_unlock(&shard->claims_lock);
}

static int variable_made(struct variable_watcher *watcher, struct variable *variable,
                         struct error *err)
{
    struct shard *shard = CONTAINER_OF(watcher, struct shard, variable_watcher);
    pthread_mutex_lock(&shard->claims_lock);
    int code = shard->claims ? claims_variable(shard->claims, variable, err) : 0;
    unlock_claims(shard);
    return code;
}

void shard_claims_watch(struct shard *shard)
{
    shard->variable_watcher.made = variable_made;
    variable_watch(shard->options.variables, &shard->variable_watcher);
}

void shard_claims_resource(struct shard *shard, const struct resource *resource)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&shard->claims_lock);
    if (shard->claims && claims_resource(shard->claims, resource, &err))
        say(shard, err.text);
    unlock_claims(shard);
}

static void set_claims(struct shard *shard, struct claims *claims)
{
    pthread_mutex_lock(&shard->claims_lock);
    struct claims *old = shard->claims;
    shard->claims = claims;
    unlock_claims(shard);
    claims_free(old);
}

void shard_claims_end(struct shard *shard)
{
    set_claims(shard, NULL);
}

void shard_claims_shut(struct shard *shard)
{
    pthread_mutex_lock(&shard->claims_lock);
    shut(shard);
    pthread_mutex_unlock(&shard->claims_lock);
}

struct opening {
    struct shard *shard;
    bool locked;
};

/* Nothing is claimed until the store is open. */
static void make_way(void *context)
{
    struct opening *opening = context;
    pthread_mutex_lock(&opening->shard->claims_lock);
    opening->locked = true;
    shut(opening->shard);
}

int shard_open_store(struct shard *shard, const char *path, const struct store_options *options,
                     struct store **store, struct error *err)
{
    struct opening opening = {.shard = shard};
    struct store_options own = *options;
    own.make_way = make_way;
    own.context = &opening;
    int code = store_open(path, &own, store, err);
    if (opening.locked) {
        shard->n_written += !code;
        pthread_mutex_unlock(&shard->claims_lock);
    }
    return code;
}

void shard_close_store(struct shard *shard, struct store *store)
{
    pthread_mutex_lock(&shard->claims_lock);
    store_close(store);
    shard->n_written--;
    pthread_mutex_unlock(&shard->claims_lock);
}

/* ---- restoring ---- */

struct restoring {
    struct shard *shard;
    struct checkpoint *checkpoint;
    char name[SHARD_NAME_BYTES];
    bool is_own; /* the shards that have saved are those of today */
    variable_vec locked;
    struct tensor *values; /* of those that are locked */
    uint64_t *updates;
};

static bool is_own(const struct restoring *r)
{
    const struct ckpt_manifest *m = &r->checkpoint->manifest;
    const struct shard_options *options = &r->shard->options;
    const char *colon = strchr(options->task, ':');
    size_t job = colon ? (size_t)(colon - options->task) : strlen(options->task), n = 0;
    struct cluster cluster = {0};
    struct error ignored = ERROR_INIT;
    bool listed = false;
    for (size_t i = 0; i < m->shards.n; i++)
        listed = listed || !strcmp(m->shards.items[i].name, r->name);
    if (!options->find_cluster || options->find_cluster(options->context, &cluster, &ignored))
        n = 1;
    for (size_t i = 0; i < cluster.tasks.n; i++)
        n += strlen(cluster.tasks.items[i].job) == job &&
             !strncmp(cluster.tasks.items[i].job, options->task, job);
    cluster_release(&cluster);
    return listed && n == m->shards.n;
}

static bool is_mine(const struct restoring *r, const struct checkpoint_entry *entry)
{
    return r->is_own && !strcmp(entry->shard, r->name);
}

/* Makes the variables that are not there. */
static int make_variables(struct restoring *r, struct error *err)
{
    for (size_t i = 0; i < r->checkpoint->entries.n; i++) {
        const struct checkpoint_entry *entry = &r->checkpoint->entries.items[i];
        struct variable like = {.container = entry->tensor->container,
                                .name = entry->tensor->name,
                                .type = entry->tensor->type,
                                .shape = entry->tensor->shape,
                                .slice = entry->tensor->slice,
                                .device = r->shard->options.device},
                        *variable;
        if (is_mine(r, entry) && !resource_is_part(like.name) &&
            variable_store_get(r->shard->options.variables, &like, &variable, err))
            return error_prefix(err, "%s: ", r->checkpoint->name);
    }
    return 0;
}

/* Nothing is changed before all is read. */
static int read_values(struct restoring *r, struct error *err)
{
    r->values = mem_array(r->locked.n + 1, sizeof *r->values);
    r->updates = mem_array(r->locked.n + 1, sizeof *r->updates);
    for (size_t i = 0; i < r->locked.n && !err->code; i++)
        claims_read(r->checkpoint, r->locked.items[i], &r->values[i], &r->updates[i], err);
    return err->code;
}

/* What the checkpoint lacks has no value then. */
static int put_values(struct restoring *r, struct error *err)
{
    for (size_t i = 0; i < r->locked.n && !err->code; i++) {
        variable_clear(r->locked.items[i]); /* a dimension left open may be another now */
        if (r->values[i].type != DTYPE_INVALID)
            variable_copy_in(r->locked.items[i], &r->values[i], err);
        r->locked.items[i]->updates = r->updates[i];
    }
    return err->code;
}

static int restore_variables(struct restoring *r, double seconds, struct error *err)
{
    struct variable_store *store = r->shard->options.variables;
    if (!make_variables(r, err) && !containers_lock(store, NULL, true, seconds, &r->locked, err) &&
        !read_values(r, err))
        put_values(r, err);
    for (size_t i = 0; r->values && i < r->locked.n; i++)
        tensor_release(&r->values[i]);
    mem_free(r->values);
    mem_free(r->updates);
    containers_unlock(&r->locked, true);
    return err->code;
}

/* Those of this shard are made; others that are there get what the checkpoint has for them. */
static int restore_resources(struct restoring *r, struct error *err)
{
    struct variable_store *store = r->shard->options.variables;
    struct resource *resource = NULL;
    if (r->is_own)
        return checkpoint_load_resources(r->checkpoint, r->name, store, err);
    while (!err->code && (resource = resource_next(store, resource)))
        claims_load(r->checkpoint, resource, err);
    return err->code;
}

static bool has_clock(const struct checkpoint *c)
{
    bool has = false;
    for (size_t i = 0; i < c->entries.n; i++)
        has = has || str_starts(c->entries.items[i].tensor->name, "clock:");
    return has;
}

static int restore_open(struct restoring *r, double seconds, struct error *err)
{
    shard_name(r->shard->options.task, r->name);
    r->is_own = is_own(r);
    atomic_store(&r->shard->awaits_workers, !r->is_own && has_clock(r->checkpoint));
    return restore_variables(r, seconds, err) ? err->code : restore_resources(r, err);
}

struct origin { /* what was restored */
    int64_t step;
    struct ckpt_run run;
};

static int restore(struct shard *shard, const char *folder, int64_t step, double seconds,
                   struct origin *origin, struct error *err)
{
    struct teller teller = {{say_skipped}, shard};
    struct restoring r = {.shard = shard};
    struct store *store;
    int64_t before[PUSHES_WORKERS];
    read_counts(shard, before);
    shard_claims_end(shard);
    if (store_open(folder, NULL, &store, err))
        return err->code;
    if (checkpoint_open_intact(store, step, &teller.skipped, &r.checkpoint, err)) {
        store_close(store);
        return err->code;
    }
    if (!restore_open(&r, seconds, err)) {
        *origin = (struct origin){r.checkpoint->manifest.step, r.checkpoint->manifest.run};
        write_counts(shard);
        say_restored(shard, folder, origin->step, before);
    }
    struct claims *claims = claims_new(store, r.checkpoint);
    if (r.is_own || err->code)
        claims_free(claims);
    else
        set_claims(shard, claims);
    return err->code;
}

int shard_resume(struct shard *shard, const char *folder, int64_t step, int64_t *restored,
                 struct error *err)
{
    int64_t before[PUSHES_WORKERS];
    struct origin origin;
    *restored = -1;
    read_counts(shard, before);
    int code = restore(shard, folder, step, SHARD_WAIT_SECONDS, &origin, err);
    if (!code) {
        *restored = origin.step;
        shard_go_on_with(shard, &origin.run);
    }
    if (code != ERR_NOINPUT || step >= 0)
        return code;
    error_clear(err);
    write_counts(shard);
    say_restored(shard, folder, -1, before);
    return 0;
}

void shard_restore(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    struct origin origin = {.step = -1}; /* the values of another run may go on as this one */
    const char *folder = query->folder ? query->folder : query->shard->options.save_folder;
    if (!folder)
        error_set(&err, ERR_USAGE, "no folder to restore from");
    else
        restore(query->shard, folder, query->step, query->seconds, &origin, &err);
    atomic_store(&query->shard->first_stop, 0);
    query->shard->due = 0; /* what is due next is counted from where the clock is now */
    shard_query_end_step(query, origin.step, &err);
}
