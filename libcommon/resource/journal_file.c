/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"

static int fails(const struct journal_file *file, const char *what, struct error *err)
{
    return error_set_errno(err, file_write_error_code(), "%s%s", file->path, what);
}

static void *map_file(const struct journal_file *file, uint64_t from, uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, (off_t)from);
    return at == MAP_FAILED ? NULL : at;
}

static uint64_t extent_bytes(const struct journal_value *value)
{
    return JOURNAL_PAGE + JOURNAL_COPIES * value->bytes;
}

/* Allocates room for more bytes, which are zeros. */
static int grow_file(struct journal_file *file, uint64_t bytes, struct error *err)
{
    do
        errno = posix_fallocate(file->fd, (off_t)file->bytes, (off_t)bytes);
    while (errno == EINTR);
    if (errno)
        return fails(file, ": no room for what the worker keeps", err);
    file->bytes += bytes;
    return 0;
}

static void unmap_all(struct journal_file *file)
{
    for (size_t i = 0; i < file->extents.n; i++)
        munmap(file->extents.items[i].value, file->extents.items[i].mapped);
    vec_release(&file->extents);
    if (file->page)
        munmap(file->page, JOURNAL_PAGE);
    file->page = NULL;
}

/* ---- opening ---- */

static bool is_one(const struct journal_value *value, uint64_t left)
{
    struct shape shape = {.rank = (int)value->rank};
    if (!value->bytes || value->bytes % JOURNAL_PAGE || value->bytes > left / JOURNAL_COPIES ||
        extent_bytes(value) > left || value->rank > SHAPE_RANK_MAX ||
        !memchr(value->name, 0, sizeof value->name))
        return false;
    memcpy(shape.dims, value->dims, sizeof shape.dims);
    bool is_type = value->type < 32 && (DTYPES_FLOATING >> value->type & 1);
    int64_t bytes = is_type ? shape_bytes(&shape, (enum dtype)value->type) : -1;
    return bytes >= 0 && (uint64_t)bytes <= value->bytes;
}

int journal_file_clear(struct journal_file *file, struct error *err)
{
    unmap_all(file);
    file->bytes = 0;
    if (ftruncate(file->fd, 0))
        return fails(file, "", err);
    if (grow_file(file, JOURNAL_PAGE, err))
        return err->code;
    file->page = map_file(file, 0, JOURNAL_PAGE);
    if (!file->page)
        return fails(file, "", err);
    strcpy(file->page->magic, JOURNAL_MAGIC);
    file->page->owner = file->owner;
    return 0;
}

/* ---- sums ---- */

static uint64_t sum_with(uint64_t sum, const void *bytes, size_t n)
{
    return hash_bytes(bytes, n, sum);
}

/* The sum leaves out the padding of the last page. */
static uint64_t sum_data(struct journal_value *value, int copy)
{
    struct shape shape = {.rank = (int)value->rank};
    memcpy(shape.dims, value->dims, sizeof shape.dims);
    return sum_with(0, journal_data(value, copy),
                    (size_t)shape_bytes(&shape, (enum dtype)value->type));
}

void journal_value_seal(struct journal_value *value, int copy)
{
    value->copies[copy].sum = sum_data(value, copy);
}

uint64_t journal_file_sum(const struct journal_file *file, int copy, int64_t step)
{
    const int64_t head[] = {file->page->heads[copy].incarnation, step, copy};
    uint64_t sum = sum_with(file->owner, head, sizeof head);
    for (size_t i = 0; i < file->extents.n; i++) {
        const struct journal_value *value = file->extents.items[i].value;
        if (atomic_load(&value->copies[copy].step) != step)
            continue;
        const uint64_t fields[] = {value->bytes, value->type, value->rank,
                                   value->copies[copy].is_open, value->copies[copy].sum};
        sum = sum_with(sum, fields, sizeof fields);
        sum = sum_with(sum, value->dims, value->rank * sizeof value->dims[0]);
        sum = sum_with(sum, value->name, strlen(value->name));
    }
    return sum;
}

static bool is_whole(const struct journal_file *file, int copy)
{
    int64_t step = atomic_load(&file->page->heads[copy].step);
    for (size_t i = 0; i < file->extents.n; i++) {
        struct journal_value *value = file->extents.items[i].value;
        if (atomic_load(&value->copies[copy].step) == step &&
            value->copies[copy].sum != sum_data(value, copy))
            return false;
    }
    return journal_file_sum(file, copy, step) == file->page->heads[copy].sum;
}

