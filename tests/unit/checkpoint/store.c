/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving and reading checkpoints: the values that come back, chunks that are shared, and the lock
 * of the writer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/stores.h"

#define MANY 700000 /* floats: three chunks */

static char path[STORES_PATH_BYTES + 16];

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    if (store_create(path, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    stores_remove(*state);
    return 0;
}

static void what_was_saved_comes_back(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    double loss;
    for (int64_t step = 1; step < 5; step++)
        stores_must_save(store, step, MANY);
    assert_int_equal(stores_newest(store, MANY), 4);
    assert_int_equal(checkpoint_open(store, 2, &c, NULL, &err), 0);
    assert_int_equal(stores_compare(c, MANY, &err), 0);
    assert_true(ckpt_manifest_find_scalar(&c->manifest, "loss", &loss));
    assert_true(loss == 1.0 / 3);
    assert_memory_equal(ckpt_manifest_find_blob(&c->manifest, "place")->data, "row 7", 5);
    assert_int_equal(c->manifest.time, 3000000);
    assert_int_equal(c->entries.items[0].tensor->updates, 2);
    assert_string_equal(c->manifest.producer, "test");
    checkpoint_close(c);
    store_close(store);
    store = stores_open(path, false);
    assert_int_equal(stores_newest(store, MANY), 4);
    assert_int_equal(store_pages(store)->lost, 0);
    assert_int_equal(checkpoint_open(store, 9, &c, NULL, &err), ERR_NOINPUT);
    store_close(store);
}

/* A shard's environment that cannot be made: no descriptor that was not opened is closed, above all
 * not stdin. */
static void what_was_not_opened_is_not_closed(void **state)
{
    (void)state;
    struct store *store;
    struct error err = ERROR_INIT;
    char shards[sizeof path + 16];
    const struct store_options options = {.write = true, .owner = "test", .shard = "ps-0"};
    snprintf(shards, sizeof shards, "%s/shards", path);
    if (rmdir(shards))
        assert_int_equal(errno, ENOENT);
    int fd = open(shards, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0 || open("/dev/null", O_RDONLY) == STDIN_FILENO);
    assert_int_not_equal(store_open(path, &options, &store, &err), 0);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
}

static void what_is_there_is_not_written_again(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct ckpt_manifest first, same, other;
    struct error err = ERROR_INIT;
    struct variable_record values[3];
    stores_values(values, 1, MANY);
    struct save_request request = {.step = 1, .producer = "", .tensors = values, .n_tensors = 3};
    assert_int_equal(store_save(store, &request, &first, &err), 0);
    assert_int_equal(first.new_bytes, 4 * MANY + 12);
    request.step = 2;
    assert_int_equal(store_save(store, &request, &same, &err), 0);
    assert_int_equal(same.new_bytes, 0);
    ((float *)values[0].value.data)[CHUNK_BYTES / 4] += 1; /* first element of the second chunk */
    values[1].name = "moved";                              /* found by its content */
    request.step = 3;
    assert_int_equal(store_save(store, &request, &other, &err), 0);
    assert_int_equal(other.new_bytes, CHUNK_BYTES);
    assert_int_equal(other.sequence, 3);
    ckpt_manifest_release(&first);
    ckpt_manifest_release(&same);
    ckpt_manifest_release(&other);
    stores_release(values);
    store_close(store);
}

static void a_step_can_be_saved_again(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    manifest_vec all;
    struct error err = ERROR_INIT;
    stores_must_save(store, 7, 10);
    stores_must_save(store, 9, 10);
    stores_must_save(store, 7, MANY); /* the job went back, and is bigger */
    assert_int_equal(stores_newest(store, MANY), 7);
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    assert_int_equal(all.n, 2);
    assert_int_equal(all.items[0].step, 9); /* in the order of saving */
    manifests_release(&all);
    store_close(store);
}

static void strings_are_kept(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    struct variable_record value = {.container = "c", .name = "words"};
    struct tensor back;
    const char *const words[] = {"", "one", "two\n"};
    const struct shape shape = shape_vector(3);
    assert_int_equal(tensor_from_strings(&value.value, &shape, words, NULL, &err), 0);
    struct save_request request = {.producer = "", .tensors = &value, .n_tensors = 1};
    assert_int_equal(store_save(store, &request, NULL, &err), 0);
    assert_int_equal(checkpoint_open(store, 0, &c, NULL, &err), 0);
    assert_int_equal(checkpoint_read(c, 0, &back, &err), 0);
    assert_true(tensor_equal(&back, &value.value));
    tensor_release(&back);
    tensor_release(&value.value);
    checkpoint_close(c);
    store_close(store);
}

static void one_writes_and_others_are_told_who(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true), *second;
    struct error err = ERROR_INIT;
    int status;
    pid_t child = fork();
    if (!child) {
        const struct store_options options = {.write = true, .owner = "other", .lock_wait = 0.05};
        char wanted[64];
        snprintf(wanted, sizeof wanted, "locked by process %ld, test;", (long)getppid());
        int code = store_open(path, &options, &second, &err);
        _exit(code == ERR_RETRY && strstr(err.text, wanted) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    const struct store_options again = {.write = true};
    assert_int_equal(store_open(path, &again, &second, &err), ERR_RETRY);
    assert_int_equal(store_open(path, NULL, &second, &err), 0); /* reading is shared */
    assert_ptr_equal(store, second);
    store_close(second);
    store_close(store);
    store = stores_open(path, true);
    store_close(store);
}

static void a_store_is_not_made_twice_nor_found_where_none_is(void **state)
{
    struct error err = ERROR_INIT;
    struct store *store;
    char other[STORES_PATH_BYTES + 32];
    assert_int_equal(store_create(path, &err), ERR_USAGE);
    assert_int_equal(store_ensure(path, &err), 0);
    snprintf(other, sizeof other, "%s/missing", (char *)*state);
    assert_int_equal(store_open(other, NULL, &store, &err), ERR_NOINPUT);
    snprintf(other, sizeof other, "%s/deep/er/store/", (char *)*state);
    assert_int_equal(store_create(other, &err), 0);
    assert_true(store_exists(other));
    snprintf(other, sizeof other, "%s/deep", (char *)*state);
    assert_int_equal(store_create(other, &err), ERR_USAGE); /* the folder is not empty */
    assert_int_equal(store_ensure(other, &err), ERR_USAGE);
    struct checkpoint *c;
    store = stores_open(path, false);
    assert_int_equal(checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, &err), ERR_NOINPUT);
    store_close(store);
}

static void save_shard(const char *shard, int64_t step)
{
    struct store *store;
    struct error err = ERROR_INIT;
    struct variable_record value = {.container = "default", .name = shard};
    const struct store_options options = {.write = true, .owner = shard, .shard = shard};
    assert_int_equal(tensor_alloc(&value.value, INT64, &SHAPE_SCALAR, &err), 0);
    *(int64_t *)value.value.data = step;
    struct save_request request = {.step = step, .producer = "", .tensors = &value, .n_tensors = 1};
    if (store_open(path, &options, &store, &err) || store_save(store, &request, NULL, &err))
        fail_msg("%s", err.text);
    tensor_release(&value.value);
    store_close(store);
}

static void the_newest_complete_one_of_several_shards(void **state)
{
    static const char *const shards[] = {"ps-0", "ps-1"};
    struct store *store = stores_open(path, true);
    struct checkpoint *c;
    struct error err = ERROR_INIT, passed_over;
    struct tensor value;
    (void)state;
    for (int64_t step = 1; step < 4; step++) {
        struct save_request request = {
            .step = step, .producer = "", .shards = shards, .n_shards = 2};
        save_shard("ps-0", step);
        assert_int_equal(store_save(store, &request, NULL, &err), ERR_NOINPUT); /* without ps-1 */
        save_shard("ps-1", step);
        assert_int_equal(store_save(store, &request, NULL, &err), 0);
    }
    save_shard("ps-1", 3); /* killed before ps-0 and the coordinator saved */
    save_shard("ps-1", 4);
    assert_int_equal(checkpoint_open(store, CHECKPOINT_NEWEST, &c, &passed_over, &err), 0);
    assert_int_equal(c->manifest.step, 2);
    assert_int_equal(passed_over.code, ERR_DATA);
    assert_non_null(strstr(passed_over.text, "@3: not complete"));
    assert_int_equal(c->entries.n, 2);
    assert_string_equal(c->entries.items[1].shard, "ps-1");
    assert_int_equal(checkpoint_read(c, 1, &value, &err), 0);
    assert_int_equal(*(int64_t *)value.data, 2);
    tensor_release(&value);
    checkpoint_close(c);
    store_close(store);
}

static bool stop_halfway(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    return done < total / 2;
}

static void what_is_stopped_leaves_no_trace(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct variable_record values[3];
    struct error err = ERROR_INIT;
    stores_must_save(store, 1, MANY);
    stores_values(values, 2, MANY);
    struct save_request request = {
        .step = 2, .producer = "", .tensors = values, .n_tensors = 3, .progress = stop_halfway};
    assert_int_equal(store_save(store, &request, NULL, &err), ERR_CANCELLED);
    assert_int_equal(stores_newest(store, MANY), 1);
    stores_release(values);
    stores_must_save(store, 2, MANY);
    assert_int_equal(stores_newest(store, MANY), 2);
    store_close(store);
}

struct closing {
    struct checkpoint *checkpoint;
    atomic_bool saved; /* by a save that needs a larger map */
    bool saved_before; /* before the checkpoint was closed */
    int code;          /* of reading the checkpoint then */
};

/* While a checkpoint is open, a save that needs a larger map waits. */
static void *read_and_close(void *argument)
{
    struct closing *closing = argument;
    struct error err = ERROR_INIT;
    usleep(200000);
    closing->saved_before = atomic_load(&closing->saved);
    closing->code = stores_compare(closing->checkpoint, MANY, &err);
    checkpoint_close(closing->checkpoint);
    return NULL;
}

static void a_checkpoint_is_closed_by_another_thread(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct closing closing = {0};
    struct error err = ERROR_INIT;
    pthread_t thread;
    stores_must_save(store, 1, MANY);
    assert_int_equal(checkpoint_open(store, 1, &closing.checkpoint, NULL, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_and_close, &closing), 0);
    stores_must_save(store, 2, 4 * MANY);
    atomic_store(&closing.saved, true);
    pthread_join(thread, NULL);
    assert_false(closing.saved_before);
    assert_int_equal(closing.code, 0);
    assert_int_equal(stores_newest(store, 4 * MANY), 2);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_saved_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_there_is_not_written_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_not_opened_is_not_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_can_be_saved_again, setup, teardown),
        cmocka_unit_test_setup_teardown(strings_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(one_writes_and_others_are_told_who, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_is_not_made_twice_nor_found_where_none_is, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_newest_complete_one_of_several_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_stopped_leaves_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_is_closed_by_another_thread, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
