/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/restore.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "checkpoint/formats/export.h"
#include "checkpoint/variables/slices.h"
#include "graph/holders.h"
#include "resource/kinds.h"

/* Returns the pair that applies to a variable; -1: none does. */
static int find_pair(const struct restore_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *pair = names->pairs[i];
        size_t n = (size_t)(strchr(pair, '=') - pair);
        if (!strncmp(name, pair, n) && (pair[n - 1] == '/' || !name[n]))
            return (int)i;
    }
    return -1;
}

static bool is_used(const struct restore_names *names, int pair, const struct graph *graph)
{
    graph_each(node, graph) {
        if (!node_is(node, "Variable"))
            continue;
        struct variable like = variable_of_node(node, NULL);
        if (find_pair(names, like.name) == pair ||
            (like.slice.of && find_pair(names, like.slice.of) == pair))
            return true;
    }
    return false;
}

int restore_check_names(const struct restore_names *names, const struct graph *graph,
                        struct error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *pair = names->pairs[i], *equals = strchr(pair, '=');
        if (!equals || equals == pair || !equals[1] ||
            (equals[-1] == '/') != (equals[strlen(equals) - 1] == '/'))
            return error_set(err, ERR_USAGE, "--restore-as %s: it is NEW=OLD or NEW/=OLD/", pair);
    }
    for (size_t i = 0; i < names->n; i++)
        if (!is_used(names, (int)i, graph))
            return error_set(err, ERR_USAGE, "--restore-as %s: no variable of the graph is meant",
                             names->pairs[i]);
    return 0;
}

/* Returns a variable's name in the checkpoint. */
static const char *old_name(const struct restore_names *names, const char *name,
                            struct arena *arena)
{
    int i = find_pair(names, name);
    if (i < 0)
        return name;
    const char *pair = names->pairs[i], *old = strchr(pair, '=') + 1;
    return old[-2] == '/' ? arena_printf(arena, "%s%s", old, name + (old - 1 - pair)) : old;
}

struct variable restore_variable(const struct node *node, const struct restore_names *names,
                                 struct arena *arena)
{
    struct variable like = variable_of_node(node, NULL);
    like.name = old_name(names, like.name, arena);
    if (like.slice.of)
        like.slice.of = old_name(names, like.slice.of, arena);
    return like;
}

struct restoring {
    const struct restore_names *names;
    struct arena arena;
};

static struct variable saved_as(void *context, const struct node *node)
{
    struct restoring *restoring = context;
    return restore_variable(node, restoring->names, &restoring->arena);
}

/* A stream, which has no context, contains the variables that there are. */
static bool may_lack(void *context, const struct node *node)
{
    return !context || !holders_must_save(node);
}

int checkpoint_load_resources(struct checkpoint *c, const char *shard,
                              struct variable_store *variables, struct error *err)
{
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        struct tensor value;
        if (!resource_is_part(t->name) || (shard && strcmp(c->entries.items[i].shard, shard) != 0))
            continue;
        if (checkpoint_read(c, (int)i, &value, err))
            return err->code;
        if (resource_restore(variables, resource_kinds, t->container, t->name, &value, err))
            error_prefix(err, "%s: ", c->name);
        tensor_release(&value);
        if (err->code)
            return err->code;
    }
    return 0;
}

static int restore_step(struct store *store, int64_t step, const struct restore_request *request,
                        struct restore_result *restored, struct error *err)
{
    struct checkpoint *c;
    saved_variables saved = VEC_INIT;
    struct error passed_over = ERROR_INIT;
    if (checkpoint_open(store, step, &c, &passed_over, err))
        return err->code;
    restored->step = c->manifest.step;
    restored->run = c->manifest.run;
    if (!restored->passed_over.code)
        restored->passed_over = passed_over;
    struct restoring restoring = {&request->names, ARENA_INIT};
    const struct load_request wanted = {request->graph, saved_as, may_lack, NULL, &restoring};
    restored->fits = !checkpoint_load_variables(c, &wanted, NULL, err);
    if (restored->fits && !checkpoint_load_variables(c, &wanted, &saved, err) &&
        !checkpoint_load_resources(c, NULL, request->variables, err))
        for (size_t i = 0; i < saved.n && !err->code; i++)
            variable_put(request->variables, &saved.items[i], request->device, err);
    saved_release(&saved);
    arena_release(&restoring.arena);
    checkpoint_close(c);
    return err->code;
}

