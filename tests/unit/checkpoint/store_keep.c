/* SPDX-License-Identifier: Apache-2.0
 *
 * Housekeeping of a store: policies, forgetting, pruning, copying, verifying.
 */
#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "checkpoint/policy/retain.h"
#include "checkpoint/store/maintain.h"
#include "checkpoint/store/verify.h"
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

/* ---- policies: the checkpoints of a job that saved every six hours from 2026-01-01 00:00 UTC ----
 */

#define SAVED 240 /* sixty days */

static struct retain_item items[SAVED];

static void make_items(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    for (int i = 0; i < SAVED; i++)
        items[i] = (struct retain_item){.step = 100 * (i + 1),
                                        .time = (1767225600LL + 6 * 3600 * i) * 1000000,
                                        .metric = fabs(i - 100.0),
                                        .has_metric = i % 2 == 0};
}

/* Returns "23,19", the indices of the kept checkpoints, newest first. */
static const char *kept(const struct retain_policy *policy)
{
    static char text[1024];
    size_t n = 0;
    retain(policy, items, SAVED);
    for (int i = SAVED; i-- > 0;)
        if (items[i].kept_by)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", n ? "," : "", i);
    return text;
}

static void policies_keep_what_restic_keeps(void **state)
{
    (void)state;
    make_items();
    assert_false(retain_has_rules(&(struct retain_policy){0}));
    assert_string_equal(kept(&(struct retain_policy){0}), "239"); /* the newest is always kept */
    assert_string_equal(kept(&(struct retain_policy){.last = 3}), "239,238,237");
    assert_string_equal(kept(&(struct retain_policy){.hourly = 2}), "239,238");
    /* the last of each day: 18:00 */
    assert_string_equal(kept(&(struct retain_policy){.daily = 3}), "239,235,231");
    /* 2026-03-01, the last day, is a Sunday: weeks end on Sundays */
    assert_string_equal(kept(&(struct retain_policy){.weekly = 3}), "239,211,183");
    /* March has one day, February ends with 58 * 4 + 3, January with 30 * 4 + 3 */
    assert_string_equal(kept(&(struct retain_policy){.monthly = 9}), "239,235,123");
    assert_string_equal(kept(&(struct retain_policy){.every = 8000}), "239,159,79");
    assert_string_equal(kept(&(struct retain_policy){.last = 1, .daily = 1, .monthly = 1}), "239");
}

static void the_best_are_kept(void **state)
{
    (void)state;
    make_items();
    /* the value is |i - 100|, for even i; of equal ones the newer is better */
    assert_string_equal(kept(&(struct retain_policy){.best = 3, .best_is_low = true}),
                        "239,102,100,98");
    assert_string_equal(kept(&(struct retain_policy){.best = 2}), "239,238,236");
    items[100].metric = NAN;
    assert_string_equal(kept(&(struct retain_policy){.best = 2, .best_is_low = true}),
                        "239,102,98");
    static const struct {
        const char *text, *name;
        bool is_low;
    } metrics[] = {{"val/loss", "val/loss", true},     {"accuracy", "accuracy", false},
                   {"valid/rmse", "valid/rmse", true}, {"eval/auc_1", "eval/auc_1", false},
                   {"loss:max", "loss", false},        {"accuracy:min", "accuracy", true},
                   {"a:b:max", "a:b", false}};
    struct arena arena = ARENA_INIT;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        bool is_low;
        assert_string_equal(retain_metric(metrics[i].text, &arena, &is_low, &err), metrics[i].name);
        assert_int_equal(is_low, metrics[i].is_low);
    }
    assert_string_equal(retain_metric("eval/bits", &arena, &(bool){false}, &err), "eval/bits");
    assert_string_equal(err.text, "is less of it better, or more? eval/bits:min or eval/bits:max");
    arena_release(&arena);
}

/* ---- forgetting and pruning ---- */

static void what_is_forgotten_is_pruned_and_the_rest_stays(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct prune_report report;
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    const int64_t steps[] = {1, 3, 4, 77};
    for (int64_t step = 1; step <= 4; step++)
        stores_must_save(store, step, MANY);
    assert_int_equal(store_forget(store, steps, 4, &err), 0);
    assert_int_equal(stores_newest(store, MANY), 2);
    assert_int_equal(checkpoint_open(store, 4, &c, NULL, &err), ERR_NOINPUT);
    assert_int_equal(store_prune(store, true, NULL, &report, &err), 0);
    assert_int_equal(report.bytes, 3 * 4 * MANY);
    assert_int_equal(store_prune(store, false, NULL, &report, &err), 0);
    assert_int_equal(report.bytes, 3 * 4 * MANY);
    assert_int_equal(report.chunks, 9);
    assert_int_equal(report.kept_bytes, 4 * MANY + 12);
    assert_int_equal(store_prune(store, false, NULL, &report, &err), 0);
    assert_int_equal(report.chunks, 0);
    store_close(store);
    store = stores_open(path, true); /* opening walks its pages */
    assert_int_equal(store_pages(store)->lost, 0);
    assert_true(store_pages(store)->free * 4096 > 3 * 4 * MANY);
    assert_int_equal(stores_newest(store, MANY), 2);
    stores_must_save(store, 5, MANY);
    store_close(store);
}

