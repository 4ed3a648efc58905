/* SPDX-License-Identifier: Apache-2.0
 *
 * The file is a page with the heads of the two copies, followed by an extent per value: a page that
 * describes it, then the value twice, each in whole pages. All of it is mapped; room is allocated
 * before, so that a full disk gives an error instead of a signal. Integers have the machine's byte
 * order, as only processes of one host use the file.
 */
#include "resource/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/map.h"
#include "base/memory.h"

#define JOURNAL_MAGIC "tf-journal 2"

/* The file's first page. Step 0: the copy does not exist. The sum is over the head, and over the
 * description and bytes of each value of the copy. */
struct journal_page {
    char magic[16];
    uint64_t owner; /* identifies the worker it belongs to */
    struct {
        int64_t incarnation;
        _Atomic int64_t step;
        uint64_t sum;
    } heads[JOURNAL_COPIES];
};

/* The first page of an extent. */
struct journal_value {
    uint64_t bytes; /* of one copy, in whole pages */
    uint32_t type, rank;
    int64_t dims[SHAPE_RANK_MAX];
    struct {
        _Atomic int64_t step; /* step of the copy; it is complete only if the copy's head says so */
        uint64_t is_open;
        uint64_t sum; /* of the bytes */
    } copies[JOURNAL_COPIES];
    char name[2048];
};

struct journal {
    pthread_mutex_t lock; /* guards the members below, but not the bytes of values */
    char *path;           /* NULL: not placed */
    uint64_t owner;       /* the worker that it belongs to */
    struct error damage;  /* of the file that was found; code 0: none */
    int64_t incarnation;  /* of the clock; 0: not begun */
    int64_t writes;       /* the step being written; 0: none */
    int copy;             /* the one being read or written */

    int fd;
    uint64_t bytes;            /* of the file */
    struct journal_page *page; /* mapped; NULL: the file is not open */
    VEC(struct journal_extent {
        struct journal_value *value;
        uint64_t mapped; /* bytes */
    })
    extents;
};

/* ---- the file; with the lock held ---- */

static int fails(const struct journal *journal, const char *what, struct error *err)
{
    return error_set_errno(err, file_write_error_code(), "%s%s", journal->path, what);
}

static void *map_part(const struct journal *journal, uint64_t from, uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, journal->fd, (off_t)from);
    return at == MAP_FAILED ? NULL : at;
}

static uint64_t extent_bytes(const struct journal_value *value)
{
    return JOURNAL_PAGE + JOURNAL_COPIES * value->bytes;
}

/* Allocates room for more bytes, which are zeros. */
static int grow_journal(struct journal *journal, uint64_t bytes, struct error *err)
{
    do
        errno = posix_fallocate(journal->fd, (off_t)journal->bytes, (off_t)bytes);
    while (errno == EINTR);
    if (errno)
        return fails(journal, ": no room for what the worker keeps", err);
    journal->bytes += bytes;
    return 0;
}

static void unmap_all(struct journal *journal)
{
    for (size_t i = 0; i < journal->extents.n; i++)
        munmap(journal->extents.items[i].value, journal->extents.items[i].mapped);
    vec_release(&journal->extents);
    if (journal->page)
        munmap(journal->page, JOURNAL_PAGE);
    journal->page = NULL;
}