/* Maps the file; returns what is wrong with it as a whole, NULL: nothing. */
static const char *find_defect(struct journal_file *file)
{
    file->page = map_file(file, 0, JOURNAL_PAGE);
    if (!file->page || memcmp(file->page->magic, JOURNAL_MAGIC, sizeof JOURNAL_MAGIC) != 0)
        return "is no journal of this version";
    if (file->page->owner != file->owner)
        return "is of another worker, graph or job";
    uint64_t at = JOURNAL_PAGE, bytes = 1;
    for (; bytes && file->bytes > at && file->bytes - at >= JOURNAL_PAGE; at += bytes) {
        /* Map the extent at that offset; bytes 0: there is none. */
        struct journal_value *value = map_file(file, at, JOURNAL_PAGE);
        bytes = value && is_one(value, file->bytes - at) ? extent_bytes(value) : 0;
        if (value)
            munmap(value, JOURNAL_PAGE);
        value = bytes ? map_file(file, at, bytes) : NULL;
        if (value)
            vec_push(&file->extents, ((struct journal_extent){value, bytes}));
        else
            bytes = 0;
    }
    return file->bytes == at ? NULL : "is damaged";
}

static int open_mapped(struct journal_file *file, struct error *damage, struct error *err)
{
    struct stat status;
    if (fstat(file->fd, &status))
        return fails(file, "", err);
    file->bytes = (uint64_t)status.st_size;
    const char *defect = file->bytes >= JOURNAL_PAGE ? find_defect(file)
                         : file->bytes               ? "is damaged"
                                                     : "";
    if (!defect) {
        for (int copy = 0; copy < JOURNAL_COPIES; copy++) {
            int64_t step = atomic_load(&file->page->heads[copy].step);
            if (!step || (step > 0 && is_whole(file, copy)))
                continue;
            error_set(damage, ERR_DATA, "%s: what was kept of step %" PRId64 " is damaged",
                      file->path, step);
            atomic_store(&file->page->heads[copy].step, 0);
        }
        return 0;
    }
    if (*defect)
        error_set(damage, ERR_DATA, "%s: %s", file->path, defect);
    return journal_file_clear(file, err);
}

int journal_file_open(struct journal_file *file, const char *path, uint64_t owner,
                      struct error *damage, struct error *err)
{
    *file = (struct journal_file){.path = mem_strdup(path), .owner = owner};
    file->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = file->fd < 0 ? fails(file, "", err) : open_mapped(file, damage, err);
    if (code)
        journal_file_close(file);
    return code;
}

void journal_file_close(struct journal_file *file)
{
    unmap_all(file);
    if (file->path && file->fd >= 0)
        close(file->fd);
    mem_free(file->path);
    *file = (struct journal_file){.fd = -1};
}

/* ---- values ---- */

struct journal_value *journal_file_find(const struct journal_file *file, const char *name,
                                        const struct tensor *like)
{
    for (size_t i = 0; i < file->extents.n; i++) {
        const struct journal_value *value = file->extents.items[i].value;
        if (value->type == (uint32_t)like->type && value->rank == (uint32_t)like->shape.rank &&
            !memcmp(value->dims, like->shape.dims, value->rank * sizeof value->dims[0]) &&
            !strcmp(value->name, name))
            return file->extents.items[i].value;
    }
    return NULL;
}

struct journal_value *journal_file_add(struct journal_file *file, const char *name,
                                       const struct tensor *like, struct error *err)
{
    uint64_t pages = (tensor_bytes(like) + JOURNAL_PAGE - 1) / JOURNAL_PAGE;
    uint64_t bytes = (pages ? pages : 1) * JOURNAL_PAGE, at = file->bytes;
    if (strlen(name) >= sizeof((struct journal_value *)0)->name) {
        error_set(err, ERR_DATA, "%s: the name '%.40s...' is too long", file->path, name);
        return NULL;
    }
    if (grow_file(file, JOURNAL_PAGE + JOURNAL_COPIES * bytes, err))
        return NULL;
    struct journal_value *value = map_file(file, at, file->bytes - at);
    if (!value) {
        fails(file, "", err);
        return NULL;
    }
    value->type = (uint32_t)like->type;
    value->rank = (uint32_t)like->shape.rank;
    memcpy(value->dims, like->shape.dims, value->rank * sizeof value->dims[0]);
    strcpy(value->name, name);
    value->bytes = bytes; /* written last: this makes the extent valid */
    vec_push(&file->extents, ((struct journal_extent){value, file->bytes - at}));
    return value;
}
