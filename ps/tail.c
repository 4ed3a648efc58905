/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

void tail_init(struct tail *tail, const char *path)
{
    *tail =
        (struct tail){.path = mem_strdup(path), .fd = -1, .step = -1, .total = -1, .version = -1};
}

static void forget(struct tail *tail)
{
    close_if_open(tail->fd);
    decoder_release(&tail->decoder);
    record_release(&tail->record);
    tail->decoder = (struct decoder){.sums = true};
    tail->record = (struct record){0};
    tail->fd = -1;
    tail->begun = tail->damaged = false;
}

static void forget_wanted(struct tail *tail)
{
    for (size_t i = 0; i < tail->wanted.n; i++)
        mem_free((void *)(uintptr_t)tail->wanted.items[i].name);
    vec_release(&tail->wanted);
    tail->has_all = false;
}

void tail_want(struct tail *tail, int64_t version, bool exact)
{
    forget_wanted(tail);
    tail->version = version;
    tail->exact = exact;
}

void tail_release(struct tail *tail)
{
    forget(tail);
    forget_wanted(tail);
    mem_free(tail->path);
    str_release(&tail->values);
}

/* Opens the file; reopens it if it was replaced or truncated, but only after the rest of the old
 * one is read. */
static bool find(struct tail *tail)
{
    struct stat there, own;
    if (stat(tail->path, &there))
        return tail->fd >= 0;
    off_t at = tail->fd < 0 ? 0 : lseek(tail->fd, 0, SEEK_CUR);
    if (tail->fd >= 0 && tail->inode == there.st_ino && at <= there.st_size)
        return true;
    if (tail->fd >= 0 && !tail->damaged && !fstat(tail->fd, &own) && at < own.st_size)
        return true;
    forget(tail);
    tail->fd = open(tail->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tail->inode = there.st_ino;
    return tail->fd >= 0;
}

/* A record may hold values from before and after a step's update, which are of two versions. A
 * second record of a step is an evaluation after it; the next step may add to its scalars. */
static void take_wanted(struct tail *tail, bool is_step)
{
    int64_t least = -1;
    for (int i = 0; i < tail->record.n_tensors && tail->version >= 0 && !tail->has_all; i++) {
        const struct named_tensor *named = &tail->record.tensors[i];
        const struct tensor *value = &named->tensor;
        int64_t version = record_version(&tail->record, named->name);
        bool fits = version == tail->version || (!tail->exact && version > tail->version);
        if (version < 0)
            continue;
        least = least < 0 || version < least ? version : least;
        fits = fits && vec_find(&tail->wanted, named->name) == tail->wanted.n;
        if (fits && tensor_count(value) == 1 && (DTYPE_BIT(value->type) & DTYPES_REAL)) {
            struct manifest_scalar scalar = {mem_strdup(named->name), tensor_get_float64(value, 0)};
            vec_push(&tail->wanted, scalar);
        }
    }
    tail->has_all |= is_step && least >= tail->version && tail->version >= 0;
}

static void add_record(struct tail *tail)
{
    bool sums = true;
    int64_t total;
    if (tail->record.kind == RECORD_HELLO) {
        tail->total = record_get_int(&tail->record.header, "records", &total) ? total : -1;
        record_get_bool(&tail->record.header, "sums", &sums);
        tail->decoder.sums = sums;
    } else if (tail->record.kind == RECORD_FETCH) {
        int64_t before = tail->step;
        record_get_int(&tail->record.header, "step", &tail->step);
        bool is_step = tail->step != before;
        if (is_step)
            tail->is_of_each_step = before >= 0 && tail->step == before + 1;
        str_clear(&tail->values);
        for (int i = 0; i < tail->record.n_tensors; i++) {
            const struct named_tensor *named = &tail->record.tensors[i];
            if (tensor_count(&named->tensor) != 1 || named->tensor.type == STRING)
                continue;
            str_printf(&tail->values, "%s%s=", tail->values.n ? " " : "", named->name);
            tensor_print_element(&tail->values, &named->tensor, 0);
        }
        take_wanted(tail, is_step);
    }
}

void tail_read(struct tail *tail)
{
    struct error err = ERROR_INIT;
    if (!find(tail) || tail->damaged)
        return;
    while (tail->version < 0 || !tail->has_all) { /* stops there: the rest may be wanted next */
        void *out;
        size_t wanted;
        if (!tail->begun)
            decoder_start(&tail->decoder, &tail->record);
        tail->begun = true;
        decoder_want(&tail->decoder, &out, &wanted);
        ssize_t n = read(tail->fd, out, wanted);
        if (n <= 0)
            return;
        tail->damaged = decoder_took(&tail->decoder, (size_t)n, &err) != 0;
        if (tail->damaged)
            return;
        if (decoder_done(&tail->decoder)) {
            add_record(tail);
            tail->begun = false;
        }
    }
}
