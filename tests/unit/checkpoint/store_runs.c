/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores with checkpoints of several runs: saving, copying and importing replace only checkpoints
 * of the same run. Two stores are merged in random order and compared with a model.
 */
#include <string.h>

#include "checkpoint/command/command.h"
#include "checkpoint/formats/archive.h"
#include "checkpoint/store/maintain.h"
#include "lib/stores.h"

#define FLOATS 20

enum { STORES = 2, STEPS = 6, RUNS = 3, VALUES = 2, DEEDS = 400 };

static char paths[STORES][STORES_PATH_BYTES + 16];
static struct ckpt_run runs[RUNS];

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    *state = (void *)(uintptr_t)stores_folder();
    for (int i = 0; i < STORES; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/store%d", (char *)*state, i);
        if (store_create(paths[i], &err))
            fail_msg("%s", err.text);
    }
    for (int i = 0; i < RUNS; i++)
        if (run_make(&runs[i], i == 1 ? "digits" : NULL, &err))
            fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    stores_remove(*state);
    return 0;
}

/* ---- one at a time ---- */

static int save(struct store *store, int64_t step, const struct ckpt_run *run, int64_t value,
                enum save_over over, struct error *err)
{
    struct variable_record values[3];
    stores_values(values, value, FLOATS);
    const struct save_request request = {.step = step,
                                         .run = *run,
                                         .over = over,
                                         .producer = "test",
                                         .tensors = values,
                                         .n_tensors = 3};
    int code = store_save(store, &request, NULL, err);
    stores_release(values);
    return code;
}

static void a_run_replaces_its_own_checkpoints_alone(void **state)
{
    struct store *store = stores_open(paths[0], true);
    struct error err = ERROR_INIT;
    struct ckpt_manifest there;
    (void)state;
    assert_int_equal(save(store, 5, &runs[1], 1, SAVE_OVER_OWN, &err), 0);
    assert_int_equal(save(store, 5, &runs[1], 2, SAVE_OVER_OWN, &err), 0);
    assert_int_equal(save(store, 5, &runs[0], 3, SAVE_OVER_OWN, &err), ERR_CONFIG);
    assert_non_null(
        strstr(err.text, "store0@5: is there already with other values, of run digits/"));
    assert_int_equal(save(store, 5, &runs[1], 3, SAVE_OVER_NONE, &err), ERR_CONFIG);
    assert_int_equal(save(store, 5, &runs[0], 2, SAVE_OVER_OWN, &err), 0); /* the same values */
    assert_int_equal(store_manifest(store, 5, &there, &err), 0);
    assert_true(run_equal(&there.run, &runs[1]));
    assert_string_equal(there.run.name, "digits");
    assert_int_equal(there.sequence, 2); /* and nothing was written */
    ckpt_manifest_release(&there);
    assert_int_equal(store_check_alone(store, &runs[1], &err), 0);
    assert_int_equal(store_check_alone(store, &runs[0], &err), ERR_CONFIG);
    assert_int_equal(store_may_save(store, 5, &runs[0], &err), ERR_CONFIG);
    assert_int_equal(store_may_save(store, 6, &runs[0], &err), 0);
    assert_int_equal(save(store, 5, &runs[0], 4, SAVE_OVER_ANY, &err), 0);
    store_close(store);
}

static void keeping_the_newest_forgets_those_of_the_run_alone(void **state)
{
    struct store *store = stores_open(paths[0], true);
    struct error err = ERROR_INIT;
    manifest_vec all;
    (void)state;
    for (int64_t step = 0; step < 6; step++)
        assert_int_equal(save(store, step, &runs[step % 2], step, SAVE_OVER_OWN, &err), 0);
    assert_int_equal(store_keep_newest(store, &runs[0], 0, &err), 0); /* keeps all */
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    assert_int_equal(all.n, 6);
    manifests_release(&all);
    assert_int_equal(store_keep_newest(store, &runs[0], 1, &err), 0);
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    assert_int_equal(all.n, 4);
    assert_int_equal(all.items[0].step, 1);
    assert_int_equal(all.items[1].step, 3);
    manifests_release(&all);
    store_close(store);
}

