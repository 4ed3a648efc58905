/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint of two shards under kill -9 at the system calls of its save, and with failures of
 * the calls that reach the disk: first each shard's environment is written, then the manifest that
 * lists both. In some cases the step is saved once more, so that a shard has replaced what the
 * manifest lists, and a prune runs meanwhile. Listed checkpoints restore exactly, all from one
 * save; nothing stays locked; the next save, prune, and save of the same step work.
 *
 * STORE_SWEEPS: how often this is done at every call, with other sizes and orders each time. By
 * default it is done at some calls only.
 */
#include "checkpoint/store/maintain.h"
#include "lib/deeds.h"
#include "lib/stores.h"

#define SHARDS 2
#define LAST 3         /* the newest step before and after */
#define NEXT 7         /* the step that each check saves, */
#define NEXT_VERSION 8 /* and the version in which it saves the deed's step again */
#define SOME 13        /* takes one of so many places or calls */

static const char *const shards[SHARDS] = {"ps-0", "ps-1"};
static char path[STORES_PATH_BYTES + 16], base[STORES_PATH_BYTES + 16];
static int64_t size;    /* floats of a shard */
static int first_shard; /* which saves first */

struct save_id {
    int64_t step;
    int64_t version; /* each save of a step has other values */
};

/* ---- values ---- */

static void values_of(struct variable_record values[3], const struct save_id *id, int shard)
{
    static const char *const names[SHARDS][3] = {{"a0", "b0", "c0"}, {"a1", "b1", "c1"}};
    stores_values(values, 100 * id->step + 10 * id->version + shard, size);
    for (int i = 0; i < 3; i++)
        values[i].name = names[shard][i];
}

static void compare(struct checkpoint *c, const struct save_id *id, int shard)
{
    struct variable_record values[3];
    struct error err = ERROR_INIT;
    values_of(values, id, shard);
    for (int i = 0; i < 3; i++) {
        struct tensor t;
        int at = entry_find(c, values[i].name);
        if (at < 0 || checkpoint_read(c, at, &t, &err))
            fail_msg("%s: %s: %s", c->name, values[i].name, at < 0 ? "is missing" : err.text);
        if (!tensor_equal(&t, &values[i].value))
            fail_msg("%s: %s: not as save %lld has it", c->name, values[i].name,
                     (long long)id->version);
        tensor_release(&t);
    }
    stores_release(values);
}

/* ---- saving ---- */

static int save_shard(const struct save_id *id, int shard, struct error *err)
{
    const struct store_options options = {.write = true, .owner = "test", .shard = shards[shard]};
    struct variable_record values[3];
    values_of(values, id, shard);
    const struct save_request request = {
        .step = id->step, .producer = "test", .tensors = values, .n_tensors = 3, .is_part = true};
    store_save_at(path, &options, &request, err);
    stores_release(values);
    return err->code;
}

static int list_shards(struct store *store, const struct save_id *id, struct error *err)
{
    const struct manifest_scalar version = {"version", (double)id->version};
    const struct save_request request = {.step = id->step,
                                         .producer = "test",
                                         .scalars = &version,
                                         .n_scalars = 1,
                                         .shards = shards,
                                         .n_shards = SHARDS};
    return store_save(store, &request, NULL, err);
}

static int save(struct store *store, const struct save_id *id, struct error *err)
{
    for (int i = 0; i < SHARDS; i++)
        if (save_shard(id, (first_shard + i) % SHARDS, err))
            return err->code;
    return list_shards(store, id, err);
}

static void must_save(struct store *store, int64_t step, int64_t version)
{
    const struct save_id id = {step, version};
    struct error err = ERROR_INIT;
    if (save(store, &id, &err))
        fail_msg("%s", err.text);
}

static void must_prune(struct store *store)
{
    struct prune_report report;
    struct error err = ERROR_INIT;
    if (store_prune(store, false, NULL, &report, &err))
        fail_msg("%s", err.text);
}

