/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: stores in a temporary folder, and checkpoints whose contents are known.
 */
#ifndef TF_TESTS_LIB_STORES_H
#define TF_TESTS_LIB_STORES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/store/save.h"
#include "lib/entries.h"
#include "lib/unit.h"

#define STORES_PATH_BYTES 256

/* Makes a new folder; its name stays valid. It is in memory if possible: these tests work the same
 * there, and disks are slow to synchronise. */
static inline const char *stores_folder(void)
{
    static char folder[STORES_PATH_BYTES];
    const char *base = getenv("TMPDIR");
    if (!base && !access("/dev/shm", W_OK | X_OK))
        base = "/dev/shm";
    snprintf(folder, sizeof folder, "%s/tf-store-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder))
        fail_msg("mkdtemp");
    return folder;
}

static inline void stores_remove(const char *folder)
{
    char command[STORES_PATH_BYTES + 64];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command))
        fail_msg("%s", command);
}

static inline struct store *stores_open(const char *path, bool write)
{
    struct store *store;
    struct error err = ERROR_INIT;
    const struct store_options options = {.write = write, .owner = "test"};
    if (store_open(path, &options, &store, &err))
        fail_msg("%s", err.text);
    return store;
}

/* Three tensors, "a" to "c", whose values depend on the step: a of n floats, b of 3 ints that are
 * always the same, c without elements. */
static inline void stores_values(struct variable_record values[3], int64_t step, int64_t n)
{
    static const char *const names[] = {"a", "b", "c"};
    const struct shape shapes[] = {shape_vector(n), shape_vector(3), shape_matrix(0, 2)};
    struct error err = ERROR_INIT;
    for (int i = 0; i < 3; i++) {
        values[i] = (struct variable_record){
            .container = "default", .name = names[i], .updates = (uint64_t)step};
        assert_int_equal(tensor_alloc(&values[i].value, i == 1 ? INT32 : FLOAT32, &shapes[i], &err),
                         0);
    }
    uint64_t state = (uint64_t)step;
    for (int64_t i = 0; i < n; i++)
        ((uint32_t *)values[0].value.data)[i] = (uint32_t)unit_random(&state);
    for (int i = 0; i < 3; i++)
        ((int32_t *)values[1].value.data)[i] = i;
}

static inline void stores_release(struct variable_record values[3])
{
    for (int i = 0; i < 3; i++)
        tensor_release(&values[i].value);
}

static inline int stores_save(struct store *store, int64_t step, int64_t n,
                              struct ckpt_manifest *saved, struct error *err)
{
    struct variable_record values[3];
    const struct manifest_scalar loss = {"loss", 1.0 / (double)(step + 1)};
    const struct manifest_blob place = {"place", "row 7", 5};
    stores_values(values, step, n);
    struct save_request request = {.step = step,
                                   .time = 1000000 * (step + 1),
                                   .producer = "test",
                                   .tensors = values,
                                   .n_tensors = 3,
                                   .scalars = &loss,
                                   .n_scalars = 1,
                                   .blobs = &place,
                                   .n_blobs = 1};
    int code = store_save(store, &request, saved, err);
    stores_release(values);
    return code;
}

static inline void stores_must_save(struct store *store, int64_t step, int64_t n)
{
    struct error err = ERROR_INIT;
    if (stores_save(store, step, n, NULL, &err))
        fail_msg("%s", err.text);
}

/* Returns 0 if the checkpoint is right, bit for bit; else the code, with the error. */
static inline int stores_compare(struct checkpoint *c, int64_t n, struct error *err)
{
    struct variable_record values[3];
    int code = 0;
    stores_values(values, c->manifest.step, n);
    for (int i = 0; i < 3 && !code; i++) {
        struct tensor t;
        int at = entry_find(c, values[i].name);
        if (at < 0)
            fail_msg("%s lacks %s", c->name, values[i].name);
        code = checkpoint_read(c, at, &t, err);
        if (!code && !tensor_equal(&t, &values[i].value))
            fail_msg("%s: %s: other data than was saved", c->name, values[i].name);
        if (!code)
            tensor_release(&t);
    }
    stores_release(values);
    return code;
}

/* Returns the step of the newest checkpoint, which must be right; -1 if there is none. */
static inline int64_t stores_newest(struct store *store, int64_t n)
{
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    int code = checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, &err);
    if (code == ERR_NOINPUT)
        return -1;
    if (code)
        fail_msg("%s", err.text);
    if (stores_compare(c, n, &err))
        fail_msg("%s", err.text);
    int64_t step = c->manifest.step;
    checkpoint_close(c);
    return step;
}

#endif
