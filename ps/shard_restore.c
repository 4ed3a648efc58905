/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard goes back to a checkpoint: when it starts, or at a request. It reports how many counted
 * pushes that undoes.
 *
 * A checkpoint made by a different set of shards is restored later, as a shard learns only from a
 * graph which variables it has. Each variable or resource created then claims its value from the
 * checkpoint, whichever shard had saved it.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "checkpoint/store/save.h"
#include "checkpoint/variables/restore.h"
#include "checkpoint/variables/slices.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

struct teller {
    struct checkpoint_listener skipped; /* first */
    struct shard *shard;
};

static void say_skipped(struct checkpoint_listener *skipped, const char *why)
{
    char line[ERROR_TEXT_BYTES + 32];
    snprintf(line, sizeof line, "passed over: %s", why);
    shard_say(((struct teller *)skipped)->shard, line);
}

/* ---- values from a checkpoint ---- */

/* Reads the value of a variable; type DTYPE_INVALID: there is none. The caller releases it. */
static int read_variable(struct checkpoint *c, struct variable *variable, struct tensor *value,
                         uint64_t *updates, struct error *err)
{
    const struct variable like = {.container = variable->container,
                                  .name = variable->name,
                                  .type = variable->type,
                                  .shape = variable->shape,
                                  .slice = variable_get_slice(variable)};
    if (checkpoint_read_variable(c, &like, value, updates, err) == ERR_NOINPUT)
        error_clear(err);
    return err->code;
}

/* Loads all parts of an existing resource. */
static int load_resource(struct checkpoint *c, const struct resource *resource, struct error *err)
{
    struct str name = STR_INIT;
    str_printf(&name, "%s:%s/", resource->kind->name, resource->name);
    for (size_t i = 0; i < c->entries.n && !err->code; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        struct tensor value;
        if (!str_starts(t->name, name.data) || strchr(t->name + name.n, '/') ||
            strcmp(t->container, resource->container) || checkpoint_read(c, (int)i, &value, err))
            continue;
        if (resource->kind->restore(resource->object, t->name + name.n, &value, err))
            error_prefix(err, "%s: '%s': ", c->name, t->name);
        tensor_release(&value);
    }
    str_release(&name);
    return err->code;
}

/* ---- claims: with the lock ---- */

/* Closes the checkpoint until something is claimed again. Meanwhile the store can be written and
 * pruned, which may remove the checkpoint; then there is nothing left to claim. */
static void shut(struct shard_claims *claims)
{
    checkpoint_close(claims->checkpoint);
    store_close(claims->store);
    claims->checkpoint = NULL;
    claims->store = NULL;
}

static void unlock_claims(struct shard *shard)
{
    if (shard->n_written)
        shut(&shard->claims);
    pthread_mutex_unlock(&shard->claims_lock);
}

/* Returns false if there is nothing to claim: with an error if the checkpoint cannot be opened;
 * without one if it was pruned meanwhile. A missing store is an error, as an unmounted disk looks
 * the same. */
static bool open_claims(struct shard_claims *claims, struct error *err)
{
    error_clear(err);
    if (claims->checkpoint || !claims->folder)
        return claims->checkpoint;
    if (store_open(claims->folder, NULL, &claims->store, err))
        return false;
    if (!checkpoint_open(claims->store, claims->step, &claims->checkpoint, NULL, err))
        return true;
    shut(claims);
    if (err->code == ERR_NOINPUT)
        error_clear(err);
    return false;
}

int shard_claims_variable(struct variable_watcher *watcher, struct variable *variable,
                          struct error *err)
{
    struct shard *shard = (struct shard *)watcher;
    struct tensor value = TENSOR_INIT;
    uint64_t updates;
    pthread_mutex_lock(&shard->claims_lock);
    if (open_claims(&shard->claims, err) &&
        !read_variable(shard->claims.checkpoint, variable, &value, &updates, err) &&
        value.type != DTYPE_INVALID && !variable_put_in(variable, &value, err))
        variable->updates = updates;
    tensor_release(&value);
    unlock_claims(shard);
    return err->code;
}

void shard_claims_resource(struct shard *shard, const struct resource *resource)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&shard->claims_lock);
    if (open_claims(&shard->claims, &err))
        load_resource(shard->claims.checkpoint, resource, &err);
    if (err.code)
        shard_say(shard, err.text);
    unlock_claims(shard);
}

