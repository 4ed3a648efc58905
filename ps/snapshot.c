/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "exec/aggregate.h"
#include "exec/device.h"
#include "ps/containers.h"
#include "ps/durable.h"
#include "wire/record.h"

struct saved_value {
    const char *container, *name;
    struct tensor value;
    uint64_t updates;
};

struct snapshot {
    int64_t step;
    VEC(struct saved_value) entries;
    struct arena arena;
};

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    for (size_t i = 0; i < snapshot->entries.n; i++)
        tensor_release(&snapshot->entries.items[i].value);
    vec_release(&snapshot->entries);
    arena_release(&snapshot->arena);
    mem_free(snapshot);
}

/* ---- taking ---- */

static int copy_one(struct snapshot *snapshot, struct variable *variable, struct error *err)
{
    struct saved_value entry = {arena_strdup(&snapshot->arena, variable->container),
                                arena_strdup(&snapshot->arena, variable->name), TENSOR_INIT,
                                variable->updates};
    if (!variable->initialized)
        return 0;
    if (container_copy_out(variable, &entry.value, err))
        return err->code;
    vec_push(&snapshot->entries, entry);
    return 0;
}

/* Parts of resources become values beside those of variables. */
struct part_writer {
    struct resource_writer writer; /* first */
    struct snapshot *snapshot;
    bool clocks; /* this time around clocks alone, or all but them */
};

static int take_part(struct resource_writer *writer, const char *container, const char *name,
                     const struct tensor *value, struct error *err)
{
    struct part_writer *parts = (struct part_writer *)writer;
    struct arena *arena = &parts->snapshot->arena;
    struct saved_value saved = {.container = arena_strdup(arena, container),
                                .name = arena_strdup(arena, name)};
    if (str_starts(name, clock_kind.name) != parts->clocks)
        return 0;
    if (tensor_copy(&saved.value, value, err))
        return err->code;
    vec_push(&parts->snapshot->entries, saved);
    return 0;
}

/* Clocks first: of a push that a clock knows of the aggregators have all values, and still have
 * them when they are copied after it. */
static int take_resources(struct variable_store *store, struct snapshot *snapshot,
                          struct error *err)
{
    struct part_writer parts = {{take_part}, snapshot, true};
    int code = resources_save(store, &parts.writer, err);
    parts.clocks = false;
    return code ? code : resources_save(store, &parts.writer, err);
}

int snapshot_take(struct variable_store *store, int64_t step, double seconds,
                  struct snapshot **taken, struct error *err)
{
    variable_vec held = VEC_INIT;
    struct snapshot *snapshot = mem_alloc(sizeof *snapshot);
    snapshot->step = step;
    int code = containers_hold(store, NULL, false, seconds, &held, err);
    for (size_t i = 0; !code && i < held.n; i++)
        code = copy_one(snapshot, held.items[i], err);
    containers_unhold(&held, false);
    if (!code)
        code = take_resources(store, snapshot, err);
    if (code) {
        snapshot_free(snapshot);
        return code;
    }
    *taken = snapshot;
    return 0;
}

/* ---- writing ---- */

static int write_entry(const struct saved_value *entry, int64_t step, struct stream_writer *writer,
                       struct error *err)
{
    struct named_tensor t = {entry->name, entry->value};
    msgpack_packer *packer = stream_begin(writer, RECORD_TENSOR, 3);
    pack_key(packer, "container");
    pack_text(packer, entry->container);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, step);
    pack_key(packer, "updates");
    msgpack_pack_uint64(packer, entry->updates);
    return stream_write(writer, &t, 1, err);
}

static int write_entries(const struct snapshot *snapshot, int fd, const char *path,
                         struct error *err)
{
    struct stream_writer *writer =
        stream_writer_new(fd, path, "tf-ps", (int64_t)snapshot->entries.n);
    int code = 0;
    for (size_t i = 0; !code && i < snapshot->entries.n; i++)
        code = write_entry(&snapshot->entries.items[i], snapshot->step, writer, err);
    if (!code)
        code = stream_finish(writer, err);
    stream_writer_free(writer);
    return code;
}

