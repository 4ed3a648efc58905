/* SPDX-License-Identifier: Apache-2.0
 *
 * The speed of the checkpoint store, beside plain files of the same bytes on the same disk, one
 * after the other: a save to a new store, saves of all new values with the oldest forgotten and
 * pruned, a save with a tenth of the rows of an embedding changed, reading back; a file with
 * fdatasync, and one by O_DIRECT. Prints a line for each: seconds, a tab, what was done. usage:
 * checkpoint [FOLDER [MEBIBYTES]]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/maintain.h"
#include "checkpoint/store/save.h"

#define TENSORS 8
#define ROW_BYTES 4096
#define BLOCK_BYTES ((size_t)4 << 20)

struct bench {
    char folder[256], store[300], file[300];
    size_t bytes; /* of one tensor */
    struct variable_record tensors[TENSORS];
    uint64_t new_bytes;
    int64_t step;
    uint64_t random;
};

static void must(int code, const struct error *err)
{
    if (!code)
        return;
    fprintf(stderr, "checkpoint: %s\n", err->text);
    exit(code);
}

static void fill(struct bench *b, uint64_t *data, size_t n)
{
    for (size_t i = 0; i < n / 8; i++) {
        b->random ^= b->random << 13; /* xorshift64 (Marsaglia 2003) */
        b->random ^= b->random >> 7;
        b->random ^= b->random << 17;
        data[i] = b->random;
    }
}

static void make_tensors(struct bench *b)
{
    static const char *const names[TENSORS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    const struct shape shape = shape_matrix((int64_t)(b->bytes / ROW_BYTES), ROW_BYTES / 4);
    struct error err = ERROR_INIT;
    for (int i = 0; i < TENSORS; i++) {
        b->tensors[i] = (struct variable_record){.container = "default", .name = names[i]};
        must(tensor_alloc(&b->tensors[i].value, FLOAT32, &shape, &err), &err);
        fill(b, b->tensors[i].value.data, b->bytes);
    }
}

static double save(struct bench *b, struct store *store)
{
    struct error err = ERROR_INIT;
    struct ckpt_manifest saved;
    struct save_request request = {
        .step = ++b->step, .producer = "bench", .tensors = b->tensors, .n_tensors = TENSORS};
    double began = time_now();
    must(store_save(store, &request, &saved, &err), &err);
    double took = time_now() - began;
    b->new_bytes = saved.new_bytes;
    ckpt_manifest_release(&saved);
    return took;
}

static struct store *open_store(struct bench *b)
{
    const struct store_options options = {.write = true, .owner = "bench"};
    struct store *store;
    struct error err = ERROR_INIT;
    must(store_open(b->store, &options, &store, &err), &err);
    return store;
}

static double save_first(struct bench *b)
{
    struct error err = ERROR_INIT;
    must(store_create(b->store, &err), &err);
    struct store *store = open_store(b);
    double took = save(b, store);
    store_close(store);
    return took;
}

static double save_steady(struct bench *b)
{
    struct store *store = open_store(b);
    struct prune_report report;
    struct error err = ERROR_INIT;
    for (int i = 0; i < TENSORS; i++)
        fill(b, b->tensors[i].value.data, b->bytes);
    double took = save(b, store);
    must(store_forget(store, (int64_t[]){b->step - 2}, 1, &err), &err);
    must(store_prune(store, false, NULL, &report, &err), &err);
    store_close(store);
    return took;
}

/* Changes adjacent rows, as those of frequent words are. */
static double save_tenth(struct bench *b)
{
    struct store *store = open_store(b);
    for (int i = 0; i < TENSORS; i++)
        fill(b, b->tensors[i].value.data, b->bytes / 10 / ROW_BYTES * ROW_BYTES);
    double took = save(b, store);
    store_close(store);
    return took;
}

static double read_back(struct bench *b)
{
    struct store *store;
    struct checkpoint *c;
    struct tensor value;
    struct error err = ERROR_INIT;
    must(store_open(b->store, NULL, &store, &err), &err);
    double began = time_now();
    must(checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, &err), &err);
    for (int i = 0; i < TENSORS; i++) {
        must(checkpoint_read(c, i, &value, &err), &err);
        tensor_release(&value);
    }
    double took = time_now() - began;
    checkpoint_close(c);
    store_close(store);
    return took;
}

static double write_file(struct bench *b, int flags)
{
    double began = time_now();
    int fd = open(b->file, O_WRONLY | O_CREAT | O_TRUNC | flags, 0666);
    bool good = fd >= 0;
    for (int i = 0; i < TENSORS; i++)
        for (size_t at = 0; good && at < b->bytes; at += BLOCK_BYTES) {
            size_t n = b->bytes - at < BLOCK_BYTES ? b->bytes - at : BLOCK_BYTES;
            good = write(fd, (char *)b->tensors[i].value.data + at, n) == (ssize_t)n;
        }
    good = good && !fdatasync(fd) && !close(fd);
    double took = time_now() - began;
    unlink(b->file);
    return good ? took : -1;
}

static void report(const char *what, double seconds)
{
    printf("%.4f\t%s\n", seconds, what);
}

int main(int argc, char **argv)
{
    static struct bench b = {.random = 88172645463325252};
    char command[320];
    snprintf(b.folder, sizeof b.folder, "%.200s/tf-bench-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!mkdtemp(b.folder))
        return 74;
    snprintf(b.store, sizeof b.store, "%s/store", b.folder);
    snprintf(b.file, sizeof b.file, "%s/file", b.folder);
    b.bytes =
        ((size_t)(argc > 2 ? atoi(argv[2]) : 1024) << 20) / TENSORS / BLOCK_BYTES * BLOCK_BYTES;
    make_tensors(&b);
    report("save, new store", save_first(&b));
    report("file, O_DIRECT", write_file(&b, O_DIRECT));
    double steady = 0;
    for (int i = 0; i < 3; i++)
        steady = save_steady(&b);
    report("save, steady", steady);
    report("file, fdatasync", write_file(&b, 0));
    report("save, a tenth changed", save_tenth(&b));
    fprintf(stderr, "a tenth of the rows changed: %.1f %% of the bytes were written\n",
            100.0 * (double)b.new_bytes / ((double)b.bytes * TENSORS));
    report("read back, cached", read_back(&b));
    snprintf(command, sizeof command, "rm -rf '%s'", b.folder);
    return system(command) ? 74 : 0;
}