/* Takes ownership of both; NULL: from now on there is nothing to claim. */
static void set_claims(struct shard *shard, struct store *store, struct checkpoint *checkpoint)
{
    struct shard_claims *claims = &shard->claims;
    pthread_mutex_lock(&shard->claims_lock);
    shut(claims);
    mem_free(claims->folder);
    *claims = (struct shard_claims){.folder = NULL};
    if (store)
        *claims = (struct shard_claims){mem_strdup(store_name(store)), checkpoint->manifest.step,
                                        store, checkpoint};
    unlock_claims(shard);
}

void shard_claims_end(struct shard *shard)
{
    set_claims(shard, NULL, NULL);
}

void shard_claims_shut(struct shard *shard)
{
    pthread_mutex_lock(&shard->claims_lock);
    shut(&shard->claims);
    pthread_mutex_unlock(&shard->claims_lock);
}

struct store_opener {
    struct shard *shard;
    bool locked;
};

/* Nothing can be claimed until the store is open. */
static void make_way(void *context)
{
    struct store_opener *opening = context;
    pthread_mutex_lock(&opening->shard->claims_lock);
    opening->locked = true;
    shut(&opening->shard->claims);
}

int shard_open_store(struct shard *shard, const char *path, const struct store_options *options,
                     struct store **store, struct error *err)
{
    struct store_opener opening = {.shard = shard};
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

/* ---- counted pushes, and how many a restore undoes ---- */

/* A count of -1 is unknown, as the file is damaged. */
static void read_counts(const struct shard *shard, int64_t counts[PUSHES_WORKERS])
{
    for (int i = 0; i < PUSHES_WORKERS; i++)
        counts[i] = shard->pushes.counts ? pushes_read(&shard->pushes, i) : 0;
}

/* Writes the restored clock's counts into the file; all zero if there is no clock. */
static void write_counts(struct shard *shard)
{
    struct clock_member workers[SHARD_WORKERS_MAX];
    struct clock *clock = containers_clock(shard->options.variables);
    int n = clock ? clock_workers(clock, workers, SHARD_WORKERS_MAX) : 0;
    if (!shard->pushes.counts)
        return;
    for (int i = 0; i < PUSHES_WORKERS; i++)
        pushes_write(&shard->pushes, i, 0);
    for (int i = 0; i < n && i < SHARD_WORKERS_MAX; i++)
        if (workers[i].worker >= 0 && workers[i].worker < PUSHES_WORKERS)
            pushes_write(&shard->pushes, (int)workers[i].worker, workers[i].counted);
}

/* "; 3 pushes that had counted are undone (worker:0 2, worker:1 1)" */
static void print_undone(struct shard *shard, const int64_t before[PUSHES_WORKERS],
                         struct str *line)
{
    int64_t after[PUSHES_WORKERS], all = 0, damaged = 0;
    struct str each = STR_INIT;
    read_counts(shard, after);
    for (int i = 0; i < PUSHES_WORKERS; i++) {
        int64_t undone = before[i] - after[i];
        damaged += before[i] < 0;
        if (undone <= 0)
            continue;
        str_printf(&each, "%sworker:%d %" PRId64, all ? ", " : "", i, undone);
        all += undone;
    }
    if (all)
        str_printf(line, "; %" PRId64 " push%s that had counted %s undone (%s)", all,
                   all == 1 ? "" : "es", all == 1 ? "is" : "are", str_text(&each));
    if (damaged)
        str_printf(line, "; of %" PRId64 " workers it is not known: the file 'pushes' is damaged",
                   damaged);
    str_release(&each);
}

/* Says "restored from ckpt@300" for "a/ckpt/", and how many counted pushes that undoes. */
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
        shard_say(shard, str_text(&line));
    str_release(&line);
    mem_free(copy);
}

/* ---- restoring ---- */

struct restorer {
    struct shard *shard;
    bool is_wanted; /* another shard has decided on the checkpoint */
    struct checkpoint *checkpoint;
    bool is_own; /* it was saved by the same set of shards */
    variable_vec locked;
    struct tensor *values; /* of the locked variables */
    uint64_t *updates;
};

static bool is_of_shard(const struct restorer *r)
{
    const struct ckpt_manifest *m = &r->checkpoint->manifest;
    const struct shard_options *options = &r->shard->options;
    size_t n = 0;
    struct cluster cluster = {0};
    struct error ignored = ERROR_INIT;
    if (!options->find_cluster || options->find_cluster(options->context, &cluster, &ignored))
        n = 1;
    vec_each(task, &cluster.tasks)
        n += shard_is_of_job(r->shard, task);
    cluster_release(&cluster);
    return n == m->shards.n && vec_find(&m->shards, r->shard->name) < n;
}