int snapshot_write(const struct snapshot *snapshot, const char *folder, const char *name,
                   struct manifest_file *written, struct error *err)
{
    struct durable file;
    if (durable_open(&file, folder, name, err))
        return err->code;
    *written = (struct manifest_file){.name = name};
    int code = write_entries(snapshot, file.fd, file.path, err);
    if (!code)
        code = manifest_digest(file.temporary, &written->bytes, written->digest, err);
    if (!code)
        return durable_commit(&file, err);
    durable_discard(&file);
    return code;
}

/* ---- restoring ---- */

static int take_record(struct snapshot *snapshot, const struct record *record, struct error *err)
{
    const char *container = "default";
    int64_t updates = 0;
    if (record->kind != RECORD_TENSOR || record->n_tensors != 1)
        return error_set(err, ERR_DATA, "a %s record among the variables",
                         record_kind_name(record->kind));
    record_get_text(&record->header, "container", &snapshot->arena, &container);
    record_get_int(&record->header, "updates", &updates);
    struct saved_value entry = {.container = container,
                                .name = arena_strdup(&snapshot->arena, record->tensors[0].name),
                                .updates = (uint64_t)updates};
    tensor_share(&entry.value, &record->tensors[0].tensor);
    vec_push(&snapshot->entries, entry);
    return 0;
}

static int read_entries(struct snapshot *snapshot, const char *path, struct error *err)
{
    struct record record = {0};
    bool more = true;
    int fd = open(path, O_RDONLY | O_CLOEXEC), code = 0;
    if (fd < 0)
        return durable_fail(path, err);
    struct stream_reader *reader = stream_reader_new(fd, path);
    while (!(code = stream_read(reader, &record, &more, err)) && more)
        if ((code = take_record(snapshot, &record, err))) {
            error_prefix(err, "%s: ", path);
            break;
        }
    record_release(&record);
    stream_reader_free(reader);
    close(fd);
    return code;
}

/* Makes the variables that are not there, and finds out whether the others fit. */
static int find_variables(struct variable_store *store, struct device *device,
                          const struct snapshot *snapshot, const char *path, struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && i < snapshot->entries.n; i++) {
        const struct saved_value *entry = &snapshot->entries.items[i];
        if (resource_is_part(entry->name))
            continue;
        struct variable like = {.container = entry->container,
                                .name = entry->name,
                                .type = entry->value.type,
                                .shape = entry->value.shape,
                                .device = device},
                        *variable;
        code = variable_store_get(store, &like, &variable, err);
    }
    return code ? error_prefix(err, "%s: ", path) : 0;
}

static const struct saved_value *value_of(const struct snapshot *snapshot, const struct variable *v)
{
    for (size_t i = 0; i < snapshot->entries.n; i++) {
        const struct saved_value *entry = &snapshot->entries.items[i];
        if (!strcmp(entry->name, v->name) && !strcmp(entry->container, v->container))
            return entry;
    }
    return NULL;
}

static int restore_one(const struct snapshot *snapshot, struct variable *variable,
                       struct error *err)
{
    const struct saved_value *entry = value_of(snapshot, variable);
    variable_clear(variable); /* a dimension that the graph leaves open may be another now */
    int code = entry ? container_copy_in(variable, &entry->value, err) : 0;
    variable->updates = entry ? entry->updates : 0;
    return code;
}

static int restore_resources(const struct snapshot *snapshot, struct variable_store *store,
                             struct error *err)
{
    static const struct resource_kind *const kinds[] = {&clock_kind, &aggregator_kind, NULL};
    int code = 0;
    for (size_t i = 0; !code && i < snapshot->entries.n; i++) {
        const struct saved_value *entry = &snapshot->entries.items[i];
        if (resource_is_part(entry->name))
            code = resource_load(store, kinds, entry->container, entry->name, &entry->value, err);
    }
    return code;
}

int snapshot_restore(struct variable_store *store, struct device *device, const char *path,
                     double seconds, struct error *err)
{
    struct snapshot *snapshot = mem_alloc(sizeof *snapshot);
    variable_vec held = VEC_INIT;
    int code = read_entries(snapshot, path, err);
    if (!code)
        code = find_variables(store, device, snapshot, path, err);
    if (!code)
        code = containers_hold(store, NULL, true, seconds, &held, err);
    for (size_t i = 0; !code && i < held.n; i++)
        code = restore_one(snapshot, held.items[i], err);
    containers_unhold(&held, true);
    if (!code && restore_resources(snapshot, store, err))
        code = error_prefix(err, "%s: ", path);
    snapshot_free(snapshot);
    return code;
}