int store_restore(struct store *store, int64_t step, const struct restore_request *request,
                  struct restore_result *restored, struct error *err)
{
    *restored = (struct restore_result){0};
    error_clear(err);
    int code = restore_step(store, step, request, restored, err);
    if (step != CHECKPOINT_NEWEST || !restored->fits || !checkpoint_is_damaged(err))
        return code; /* a graph that does not fit does not mean damage */
    /* Tries the ones before the newest, until one is intact. */
    manifest_vec all;
    struct error first = *err, other = ERROR_INIT;
    bool found = false;
    if (store_manifests(store, &all, NULL, &other))
        return err->code;
    restored->passed_over = first;
    for (size_t i = all.n; i-- > 0 && !found;) {
        error_clear(&other);
        found = !restore_step(store, all.items[i].step, request, restored, &other);
        if (!found && !checkpoint_is_damaged(&other) && other.code != ERR_NOINPUT)
            break;
    }
    manifests_release(&all);
    if (found)
        error_clear(err);
    else
        *err = checkpoint_is_damaged(&other) || other.code == ERR_NOINPUT ? first : other;
    return err->code;
}

/* ---- as a stream ---- */

/* Returns a file in memory, as a reader passes all of it on; -1: an error. */
static int open_memory(const char *name, struct error *err)
{
    int fd = memfd_create("checkpoint", MFD_CLOEXEC);
    if (fd < 0)
        error_set_errno(err, ERR_OS, "%s", name);
    return fd;
}

/* Reads what was written to the file from its beginning; closes it if that failed. */
static int read_memory(int fd, const char *name, struct stream_reader **reader, struct error *err)
{
    if (!err->code && lseek(fd, 0, SEEK_SET) < 0)
        error_set_errno(err, ERR_OS, "%s", name);
    if (!err->code)
        stream_reader_own_file(*reader = stream_reader_new(fd, name));
    else
        close_if_open(fd);
    return err->code;
}

int store_stream(const char *path, int64_t step, const struct graph *graph,
                 struct stream_reader **reader, struct error *passed_over, struct error *err)
{
    struct checkpoint_listener skipped = {.first = ERROR_INIT};
    struct store *store;
    struct checkpoint *c;
    saved_variables saved = VEC_INIT;
    error_clear(passed_over);
    if (store_open(path, NULL, &store, err))
        return err->code;
    if (!checkpoint_open_intact(store, step, &skipped, &c, err)) {
        *passed_over = skipped.first;
        const struct load_request wanted = {.graph = graph, .may_lack = may_lack};
        if (!checkpoint_load_variables(c, &wanted, &saved, err)) {
            int fd = open_memory(c->name, err);
            struct stream_writer *writer =
                fd < 0 ? NULL : stream_writer_new(fd, c->name, "tf-tools", (int64_t)saved.n);
            for (size_t i = 0; i < saved.n && !err->code; i++)
                variable_write(&saved.items[i], c->manifest.step, writer, err);
            if (!err->code)
                stream_finish(writer, err);
            stream_writer_free(writer);
            read_memory(fd, c->name, reader, err);
        }
        saved_release(&saved);
        checkpoint_close(c);
    }
    store_close(store);
    return err->code;
}

int archive_stream(const char *path, struct stream_reader **reader, struct error *err)
{
    struct source source;
    if (source_open(path, &source, err))
        return err->code;
    int fd = open_memory(path, err);
    if (fd >= 0)
        source_write_records(&source, fd, path, "tf-tools", err);
    read_memory(fd, path, reader, err);
    source_close(&source);
    return err->code;
}
