/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/formats/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/formats/archive.h"
#include "checkpoint/store/best.h"

const char *source_which(const char *text, struct arena *arena, const char **path, int64_t *step)
{
    const char *at = strrchr(text, '@');
    struct stat status;
    *step = CHECKPOINT_NEWEST;
    *path = arena_strdup(arena, text);
    /* a file of the whole name takes precedence */
    if (!at || !at[1] || !stat(text, &status))
        return NULL;
    const char *folder = arena_strndup(arena, text, (size_t)(at - text));
    if (!strcmp(at + 1, "best"))
        *step = CHECKPOINT_BEST;
    else if (!str_to_int64(at + 1, step) || *step < 0)
        *step = CHECKPOINT_NEWEST;
    if (*step == CHECKPOINT_NEWEST && !(ckpt_tag_fits(at + 1) && store_exists(folder)))
        return NULL;
    *path = folder;
    return at + 1;
}

int source_split(const char *text, struct arena *arena, const char **path, int64_t *step,
                 struct error *err)
{
    const char *which = source_which(text, arena, path, step);
    struct store *store;
    error_clear(err);
    if (which && *step < 0 && store_exists(*path) && !store_open(*path, NULL, &store, err)) {
        store_named(store, which, step, err);
        store_close(store);
    }
    return err->code;
}

/* ---- stores ---- */

static int open_store(struct source *s, const char *path, int64_t step, struct error *err)
{
    struct checkpoint *checkpoint;
    if (!store_open(path, NULL, &s->store, err) &&
        !checkpoint_open(s->store, step, &checkpoint, &s->passed_over, err)) {
        s->checkpoint = checkpoint;
        s->name = s->checkpoint->name;
        s->step = s->checkpoint->manifest.step;
        for (size_t i = 0; i < s->checkpoint->entries.n; i++) {
            const struct checkpoint_entry *entry = &s->checkpoint->entries.items[i];
            struct source_tensor tensor = {.saved = *entry->tensor, .entry = (int)i};
            vec_push(&s->tensors, tensor);
        }
    }
    return err->code;
}

/* ---- files ---- */

static void add(struct source *s, const struct variable_record *variable)
{
    struct source_tensor tensor = {
        .saved = manifest_tensor_of(variable), .value = variable->value, .entry = -1};
    vec_push(&s->tensors, tensor);
}

static int read_source(struct source *s, const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno == EACCES ? ERR_DENIED : ERR_NOINPUT, "%s", path);
    struct stream_reader *reader = stream_reader_new(fd, path);
    s->name = arena_strdup(&s->arena, path);
    variable_records all = VEC_INIT;
    stream_read_variables(reader, &s->arena, &all, err);
    vec_each(v, &all) {
        add(s, v);
        s->step = v->step;
    }
    vec_release(&all);
    stream_reader_free(reader);
    close(fd);
    return err->code;
}

/* ---- files of other programs ---- */

/* Returns the value of the variable in which TensorFlow programs count steps, or else the number
 * that its Saver appends to the name: "model.ckpt-1200.index". -1: neither exists. */
static int64_t archive_step(const char *path, const struct archive *archive)
{
    const char *dash = strrchr(path, '-');
    int64_t step = -1;
    vec_each(t, &archive->tensors)
        if (!strcmp(t->name, "global_step") && tensor_count(&t->tensor) == 1 &&
            (t->tensor.type == INT64 || t->tensor.type == INT32))
            step = (int64_t)tensor_get_float64(&t->tensor, 0);
    if (step >= 0 || export_form_of(path) != EXPORT_BUNDLE || !dash)
        return step;
    struct str digits = STR_INIT;
    str_append_bytes(&digits, dash + 1, strlen(dash + 1) - strlen(".index"));
    bool is_step = str_to_int64(str_text(&digits), &step) && step >= 0;
    str_release(&digits);
    return is_step ? step : -1;
}

static int read_archive(struct source *s, const char *path, struct error *err)
{
    struct archive archive;
    if (archive_read(path, &archive, err))
        return err->code;
    s->name = arena_strdup(&s->arena, path);
    s->step = archive_step(path, &archive);
    vec_each(t, &archive.tensors) {
        /* "scratch:W" is W in the container scratch. */
        const char *colon = strchr(t->name, ':');
        const struct variable_record variable = {
            .container = colon ? arena_strndup(&s->arena, t->name, (size_t)(colon - t->name))
                               : DEFAULT_CONTAINER,
            .name = arena_strdup(&s->arena, colon ? colon + 1 : t->name),
            .value = t->tensor};
        add(s, &variable);
    }
    archive.tensors.n = 0; /* their values are the source's now */
    archive_release(&archive);
    return 0;
}

/* ---- all ---- */

int source_open(const char *name, struct source *s, struct error *err)
{
    struct stat status;
    const char *path;
    int64_t step;
    *s = (struct source){0};
    source_split(name, &s->arena, &path, &step, err);
    bool is_there = !stat(path, &status), is_folder = is_there && S_ISDIR(status.st_mode);
    bool is_file = step == CHECKPOINT_NEWEST && !is_folder &&
                   (is_there || export_form_of(path) != EXPORT_NONE);
    if (!err->code && is_folder && is_archive(path) && !store_exists(path))
        error_set(err, ERR_DATA, "%s: is a directory", path);
    int code = err->code          ? err->code
               : !is_file         ? open_store(s, path, step, err)
               : is_archive(path) ? read_archive(s, path, err)
                                  : read_source(s, path, err);
    if (code)
        source_close(s);
    return code;
}

void source_close(struct source *s)
{
    vec_each(t, &s->tensors) {
        tensor_release(&t->value);
        for (size_t k = 0; k < t->n_slices; k++) {
            struct tensor value = t->slices[k].value;
            tensor_release(&value);
        }
    }
    vec_release(&s->tensors);
    checkpoint_close(s->checkpoint);
    store_close(s->store);
    arena_release(&s->arena);
    *s = (struct source){0};
}

int source_read_tensor(struct source *s, const struct source_tensor *t, struct tensor *value,
                       struct error *err)
{
    if (t->n_slices)
        return source_read_slices(s, t, value, err);
    if (t->entry >= 0)
        return checkpoint_read(s->checkpoint, t->entry, value, err);
    tensor_share(value, &t->value);
    return 0;
}

int source_read(struct source *s, size_t i, struct tensor *value, struct error *err)
{
    return source_read_tensor(s, &s->tensors.items[i], value, err);
}

const char *source_outer_name(struct source *s, size_t i)
{
    const struct source_tensor *t = &s->tensors.items[i];
    return strcmp(t->saved.container, DEFAULT_CONTAINER)
               ? arena_printf(&s->arena, "%s:%s", t->saved.container, t->saved.name)
               : t->saved.name;
}

bool source_is_named(const char *container, const char *tensor, const char *name)
{
    size_t n = strlen(container);
    if (!strcmp(container, DEFAULT_CONTAINER))
        return !strcmp(name, tensor);
    return !strncmp(name, container, n) && name[n] == ':' && !strcmp(name + n + 1, tensor);
}

int source_find(const struct source *s, const char *name)
{
    for (size_t i = 0; i < s->tensors.n; i++)
        if (source_is_named(s->tensors.items[i].saved.container, s->tensors.items[i].saved.name,
                            name))
            return (int)i;
    return -1;
}
