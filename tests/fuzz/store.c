/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of any bytes, with no sum over its pages: it is refused, or LMDB can work on it. Whatever
 * is read then has the right digest; a save on top of it reads back.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/maintain.h"
#include "checkpoint/store/save.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int nanosleep(const struct timespec *wanted, struct timespec *left);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/tf-fuzz-XXXXXX";
static char files[3][64];

/* Instead of the C library's: nobody will finish a meta page that is none. */
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)wanted, (void)left;
    return 0;
}

static void clean(void)
{
    for (int i = 0; i < 3; i++)
        unlink(files[i]);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(folder) || atexit(clean))
        abort();
    snprintf(files[0], sizeof files[0], "%s/data.mdb", folder);
    snprintf(files[1], sizeof files[1], "%s/lock.mdb", folder);
    snprintf(files[2], sizeof files[2], "%s/writer.lock", folder);
    return 0;
}

static void read_all(struct store *store)
{
    manifest_vec all;
    struct error err = ERROR_INIT, damaged = ERROR_INIT;
    if (store_manifests(store, &all, &damaged, &err))
        return;
    for (size_t i = 0; i < all.n; i++) {
        struct checkpoint *c;
        struct tensor value;
        if (checkpoint_open(store, all.items[i].step, &c, NULL, &err))
            continue;
        for (size_t k = 0; k < c->entries.n; k++)
            if (!checkpoint_read(c, (int)k, &value, &err))
                tensor_release(&value);
        checkpoint_close(c);
    }
    manifests_release(&all);
}

static void save(struct store *store)
{
    static float numbers[4] = {1, 2, 3, 4};
    const struct variable_record one = {
        .container = "default",
        .name = "w",
        .updates = 1,
        .value = {.type = FLOAT32, .shape = shape_vector(4), .data = numbers}};
    const struct save_request request = {
        .step = 99, .producer = "fuzz", .tensors = &one, .n_tensors = 1, .threads = 1};
    struct error err = ERROR_INIT;
    struct prune_report report;
    struct checkpoint *c;
    struct tensor back;
    if (store_save(store, &request, NULL, &err))
        return;
    store_prune(store, false, NULL, &report, &err);
    if (checkpoint_open(store, 99, &c, NULL, &err) || checkpoint_read(c, 0, &back, &err))
        abort();
    if (memcmp(back.data, numbers, sizeof numbers) != 0)
        abort();
    tensor_release(&back);
    checkpoint_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct store_options writing = {.write = true, .owner = "fuzz"};
    struct store *store;
    struct error err = ERROR_INIT;
    int fd = open(files[0], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd))
        abort();
    if (store_open(folder, &writing, &store, &err))
        return 0;
    read_all(store);
    save(store);
    store_close(store);
    return 0;
}