/* Creates the missing variables. */
static int make_variables(struct restorer *r, struct error *err)
{
    vec_each(entry, &r->checkpoint->entries) {
        struct variable like = {.container = entry->tensor->container,
                                .name = entry->tensor->name,
                                .type = entry->tensor->type,
                                .shape = entry->tensor->shape,
                                .slice = entry->tensor->slice,
                                .device = r->shard->options.device},
                        *variable;
        if (r->is_own && !strcmp(entry->shard, r->shard->name) && !resource_is_part(like.name) &&
            variable_store_get(r->shard->options.variables, &like, &variable, err))
            return error_prefix(err, "%s: ", r->checkpoint->name);
    }
    return 0;
}

static int restore_variables(struct restorer *r, double seconds, struct error *err)
{
    struct variable_store *store = r->shard->options.variables;
    if (!make_variables(r, err) && !containers_lock(store, NULL, true, seconds, &r->locked, err)) {
        r->values = mem_array(r->locked.n + 1, sizeof *r->values);
        r->updates = mem_array(r->locked.n + 1, sizeof *r->updates);
    }
    for (size_t i = 0; i < r->locked.n && !err->code; i++)
        read_variable(r->checkpoint, r->locked.items[i], &r->values[i], &r->updates[i], err);
    /* All was read, so variables may be changed now. One that the checkpoint lacks is left without
     * a value. */
    for (size_t i = 0; i < r->locked.n && !err->code; i++) {
        variable_clear(r->locked.items[i]); /* an open dimension may differ now */
        if (r->values[i].type != DTYPE_INVALID)
            variable_put_in(r->locked.items[i], &r->values[i], err);
        r->locked.items[i]->updates = r->updates[i];
    }
    for (size_t i = 0; r->values && i < r->locked.n; i++)
        tensor_release(&r->values[i]);
    mem_free(r->values);
    mem_free(r->updates);
    containers_unlock(&r->locked, true);
    return err->code;
}

static int restore_open(struct restorer *r, double seconds, struct error *err)
{
    r->is_own = is_of_shard(r);
    const struct checkpoint *c = r->checkpoint;
    struct variable_store *store = r->shard->options.variables;
    struct resource *resource = NULL;
    bool has_clock = false;
    for (size_t i = 0; i < c->entries.n; i++)
        has_clock = has_clock || str_starts(c->entries.items[i].tensor->name, "clock:");
    shard_react(r->shard, r->is_own || !has_clock ? SHARD_WHOLE : SHARD_PART);
    if (restore_variables(r, seconds, err))
        return err->code;
    /* With the same shards, creates its resources; else existing ones get the saved parts. */
    if (r->is_own)
        return checkpoint_load_resources(r->checkpoint, r->shard->name, store, err);
    while (!err->code && (resource = resource_next(store, resource)))
        load_resource(r->checkpoint, resource, err);
    return err->code;
}

/* Makes a new decision, without a checkpoint yet. ERR_OS: the system has no random bits. */
static int decide(struct shard_origin *origin, struct error *err)
{
    *origin = (struct shard_origin){.step = -1};
    if (getrandom(&origin->decision, sizeof origin->decision, 0) != sizeof origin->decision)
        return error_set_errno(err, ERR_OS, "getrandom");
    origin->decision |= 1; /* zero means none */
    return 0;
}

/* Checks that the checkpoint found is the one that was decided on. ERR_RETRY. */
static int check_origin(const struct shard_origin *origin, const struct checkpoint *found,
                        struct error *err)
{
    const struct ckpt_manifest *m = &found->manifest;
    struct str wanted = STR_INIT, there = STR_INIT;
    if (run_equal(&origin->run, &m->run) && origin->sequence == m->sequence &&
        digest_equal(&origin->manifest, &m->digest))
        return 0;
    run_print(&origin->run, &wanted);
    run_print(&m->run, &there);
    error_set(err, ERR_RETRY,
              "%s: is number %" PRId64 " of run %s; the first shard goes on from number %" PRId64
              " of run %s",
              found->name, m->sequence, there.data, origin->sequence, wanted.data);
    str_release(&wanted);
    str_release(&there);
    return err->code;
}

