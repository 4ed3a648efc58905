/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/formats/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
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
        struct manifest_tensor saved = {.container = v->container,
                                        .name = v->name,
                                        .type = v->value.type,
                                        .shape = v->value.shape,
                                        .bytes = tensor_bytes(&v->value),
                                        .updates = v->updates,
                                        .slice = v->slice};
        struct source_tensor tensor = {.saved = saved, .value = v->value, .entry = -1};
        vec_push(&s->tensors, tensor);
        s->step = v->step;
    }
    vec_release(&all);
    stream_reader_free(reader);
    close(fd);
    return err->code;
}

/* ---- both ---- */

int source_open(const char *name, struct source *s, struct error *err)
{
    struct stat status;
    const char *path;
    int64_t step;
    *s = (struct source){0};
    source_split(name, &s->arena, &path, &step, err);
    bool is_there = !stat(path, &status);
    bool is_file = step == CHECKPOINT_NEWEST &&
                   (is_there ? !S_ISDIR(status.st_mode) : str_ends(path, ".ckpt"));
    int code = err->code ? err->code
               : is_file ? read_source(s, path, err)
                         : open_store(s, path, step, err);
    if (code)
        source_close(s);
    return code;
}

void source_close(struct source *s)
{
    for (size_t i = 0; i < s->tensors.n; i++) {
        struct source_tensor *t = &s->tensors.items[i];
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