static void a_writer_is_refused_beside_another_run_and_after_a_job_that_resumed(void **state)
{
    const struct store_options options = {.write = true, .owner = "test"};
    struct store_writer first = {.run = runs[0]}, other = {.run = runs[1]};
    struct store *store = stores_open(paths[0], true);
    struct error err = ERROR_INIT;
    int64_t generation = 0;
    (void)state;
    assert_int_equal(store_check_writer(store, &first, &err), 0);
    assert_int_equal(first.generation, 1);
    assert_int_equal(save(store, 5, &runs[0], 1, SAVE_OVER_OWN, &err), 0);
    assert_int_equal(store_check_writer(store, &other, &err), ERR_CONFIG);
    other.goes_on = true;
    assert_int_equal(store_check_writer(store, &other, &err), 0);
    store_close(store);
    assert_int_equal(store_take_over(paths[0], &options, NULL, &generation, &err), 0);
    store = stores_open(paths[0], true);
    assert_int_equal(store_check_writer(store, &first, &err), ERR_DENIED);
    assert_int_equal(first.generation, 1);
    first.generation = generation;
    assert_int_equal(store_check_writer(store, &first, &err), 0);
    store_close(store);
}

/* ---- in random order ---- */

struct queue_hold {
    bool is_there;
    int run; /* RUNS: a run that an import made */
    int64_t value;
};

static struct queue_hold model[STORES][STEPS];

static void check(int at)
{
    struct store *store = stores_open(paths[at], false);
    struct error err = ERROR_INIT;
    for (int64_t step = 0; step < STEPS; step++) {
        const struct queue_hold *kept = &model[at][step];
        struct checkpoint *c;
        int code = checkpoint_open(store, step, &c, NULL, &err);
        assert_int_equal(code, kept->is_there ? 0 : ERR_NOINPUT);
        if (code)
            continue;
        if (kept->run < RUNS)
            assert_true(run_equal(&c->manifest.run, &runs[kept->run]));
        c->manifest.step = kept->value; /* stores_compare derives the values from it */
        if (stores_compare(c, FLOATS, &err))
            fail_msg("%s", err.text);
        checkpoint_close(c);
    }
    store_close(store);
}

/* Models a save; returns the code that it must have. */
static int put(struct queue_hold *kept, int run, int64_t value, enum save_over over)
{
    bool is_own = over == SAVE_OVER_OWN && kept->run == run;
    if (kept->is_there && !is_own && over != SAVE_OVER_ANY)
        return kept->value == value ? 0 : ERR_CONFIG;
    *kept = (struct queue_hold){true, run, value};
    return 0;
}

static void save_one(int at, int64_t step, int run, int64_t value)
{
    struct store *store = stores_open(paths[at], true);
    struct error err = ERROR_INIT;
    int wanted = put(&model[at][step], run, value, SAVE_OVER_OWN);
    assert_int_equal(save(store, step, &runs[run], value, SAVE_OVER_OWN, &err), wanted);
    store_close(store);
}

static void forget_one(int at, int64_t step)
{
    struct store *store = stores_open(paths[at], true);
    struct error err = ERROR_INIT;
    assert_int_equal(store_forget(store, &step, 1, &err), 0);
    model[at][step].is_there = false;
    store_close(store);
}

static int command(int (*verb)(struct command *, struct error *), const char *from, const char *to,
                   int64_t step, bool replace)
{
    char a[STORES_PATH_BYTES + 48], b[STORES_PATH_BYTES + 48];
    char *operands[] = {a, b};
    struct command c = {.operands = operands,
                        .n_operands = 2,
                        .owner = "test",
                        .producer = "test",
                        .replace = replace,
                        .step = step};
    struct error err = ERROR_INIT;
    snprintf(a, sizeof a, "%s", from);
    snprintf(b, sizeof b, "%s", to);
    int code = verb(&c, &err);
    command_release(&c);
    return code;
}

static void copy_one(int from, int64_t step, bool replace)
{
    char name[STORES_PATH_BYTES + 40];
    const struct queue_hold *kept = &model[from][step];
    snprintf(name, sizeof name, "%s@%lld", paths[from], (long long)step);
    int code = command(command_copy, name, paths[!from], -1, replace);
    assert_int_equal(code, !kept->is_there ? ERR_NOINPUT
                                           : put(&model[!from][step], kept->run, kept->value,
                                                 replace ? SAVE_OVER_ANY : SAVE_OVER_NONE));
}

/* A checkpoint that is refused does not prevent others from being copied. */
static void copy_all(int from)
{
    int wanted = 0;
    for (int64_t step = 0; step < STEPS; step++)
        if (model[from][step].is_there && put(&model[!from][step], model[from][step].run,
                                              model[from][step].value, SAVE_OVER_NONE))
            wanted = ERR_CONFIG;
    assert_int_equal(command(command_copy, paths[from], paths[!from], -1, false), wanted);
}