/* ---- the deeds, and the stores they start from ---- */

struct scene {
    struct deed deed;
    void (*make)(struct store *store); /* makes the store before the deed */
    struct save_id before, after;      /* the newest */
};

static const struct scene *scene;
static size_t n_before; /* number of checkpoints */

static void make_nothing(struct store *store)
{
    (void)store;
}

static void make_some(struct store *store)
{
    for (int64_t step = 1; step <= LAST; step++)
        must_save(store, step, 1);
}

/* Saves the newest step once more in some shards, without the manifest, as if killed then. */
static void replace(int n_shards)
{
    const struct save_id id = {LAST, 2};
    struct error err = ERROR_INIT;
    for (int i = 0; i < n_shards; i++)
        assert_int_equal(save_shard(&id, i, &err), 0);
}

static void make_half(struct store *store)
{
    make_some(store);
    replace(1);
}

static void make_unlisted(struct store *store)
{
    make_some(store);
    replace(SHARDS);
}

/* Leaves much to prune: replaced values that no manifest lists, and forgotten steps. */
static void make_waste(struct store *store)
{
    struct error err = ERROR_INIT;
    make_some(store);
    must_save(store, LAST, 2);
    assert_int_equal(store_forget(store, (int64_t[]){1, 2}, 2, &err), 0);
}

static int open_writing(struct store **store, struct error *err)
{
    const struct store_options options = {.write = true, .owner = "test"};
    return store_open(path, &options, store, err);
}

static int work_save(void *context)
{
    struct store *store;
    struct error err = ERROR_INIT;
    (void)context;
    if (open_writing(&store, &err))
        return deed_tell(&err);
    if (!save(store, &scene->after, &err))
        deed_done();
    store_close(store);
    return deed_tell(&err);
}

static int work_prune(void *context)
{
    struct prune_report report;
    struct store *store;
    struct error err = ERROR_INIT;
    (void)context;
    if (open_writing(&store, &err))
        return deed_tell(&err);
    store_prune(store, false, NULL, &report, &err);
    store_close(store);
    return deed_tell(&err);
}

static const struct scene scenes[] = {
    {{"the first save", work_save, true}, make_nothing, {-1, 0}, {LAST, 1}},
    {{"a save", work_save, true}, make_some, {LAST, 1}, {LAST + 1, 1}},
    {{"a save once more", work_save, true}, make_some, {LAST, 1}, {LAST, 2}},
    {{"a save once more after a kill", work_save, true}, make_half, {LAST, 1}, {LAST, 3}},
    {{"a save after two that were killed", work_save, true},
     make_unlisted,
     {LAST, 1},
     {LAST + 1, 1}},
    {{"a prune", work_prune, false}, make_waste, {LAST, 2}, {LAST, 2}},
    {{"a prune after a kill", work_prune, false}, make_unlisted, {LAST, 1}, {LAST, 1}},
};