static int64_t file_bytes(void)
{
    struct stat status;
    char file[STORES_PATH_BYTES + 32];
    snprintf(file, sizeof file, "%s/data.mdb", path);
    assert_int_equal(stat(file, &status), 0);
    return status.st_size;
}

/* Makes a save a day, and checks that at most eight are kept. */
static void forget_by_policy(struct store *store)
{
    const struct retain_policy policy = {.last = 4, .weekly = 2, .monthly = 2};
    struct error err = ERROR_INIT;
    manifest_vec all;
    VEC(int64_t) forgotten = VEC_INIT;
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    struct retain_item *list = mem_array(all.n, sizeof *list);
    for (size_t i = 0; i < all.n; i++)
        list[i] = (struct retain_item){.step = all.items[i].step,
                                       .time = all.items[i].step * 86400 * 1000000};
    retain(&policy, list, all.n);
    for (size_t i = 0; i < all.n; i++)
        if (!list[i].kept_by)
            vec_push(&forgotten, list[i].step);
    assert_true(all.n - forgotten.n <= 8);
    assert_int_equal(store_forget(store, forgotten.items, forgotten.n, &err), 0);
    manifests_release(&all);
    vec_release(&forgotten);
    mem_free(list);
}

static void must_be_clean(struct store *store)
{
    const struct verify_request request = {.fraction = 1};
    struct verify_report report;
    struct error err = ERROR_INIT;
    assert_int_equal(store_verify(store, &request, &report, &err), 0);
    assert_int_equal(report.problems.n, 0);
    assert_int_equal(report.checked_bytes, (report.checkpoints * 4 * MANY) + 12);
    verify_report_release(&report);
    assert_int_equal(store_pages(store)->lost, 0);
}

/* STORE_SAVES: number of saves (60 by default); every fourth is followed by a prune. */
static void a_store_under_a_policy_stays_bounded(void **state)
{
    const char *many = getenv("STORE_SAVES");
    int64_t saves = many ? atol(many) : 60, after_fifty = 0;
    struct prune_report pruned;
    struct error err = ERROR_INIT;
    struct store *store;
    (void)state;
    for (int64_t step = 1; step <= saves; step++) {
        store = stores_open(path, true);
        stores_must_save(store, step, MANY);
        forget_by_policy(store);
        if (step % 4 == 0)
            assert_int_equal(store_prune(store, false, NULL, &pruned, &err), 0);
        store_close(store);
        after_fifty = step == 50 ? file_bytes() : after_fifty;
    }
    print_message("%lld bytes after 50 saves, %lld after %lld\n", (long long)after_fifty,
                  (long long)file_bytes(), (long long)saves);
    assert_true(file_bytes() < 2 * (8 + 4) * 4 * MANY);
    store = stores_open(path, false);
    must_be_clean(store);
    store_close(store);
}

static void shards_are_pruned_of_what_nobody_lists(void **state)
{
    static const char *const shards[] = {"ps-0"};
    const struct store_options options = {.write = true, .owner = "shard", .shard = "ps-0"};
    struct store *store = stores_open(path, true), *shard;
    struct prune_report report;
    struct error err = ERROR_INIT;
    manifest_vec left;
    (void)state;
    for (int64_t step = 1; step <= 4; step++) {
        struct save_request request = {
            .step = step, .producer = "", .shards = shards, .n_shards = 1};
        if (store_open(path, &options, &shard, &err))
            fail_msg("%s", err.text);
        stores_must_save(shard, step, MANY);
        store_close(shard);
        if (step < 4) /* the last one must still be listed */
            assert_int_equal(store_save(store, &request, NULL, &err), 0);
    }
    assert_int_equal(store_forget(store, (int64_t[]){1}, 1, &err), 0);
    assert_int_equal(store_prune(store, false, NULL, &report, &err), 0);
    assert_int_equal(report.chunks, 3);
    assert_int_equal(store_open(path, &options, &shard, &err), 0);
    assert_int_equal(store_manifests(shard, &left, NULL, &err), 0);
    assert_int_equal(left.n, 3);
    assert_int_equal(left.items[0].step, 2);
    manifests_release(&left);
    store_close(shard);
    assert_int_equal(stores_newest(store, MANY), 3);
    store_close(store);
}