/* A checkpoint from a file of records counts as another run's. */
static void import_one(const char *folder, int at, int64_t step, int64_t value)
{
    char file[STORES_PATH_BYTES + 40];
    snprintf(file, sizeof file, "%s/value%lld.safetensors", folder, (long long)value);
    assert_int_equal(command(command_import, file, paths[at], step, false),
                     put(&model[at][step], RUNS, value, SAVE_OVER_NONE));
}

static int give(void *context, size_t i, struct tensor *value, struct error *err)
{
    (void)err;
    tensor_share(value, &((struct variable_record *)context)[i].value);
    return 0;
}

static void write_files(const char *folder)
{
    struct error err = ERROR_INIT;
    for (int64_t value = 0; value < VALUES; value++) {
        struct variable_record values[3];
        struct archive_entry entries[3];
        char file[STORES_PATH_BYTES + 40];
        const struct archive_input input = {entries, 3, give, values};
        stores_values(values, value, FLOATS);
        for (int i = 0; i < 3; i++)
            entries[i] =
                (struct archive_entry){values[i].name, values[i].value.type, values[i].value.shape,
                                       tensor_bytes(&values[i].value)};
        snprintf(file, sizeof file, "%s/value%lld.safetensors", folder, (long long)value);
        FILE *out = fopen(file, "wb");
        assert_non_null(out);
        assert_int_equal(safetensors_write(out, &input, &err), 0);
        assert_int_equal(fclose(out), 0);
        stores_release(values);
    }
}

/* Saves a variable, and a part of a clock. */
static void save_with_part(int64_t time, int64_t variable, int64_t part, const struct ckpt_run *run)
{
    struct store *store = stores_open(paths[0], true);
    struct error err = ERROR_INIT;
    const struct shape scalar = {.rank = 0};
    const struct variable_record values[] = {
        {.container = "default", .name = "a", .value = tensor_borrow(INT64, &scalar, &variable)},
        {.container = "default",
         .name = "clock:c/arrivals",
         .value = tensor_borrow(INT64, &scalar, &part)}};
    const struct save_request request = {.step = 1,
                                         .run = *run,
                                         .over = SAVE_OVER_ANY,
                                         .time = time,
                                         .producer = "test",
                                         .tensors = values,
                                         .n_tensors = 2};
    if (store_save(store, &request, NULL, &err))
        fail_msg("%s", err.text);
    store_close(store);
}

static int copy_it(void)
{
    return command(command_copy, paths[0], paths[1], -1, false);
}

static void the_last_save_of_a_step_replaces_the_copy_of_the_one_before(void **state)
{
    (void)state;
    save_with_part(1000, 5, 1, &runs[0]);
    assert_int_equal(copy_it(), 0);
    save_with_part(2000, 5, 2, &runs[0]);
    assert_int_equal(copy_it(), 0);
    save_with_part(3000, 6, 2, &runs[0]); /* the same run, but other values */
    assert_int_equal(copy_it(), ERR_CONFIG);
    save_with_part(3000, 5, 3, &runs[1]);
    assert_int_equal(copy_it(), ERR_CONFIG);
    save_with_part(1500, 5, 3, &runs[0]); /* earlier than the one there */
    assert_int_equal(copy_it(), ERR_CONFIG);
}

/* STORE_MERGES: number of operations. */
static void stores_are_merged_in_random_order_and_nothing_is_lost(void **state)
{
    const char *many = getenv("STORE_MERGES");
    uint64_t random = 12;
    memset(model, 0, sizeof model);
    write_files(*state);
    for (int n = many ? atoi(many) : DEEDS; n > 0; n--) {
        int at = unit_random(&random) % STORES, run = unit_random(&random) % RUNS;
        int64_t step = (int64_t)(unit_random(&random) % STEPS);
        int64_t value = (int64_t)(unit_random(&random) % VALUES);
        switch (unit_random(&random) % 7) {
        case 0:
        case 1:
            save_one(at, step, run, value);
            break;
        case 2:
            forget_one(at, step);
            break;
        case 3:
            copy_one(at, step, false);
            break;
        case 4:
            copy_one(at, step, unit_random(&random) % 8 == 0);
            break;
        case 5:
            copy_all(at);
            break;
        default:
            import_one(*state, at, step, value);
        }
        for (int i = 0; i < STORES; i++)
            check(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_replaces_its_own_checkpoints_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(keeping_the_newest_forgets_those_of_the_run_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_writer_is_refused_beside_another_run_and_after_a_job_that_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_save_of_a_step_replaces_the_copy_of_the_one_before,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(stores_are_merged_in_random_order_and_nothing_is_lost,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