/* Opens the checkpoint to be restored. The shard that decides reads every byte of the newest, for
 * all shards. The others only find the chosen one, and each reads its own part. */
static int open_origin(struct restorer *r, struct store *store, int64_t step,
                       struct shard_origin *origin, struct error *err)
{
    struct teller teller = {{.tell = say_skipped}, r->shard};
    if (!r->is_wanted)
        return checkpoint_open_intact(store, step, &teller.skipped, &r->checkpoint, err);
    if (!checkpoint_open(store, origin->step, &r->checkpoint, NULL, err) &&
        check_origin(origin, r->checkpoint, err))
        checkpoint_close(r->checkpoint);
    return err->code;
}

/* `origin` is the wanted checkpoint, or gets the one found. */
static int restore(struct restorer *r, const char *folder, int64_t step, double seconds,
                   struct shard_origin *origin, struct error *err)
{
    struct shard *shard = r->shard;
    struct store *store;
    int64_t before[PUSHES_WORKERS];
    read_counts(shard, before);
    shard_claims_end(shard);
    if (store_open(folder, NULL, &store, err))
        return err->code;
    if (open_origin(r, store, step, origin, err)) {
        store_close(store);
        return err->code;
    }
    const struct ckpt_manifest *manifest = &r->checkpoint->manifest;
    if (!manifest->n_tensors)
        error_set(err, ERR_DATA, "%s: there is no variable in it to go on from",
                  r->checkpoint->name);
    if (!err->code && !restore_open(r, seconds, err)) {
        origin->step = manifest->step;
        origin->sequence = manifest->sequence;
        origin->run = manifest->run;
        origin->manifest = manifest->digest;
        write_counts(shard);
        say_restored(shard, folder, origin->step, before);
    }
    if (!r->is_own && !err->code) {
        set_claims(shard, store, r->checkpoint);
        return 0;
    }
    checkpoint_close(r->checkpoint);
    store_close(store);
    return err->code;
}

int shard_resume(struct shard *shard, const char *folder, const struct shard_origin *wanted,
                 int64_t *restored, struct error *err)
{
    const struct store_options options = {
        .write = true, .lock_wait = SHARD_LOCK_SECONDS, .owner = "tf-ps"};
    struct restorer r = {.shard = shard, .is_wanted = wanted};
    int64_t before[PUSHES_WORKERS];
    struct shard_origin origin;
    *restored = -1;
    read_counts(shard, before);
    if (wanted)
        origin = *wanted;
    else if (!decide(&origin, err) && store_take_over(folder, &options, shard->options.claims,
                                                      &origin.generation, err) == ERR_NOINPUT)
        error_clear(err); /* a missing store is not taken over */
    if (!wanted && err->code)
        return err->code;
    bool is_there = !wanted || wanted->step >= 0;
    int code = is_there ? restore(&r, folder, -1, SHARD_WAIT_SECONDS, &origin, err) : 0;
    if (code && (wanted || code != ERR_NOINPUT))
        return code;
    error_clear(err);
    if (origin.step >= 0) {
        shard_go_on_with(shard, &(struct store_writer){.run = origin.run, .goes_on = true});
    } else {
        write_counts(shard);
        say_restored(shard, folder, -1, before);
    }
    *restored = origin.step;
    shard_set_origin(shard, &origin, false);
    return 0;
}

/* Values of another run may continue as this run. The shard that is asked first decides, the others
 * are told. */
void shard_restore(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    struct shard *shard = query->shard;
    const struct shard_fields *fields = &query->fields;
    struct restorer r = {.shard = shard, .is_wanted = fields->origin.decision};
    struct shard_fields reply = {.origin = fields->origin};
    struct shard_origin *origin = &reply.origin;
    const char *folder = fields->folder ? fields->folder : shard->options.save_folder;
    if (!folder)
        error_set(&err, ERR_USAGE, "no folder to restore from");
    else if (shard_react(shard, SHARD_RESTORE) == SHARD_REFUSE)
        error_set(&err, ERR_UNAVAILABLE, "%s ends", shard->options.task);
    else if ((r.is_wanted || !decide(origin, &err)) &&
             !restore(&r, folder, fields->origin.step, fields->seconds, origin, &err)) {
        origin->generation = shard_origin(shard).generation;
        shard_set_origin(shard, origin, true);
    }
    atomic_store(&shard->due, 0); /* the next due version is counted from the clock's */
    shard_query_end(query, &reply, &err);
}