static void a_copy_is_the_same_checkpoint(void **state)
{
    struct store *from = stores_open(path, true), *to;
    struct checkpoint *a, *b;
    struct error err = ERROR_INIT;
    char other[STORES_PATH_BYTES + 32];
    stores_must_save(from, 1, MANY);
    stores_must_save(from, 2, MANY);
    snprintf(other, sizeof other, "%s/other", (char *)*state);
    assert_int_equal(store_create(other, &err), 0);
    to = stores_open(other, true);
    assert_int_equal(checkpoint_open(from, 1, &a, NULL, &err), 0);
    assert_int_equal(checkpoint_copy(a, to, false, NULL, NULL, &err), 0);
    assert_int_equal(checkpoint_open(to, 1, &b, NULL, &err), 0);
    assert_int_equal(stores_compare(b, MANY, &err), 0);
    assert_int_equal(b->manifest.time, a->manifest.time);
    assert_int_equal(b->manifest.scalars.n, 1);
    assert_int_equal(b->manifest.blobs.n, 1);
    assert_int_equal(b->entries.items[0].tensor->updates, 1);
    checkpoint_close(a);
    checkpoint_close(b);
    store_close(from);
    store_close(to);
}

/* ---- verifying ---- */

/* Damages the chunk that holds the bytes; LMDB's pages stay sound. */
static void damage(const void *bytes, size_t n)
{
    char file[STORES_PATH_BYTES + 32];
    snprintf(file, sizeof file, "%s/data.mdb", path);
    FILE *f = fopen(file, "r+b");
    assert_non_null(f);
    size_t size = (size_t)file_bytes();
    char *data = malloc(size);
    assert_int_equal(fread(data, 1, size, f), size);
    char *at = memmem(data, size, bytes, n);
    assert_non_null(at);
    assert_int_equal(fseek(f, at - data, SEEK_SET), 0);
    fputc(*at ^ 1, f);
    fclose(f);
    free(data);
}

static void verify_names_what_is_damaged(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct variable_record values[3];
    struct verify_report report;
    struct error err = ERROR_INIT;
    struct verify_request request = {.fraction = 1};
    for (int64_t step = 1; step < 4; step++)
        stores_must_save(store, step, MANY);
    assert_int_equal(store_verify(store, &request, &report, &err), 0);
    assert_int_equal(report.checkpoints, 3);
    assert_int_equal(report.checked_chunks, 10); /* all have the same "b" */
    assert_int_equal(report.newest_intact, 3);
    assert_int_equal(report.problems.n, 0);
    store_close(store);
    stores_values(values, 3, MANY);
    damage((char *)values[0].value.data + CHUNK_BYTES + 100, 64);
    stores_release(values);
    store = stores_open(path, false);
    assert_int_equal(store_verify(store, &request, &report, &err), 0);
    assert_int_equal(report.problems.n, 1);
    assert_non_null(
        strstr(report.problems.items[0].err.text, "store@3: 'a': chunk 2 of 3: digest differs"));
    assert_int_equal(report.newest_intact, 2);
    verify_report_release(&report);
    request.fraction = 0; /* structure only, which is intact */
    assert_int_equal(store_verify(store, &request, &report, &err), 0);
    assert_int_equal(report.problems.n, 0);
    assert_int_equal(report.checked_chunks, 0);
    store_close(store);
    store = stores_open(path, true); /* saving a chunk again heals it */
    stores_must_save(store, 4, 5);
    stores_must_save(store, 3, MANY);
    assert_int_equal(stores_newest(store, MANY), 3);
    store_close(store);
}

static void none_is_intact_if_all_are_damaged(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct variable_record values[3];
    struct checkpoint_listener skipped = {.tell = NULL};
    struct checkpoint *c;
    struct error err = ERROR_INIT;
    for (int64_t step = 1; step < 3; step++)
        stores_must_save(store, step, MANY);
    store_close(store);
    for (int64_t step = 1; step < 3; step++) {
        stores_values(values, step, MANY);
        damage(values[0].value.data, 64);
        stores_release(values);
    }
    store = stores_open(path, false);
    assert_int_equal(checkpoint_open_intact(store, CHECKPOINT_NEWEST, &skipped, &c, &err),
                     ERR_DATA);
    assert_non_null(strstr(err.text, "store: no checkpoint is intact"));
    assert_non_null(strstr(skipped.first.text, "store@2: 'a': chunk 1 of 3: digest differs"));
    store_close(store);
}

static void samples_reach_every_chunk_in_time(void **state)
{
    (void)state;
    struct store *store = stores_open(path, true);
    struct verify_report report;
    struct error err = ERROR_INIT;
    uint64_t checked = 0;
    stores_must_save(store, 1, 40 * 262140);
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct verify_request request = {.fraction = 0.05, .seed = seed};
        assert_int_equal(store_verify(store, &request, &report, &err), 0);
        checked += report.checked_chunks;
    }
    /* binomial, 41 * 40 draws of 0.05: mean 82, standard deviation 8.8 */
    assert_in_range(checked, 82 - 44, 82 + 44);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_keep_what_restic_keeps),
        cmocka_unit_test(the_best_are_kept),
        cmocka_unit_test_setup_teardown(what_is_forgotten_is_pruned_and_the_rest_stays, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_store_under_a_policy_stays_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(shards_are_pruned_of_what_nobody_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_is_the_same_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(verify_names_what_is_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(none_is_intact_if_all_are_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(samples_reach_every_chunk_in_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
