/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/journal.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "resource/journal_file.h"

struct journal {
    pthread_mutex_t lock; /* guards the members below, but not the bytes of values */
    char *path;           /* NULL: not placed */
    uint64_t owner;       /* the worker that it belongs to */
    struct error damage;  /* of the file that was found; code 0: none */
    struct journal_file file;
    int64_t incarnation; /* of the clock; 0: not begun */
    int64_t writes;      /* the step being written; 0: none */
    int copy;            /* the one being read or written */
};

static void *journal_create(const char *name)
{
    (void)name;
    struct journal *journal = mem_alloc(sizeof *journal);
    pthread_mutex_init(&journal->lock, NULL);
    journal->file.fd = -1;
    return journal;
}

static void journal_free(void *object)
{
    struct journal *journal = object;
    journal_file_close(&journal->file);
    mem_free(journal->path);
    pthread_mutex_destroy(&journal->lock);
    mem_free(journal);
}

static void journal_describe(void *object, struct str *text)
{
    struct journal *journal = object;
    pthread_mutex_lock(&journal->lock);
    if (journal->file.page)
        str_printf(text, "%s, %zu values", journal->file.path, journal->file.extents.n);
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

/* ---- the file ---- */

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
    if (journal->file.page)
        unlink(journal->file.path);
    journal_file_close(&journal->file);
    pthread_mutex_unlock(&journal->lock);
}

/* ---- existing copies ---- */

static int64_t copy_step(const struct journal *journal, int copy)
{
    return atomic_load(&journal->file.page->heads[copy].step);
}

int journal_heads(struct journal *journal, struct journal_head heads[JOURNAL_COPIES], int *n,
                  struct error *err)
{
    int code = 0;
    *n = 0;
    pthread_mutex_lock(&journal->lock);
    if (journal->path && !journal->file.page)
        code =
            journal_file_open(&journal->file, journal->path, journal->owner, &journal->damage, err);
    for (int copy = 0; !code && journal->file.page && copy < JOURNAL_COPIES; copy++)
        if (copy_step(journal, copy) > 0)
            heads[(*n)++] = (struct journal_head){journal->file.page->heads[copy].incarnation,
                                                  copy_step(journal, copy)};
    pthread_mutex_unlock(&journal->lock);
    return code;
}

int journal_begin(struct journal *journal, const struct journal_head *head, struct error *err)
{
    int code = 0, found = -1;
    pthread_mutex_lock(&journal->lock);
    for (int copy = 0; journal->file.page && copy < JOURNAL_COPIES; copy++)
        if (copy_step(journal, copy) == head->step &&
            journal->file.page->heads[copy].incarnation == head->incarnation)
            found = copy;
    if (journal->file.page && head->step <= 0) {
        code = journal_file_clear(&journal->file, err);
    } else if (journal->file.page && found < 0) {
        code = error_set(err, ERR_DATA, "%s: there is no copy of step %" PRId64, journal->file.path,
                         head->step);
    } else if (journal->file.page) { /* the other copy does not exist any more */
        atomic_store(&journal->file.page->heads[!found].step, 0);
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
    struct journal_value *from =
        journal->file.page ? journal_file_find(&journal->file, name, value) : NULL;
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
    bool is_open = journal->file.page;
    if (is_open) {
        /* Begin the step in the copy that is not the newest. */
        if (journal->writes != step) {
            int newest = copy_step(journal, 1) > copy_step(journal, 0);
            journal->copy = !newest;
            atomic_store(&journal->file.page->heads[journal->copy].step, 0);
            journal->writes = step;
        }
        to = journal_file_find(&journal->file, name, value);
        to = to ? to : journal_file_add(&journal->file, name, value, err);
    }
    int copy = journal->copy;
    pthread_mutex_unlock(&journal->lock);
    if (!to)
        return is_open ? err->code : 0;
    memcpy(journal_data(to, copy), value->data, tensor_bytes(value));
    journal_value_seal(to, copy);
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
    bool is_open = journal->file.page;
    struct journal_value *to = is_open ? journal_file_find(&journal->file, name, value) : NULL;
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
    journal_value_seal(to, copy);
    to->copies[copy].is_open = true;
    return 0;
}

int journal_commit(struct journal *journal, int64_t step, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&journal->lock);
    if (journal->file.page && journal->writes != step) {
        code = error_set(err, ERR_DATA, "%s: nothing was written of step %" PRId64,
                         journal->file.path, step);
    } else if (journal->file.page) {
        /* The sum includes the head's new step: whoever is killed before leaves no head. */
        struct journal_page *page = journal->file.page;
        page->heads[journal->copy].incarnation = journal->incarnation;
        page->heads[journal->copy].sum = journal_file_sum(&journal->file, journal->copy, step);
        atomic_store(&page->heads[journal->copy].step, step);
    }
    pthread_mutex_unlock(&journal->lock);
    if (!code && FAILPOINT("journal.commit"))
        return error_set(err, ERR_IO, "failpoint journal.commit");
    return code;
}