static void close_journal(struct journal *journal)
{
    unmap_all(journal);
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

static bool is_one(const struct journal_value *value, uint64_t left)
{
    if (!value->bytes || value->bytes % JOURNAL_PAGE || value->bytes > left / JOURNAL_COPIES ||
        extent_bytes(value) > left || value->rank > SHAPE_RANK_MAX ||
        !memchr(value->name, 0, sizeof value->name))
        return false;
    struct shape shape = shape_of((int)value->rank, value->dims);
    bool is_type = value->type < 32 && (DTYPES_FLOATING >> value->type & 1);
    int64_t bytes = is_type ? shape_bytes(&shape, (enum dtype)value->type) : -1;
    return bytes >= 0 && (uint64_t)bytes <= value->bytes;
}

/* Removes all values and heads from the file. */
static int clear_journal(struct journal *journal, struct error *err)
{
    unmap_all(journal);
    journal->bytes = 0;
    if (ftruncate(journal->fd, 0))
        return fails(journal, "", err);
    if (grow_journal(journal, JOURNAL_PAGE, err))
        return err->code;
    journal->page = map_part(journal, 0, JOURNAL_PAGE);
    if (!journal->page)
        return fails(journal, "", err);
    strcpy(journal->page->magic, JOURNAL_MAGIC);
    journal->page->owner = journal->owner;
    return 0;
}

static int64_t copy_step(const struct journal *journal, int copy)
{
    return atomic_load(&journal->page->heads[copy].step);
}

/* Returns the address of one of the copies. */
static void *journal_data(struct journal_value *value, int copy)
{
    return (char *)value + JOURNAL_PAGE + (size_t)copy * value->bytes;
}

/* The sum leaves out the padding of the last page. */
static uint64_t sum_data(struct journal_value *value, int copy)
{
    struct shape shape = shape_of((int)value->rank, value->dims);
    return hash_bytes(journal_data(value, copy),
                      (size_t)shape_bytes(&shape, (enum dtype)value->type), 0);
}

/* Returns the sum of a copy for that step: of its head and values. */
static uint64_t copy_sum(const struct journal *journal, int copy, int64_t step)
{
    const int64_t head[] = {journal->page->heads[copy].incarnation, step, copy};
    uint64_t sum = hash_bytes(head, sizeof head, journal->owner);
    for (size_t i = 0; i < journal->extents.n; i++) {
        const struct journal_value *value = journal->extents.items[i].value;
        if (atomic_load(&value->copies[copy].step) != step)
            continue;
        const uint64_t fields[] = {value->bytes, value->type, value->rank,
                                   value->copies[copy].is_open, value->copies[copy].sum};
        sum = hash_bytes(fields, sizeof fields, sum);
        sum = hash_bytes(value->dims, value->rank * sizeof value->dims[0], sum);
        sum = hash_bytes(value->name, strlen(value->name), sum);
    }
    return sum;
}

static bool is_whole(const struct journal *journal, int copy)
{
    int64_t step = copy_step(journal, copy);
    for (size_t i = 0; i < journal->extents.n; i++) {
        struct journal_value *value = journal->extents.items[i].value;
        if (atomic_load(&value->copies[copy].step) == step &&
            value->copies[copy].sum != sum_data(value, copy))
            return false;
    }
    return copy_sum(journal, copy, step) == journal->page->heads[copy].sum;
}

/* Maps the file; returns what is wrong with it as a whole, NULL: nothing. */
static const char *find_defect(struct journal *journal)
{
    journal->page = map_part(journal, 0, JOURNAL_PAGE);
    if (!journal->page || memcmp(journal->page->magic, JOURNAL_MAGIC, sizeof JOURNAL_MAGIC) != 0)
        return "is no journal of this version";
    if (journal->page->owner != journal->owner)
        return "is of another worker, graph or job";
    uint64_t at = JOURNAL_PAGE, bytes = 1;
    for (; bytes && journal->bytes > at && journal->bytes - at >= JOURNAL_PAGE; at += bytes) {
        /* Map the extent at that offset; bytes 0: there is none. */
        struct journal_value *value = map_part(journal, at, JOURNAL_PAGE);
        bytes = value && is_one(value, journal->bytes - at) ? extent_bytes(value) : 0;
        if (value)
            munmap(value, JOURNAL_PAGE);
        value = bytes ? map_part(journal, at, bytes) : NULL;
        if (value)
            vec_push(&journal->extents, ((struct journal_extent){value, bytes}));
        else
            bytes = 0;
    }
    return journal->bytes == at ? NULL : "is damaged";
}

/* Opens or creates the file. One that is no journal, another owner's, or damaged, is reset; a copy
 * that differs from what was committed is dropped. */
static int open_journal(struct journal *journal, struct error *err)
{
    struct stat status;
    journal->fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (journal->fd < 0 || fstat(journal->fd, &status))
        return fails(journal, "", err);
    journal->bytes = (uint64_t)status.st_size;
    const char *defect = journal->bytes >= JOURNAL_PAGE ? find_defect(journal)
                         : journal->bytes               ? "is damaged"
                                                        : "";
    if (defect && *defect)
        error_set(&journal->damage, ERR_DATA, "%s: %s", journal->path, defect);
    if (defect)
        return clear_journal(journal, err);
    for (int copy = 0; copy < JOURNAL_COPIES; copy++) {
        int64_t step = copy_step(journal, copy);
        if (!step || (step > 0 && is_whole(journal, copy)))
            continue;
        error_set(&journal->damage, ERR_DATA, "%s: what was kept of step %" PRId64 " is damaged",
                  journal->path, step);
        atomic_store(&journal->page->heads[copy].step, 0);
    }
    return 0;
}

/* Finds the extent with that name, type and shape; NULL: none. */
static struct journal_value *find_extent(const struct journal *journal, const char *name,
                                         const struct tensor *like)
{
    for (size_t i = 0; i < journal->extents.n; i++) {
        const struct journal_value *value = journal->extents.items[i].value;
        if (value->type == (uint32_t)like->type && value->rank == (uint32_t)like->shape.rank &&
            !memcmp(value->dims, like->shape.dims, value->rank * sizeof value->dims[0]) &&
            !strcmp(value->name, name))
            return journal->extents.items[i].value;
    }
    return NULL;
}

/* Adds such an extent. */
static struct journal_value *add_extent(struct journal *journal, const char *name,
                                        const struct tensor *like, struct error *err)
{
    uint64_t pages = (tensor_bytes(like) + JOURNAL_PAGE - 1) / JOURNAL_PAGE;
    uint64_t bytes = (pages ? pages : 1) * JOURNAL_PAGE, at = journal->bytes;
    if (strlen(name) >= sizeof((struct journal_value *)0)->name) {
        error_set(err, ERR_DATA, "%s: the name '%.40s...' is too long", journal->path, name);
        return NULL;
    }
    if (grow_journal(journal, JOURNAL_PAGE + JOURNAL_COPIES * bytes, err))
        return NULL;
    struct journal_value *value = map_part(journal, at, journal->bytes - at);
    if (!value) {
        fails(journal, "", err);
        return NULL;
    }
    value->type = (uint32_t)like->type;
    value->rank = (uint32_t)like->shape.rank;
    memcpy(value->dims, like->shape.dims, value->rank * sizeof value->dims[0]);
    strcpy(value->name, name);
    value->bytes = bytes; /* written last: this makes the extent valid */
    vec_push(&journal->extents, ((struct journal_extent){value, journal->bytes - at}));
    return value;
}

/* ---- the resource ---- */

static void *journal_create(const char *name)
{
    (void)name;
    struct journal *journal = mem_alloc(sizeof *journal);
    pthread_mutex_init(&journal->lock, NULL);
    journal->fd = -1;
    return journal;
}

static void journal_free(void *object)
{
    struct journal *journal = object;
    close_journal(journal);
    mem_free(journal->path);
    pthread_mutex_destroy(&journal->lock);
    mem_free(journal);
}

static void journal_describe(void *object, struct str *text)
{
    struct journal *journal = object;
    pthread_mutex_lock(&journal->lock);
    if (journal->page)
        str_printf(text, "%s, %zu values", journal->path, journal->extents.n);
    else
        str_append(text, "not open");
    pthread_mutex_unlock(&journal->lock);
}

const struct resource_kind journal_kind = {.name = "journal",
                                           .create = journal_create,
                                           .free = journal_free,
                                           .describe = journal_describe};

struct journal *journal_of(struct variable_store *store, const char *container)
{
    return resource_get(store, &journal_kind, container, "worker");
}

void journal_place(struct journal *journal, const char *path, uint64_t owner)
{
    pthread_mutex_lock(&journal->lock);
    mem_free(journal->path);
    journal->path = mem_strdup(path);
    journal->owner = owner;
    pthread_mutex_unlock(&journal->lock);
}

bool journal_take_damage(struct journal *journal, struct error *damage)
{
    pthread_mutex_lock(&journal->lock);
    *damage = journal->damage;
    error_clear(&journal->damage);
    pthread_mutex_unlock(&journal->lock);
    return damage->code != 0;
}

void journal_remove(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    if (journal->page)
        unlink(journal->path);
    close_journal(journal);
    pthread_mutex_unlock(&journal->lock);
}

/* ---- existing copies ---- */

int journal_heads(struct journal *journal, struct journal_head heads[JOURNAL_COPIES], int *n,
                  struct error *err)
{
    int code = 0;
    *n = 0;
    pthread_mutex_lock(&journal->lock);
    if (journal->path && !journal->page && (code = open_journal(journal, err)))
        close_journal(journal);
    for (int copy = 0; !code && journal->page && copy < JOURNAL_COPIES; copy++)
        if (copy_step(journal, copy) > 0)
            heads[(*n)++] = (struct journal_head){journal->page->heads[copy].incarnation,
                                                  copy_step(journal, copy)};
    pthread_mutex_unlock(&journal->lock);
    return code;
}

int journal_begin(struct journal *journal, const struct journal_head *head, struct error *err)
{
    int code = 0, found = -1;
    pthread_mutex_lock(&journal->lock);
    for (int copy = 0; journal->page && copy < JOURNAL_COPIES; copy++)
        if (copy_step(journal, copy) == head->step &&
            journal->page->heads[copy].incarnation == head->incarnation)
            found = copy;
    if (journal->page && head->step <= 0) {
        code = clear_journal(journal, err);
    } else if (journal->page && found < 0) {
        code = error_set(err, ERR_DATA, "%s: there is no copy of step %" PRId64, journal->path,
                         head->step);
    } else if (journal->page) { /* the other copy does not exist any more */
        atomic_store(&journal->page->heads[!found].step, 0);
        journal->copy = found;
    }
    journal->incarnation = head->incarnation;
    journal->writes = 0;
    pthread_mutex_unlock(&journal->lock);
    return code;
}

int journal_read(struct journal *journal, const char *name, struct tensor *value, bool *is_open,
                 struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    struct journal_value *from = journal->page ? find_extent(journal, name, value) : NULL;
    int copy = journal->copy;
    bool is_there = from && atomic_load(&from->copies[copy].step) == copy_step(journal, copy);
    pthread_mutex_unlock(&journal->lock);
    if (!is_there)
        return error_set(err, ERR_DATA, "the worker's journal lacks '%s', %s", name,
                         shape_text_typed(value->type, &value->shape));
    memcpy(value->data, journal_data(from, copy), tensor_bytes(value));
    *is_open = from->copies[copy].is_open != 0;
    return 0;
}

/* ---- writing ---- */

int journal_write(struct journal *journal, int64_t step, const char *name,
                  const struct tensor *value, struct error *err)
{
    struct journal_value *to = NULL;
    pthread_mutex_lock(&journal->lock);
    bool is_open = journal->page;
    if (is_open) {
        /* Begin the step in the copy that is not the newest. */
        if (journal->writes != step) {
            int newest = copy_step(journal, 1) > copy_step(journal, 0);
            journal->copy = !newest;
            atomic_store(&journal->page->heads[journal->copy].step, 0);
            journal->writes = step;
        }
        to = find_extent(journal, name, value);
        to = to ? to : add_extent(journal, name, value, err);
    }
    int copy = journal->copy;
    pthread_mutex_unlock(&journal->lock);
    if (!to)
        return is_open ? err->code : 0;
    memcpy(journal_data(to, copy), value->data, tensor_bytes(value));
    to->copies[copy].sum = sum_data(to, copy);
    if (FAILPOINT("journal.write"))
        return error_set(err, ERR_IO, "failpoint journal.write");
    to->copies[copy].is_open = false;
    atomic_store(&to->copies[copy].step, step);
    return 0;
}

int journal_add(struct journal *journal, int64_t step, const char *name, const struct tensor *value,
                struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    bool is_open = journal->page;
    struct journal_value *to = is_open ? find_extent(journal, name, value) : NULL;
    int copy = journal->copy;
    pthread_mutex_unlock(&journal->lock);
    if (!is_open)
        return 0;
    if (!to || value->type != FLOAT32 || atomic_load(&to->copies[copy].step) != step)
        return error_set(err, ERR_DATA, "the worker's journal lacks '%s' of step %" PRId64, name,
                         step);
    float *sum = journal_data(to, copy);
    const float *terms = value->data;
    int64_t n = tensor_count(value);
    for (int64_t i = 0; i < n; i++)
        sum[i] += terms[i];
    to->copies[copy].sum = sum_data(to, copy);
    to->copies[copy].is_open = true;
    return 0;
}

int journal_commit(struct journal *journal, int64_t step, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&journal->lock);
    if (journal->page && journal->writes != step) {
        code = error_set(err, ERR_DATA, "%s: nothing was written of step %" PRId64, journal->path,
                         step);
    } else if (journal->page) {
        /* The sum includes the head's new step: whoever is killed before leaves no head. */
        struct journal_page *page = journal->page;
        page->heads[journal->copy].incarnation = journal->incarnation;
        page->heads[journal->copy].sum = copy_sum(journal, journal->copy, step);
        atomic_store(&page->heads[journal->copy].step, step);
    }
    pthread_mutex_unlock(&journal->lock);
    if (!code && FAILPOINT("journal.commit"))
        return error_set(err, ERR_IO, "failpoint journal.commit");
    return code;
}