/* ---- before and after ---- */

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...)
{
    char command[4 * STORES_PATH_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    if (system(command))
        fail_msg("%s", command);
}

static void put_back(void)
{
    shell("rm -rf '%s' && cp -r '%s' '%s'", path, base, path);
}

static int setup(void **state)
{
    deeds_begin();
    *state = (void *)(uintptr_t)stores_folder();
    snprintf(path, sizeof path, "%s/store", (char *)*state);
    snprintf(base, sizeof base, "%s/base", (char *)*state);
    return 0;
}

static int teardown(void **state)
{
    deeds_end();
    stores_remove(*state);
    return 0;
}

/* Checks that each listed checkpoint is all of one save. Returns their number, and the newest. */
static size_t compare_all(struct store *store, struct save_id *newest)
{
    struct error err = ERROR_INIT;
    manifest_vec all;
    *newest = (struct save_id){-1, 0};
    assert_int_equal(store_manifests(store, &all, NULL, &err), 0);
    for (size_t i = 0; i < all.n; i++) {
        struct checkpoint *c;
        double version;
        assert_true(ckpt_manifest_find_scalar(&all.items[i], "version", &version));
        *newest = (struct save_id){all.items[i].step, (int64_t)version};
        assert_true(newest->step >= LAST || version == 1); /* older steps are saved only once */
        if (checkpoint_open(store, newest->step, &c, NULL, &err))
            fail_msg("%s", err.text);
        for (int shard = 0; shard < SHARDS; shard++)
            compare(c, newest, shard);
        checkpoint_close(c);
    }
    size_t n = all.n;
    manifests_release(&all);
    return n;
}

static void begin(const struct scene *next)
{
    struct error err = ERROR_INIT;
    scene = next;
    if (store_create(path, &err))
        fail_msg("%s", err.text);
    struct store *store = stores_open(path, true);
    scene->make(store);
    n_before = compare_all(store, &(struct save_id){0});
    store_close(store);
    shell("mv '%s' '%s'", path, base);
    put_back();
}

static void end(void)
{
    shell("rm -rf '%s' '%s'", path, base);
}

static bool is_newest(const struct save_id *a, const struct save_id *b)
{
    return a->step == b->step && a->version == b->version;
}

static void must_be(struct store *store, size_t n, int64_t step, int64_t version)
{
    struct save_id newest;
    assert_int_equal(compare_all(store, &newest), n);
    assert_int_equal(newest.step, step);
    assert_int_equal(newest.version, version);
}

/* Opens the store without waiting for a lock; its saves do not wait, either. */
static bool check(const struct deed *deed)
{
    struct save_id newest;
    struct store *store = stores_open(path, true);
    int64_t step = scene->after.step;
    (void)deed;
    assert_int_equal(store_pages(store)->lost, 0);
    size_t n = compare_all(store, &newest);
    bool changed = is_newest(&newest, &scene->after) && !is_newest(&newest, &scene->before);
    assert_true(changed || is_newest(&newest, &scene->before));
    bool has_step = newest.step == step;
    assert_int_equal(n, n_before + (changed && step != scene->before.step));
    must_save(store, NEXT, 1);
    must_be(store, n + 1, NEXT, 1);
    must_prune(store);
    must_be(store, n + 1, NEXT, 1);
    must_save(store, step, NEXT_VERSION);
    must_prune(store);
    store_close(store);
    store = stores_open(path, false);
    must_be(store, n + 1 + !has_step, step, NEXT_VERSION);
    store_close(store);
    put_back();
    return changed;
}

/* ---- the sweeps ---- */

enum { SCENES = sizeof scenes / sizeof *scenes };

static int stride(void)
{
    return getenv("STORE_SWEEPS") ? 1 : SOME;
}

static void begin_sweep(int sweep)
{
    size = sweep % 2 ? 270000 + 4099 * sweep : 10000 + 4099 * sweep;
    first_shard = sweep / 2 % SHARDS;
}

static void killed_at_every_system_call(void **state)
{
    (void)state;
    if (SANITIZED || !traced_works())
        skip();
    for (int sweep = 0; sweep < deed_sweeps(); sweep++) {
        begin_sweep(sweep);
        for (int i = 0; i < SCENES; i++) {
            begin(&scenes[i]);
            deed_kill_all_along(&scenes[i].deed, stride(), check);
            end();
        }
    }
}

static void every_call_may_fail(void **state)
{
    (void)state;
#ifdef __x86_64__
    static const int errors[] = {EIO, ENOSPC, EACCES};
    if (!traced_works())
        skip();
    for (int sweep = 0; sweep < deed_sweeps(); sweep++) {
        begin_sweep(sweep);
        for (int i = 0; i < SCENES; i++) {
            begin(&scenes[i]);
            deed_fail_all_along(&scenes[i].deed, errors[(sweep + i) % 3], stride(), check);
            end();
        }
    }
#else
    skip(); /* calls are changed on x86-64 only */
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_at_every_system_call, setup, teardown),
        cmocka_unit_test_setup_teardown(every_call_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
