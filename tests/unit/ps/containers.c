/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/variables/cut.h"
#include "lib/unit.h"
#include "ps/containers.h"

/* A store with w float32[2] = [1, 2] and n int64[] = 5 in "default", s float32[?] in "scratch". */
static struct variable_store *make_store(void)
{
    struct variable_store *store = variable_store_new();
    struct error err = ERROR_INIT;
    static const struct {
        const char *container, *name;
        enum dtype type;
        struct shape shape;
    } all[] = {{"default", "w", FLOAT32, {.rank = 1, .dims = {2}}},
               {"default", "n", INT64, {.rank = 0}},
               {"scratch", "s", FLOAT32, {.rank = 1, .dims = {-1}}}};
    for (size_t i = 0; i < 3; i++) {
        struct variable like = {.container = all[i].container,
                                .name = all[i].name,
                                .type = all[i].type,
                                .shape = all[i].shape},
                        *variable;
        assert_int_equal(variable_store_get(store, &like, &variable, &err), 0);
    }
    return store;
}

static int put(struct variable_store *store, const char *container, const char *name,
               const char *literal, enum dtype type, struct error *err)
{
    struct tensor value = TENSOR_INIT;
    assert_non_null(tensor_parse(&value, literal, type, err));
    int code = containers_put(store, container, name, 0.05, &value, err);
    tensor_release(&value);
    return code;
}

static void values_go_in_and_come_out(void **unused)
{
    (void)unused;
    struct variable_store *store = make_store();
    struct error err = ERROR_INIT;
    struct tensor value = TENSOR_INIT;
    unit_assert_error(containers_get(store, "default", "w", 1, &value, &err), err, ERR_NOINPUT,
                      "variable 'w' is not initialized");
    assert_int_equal(put(store, "default", "w", "[1.5,2]", FLOAT32, &err), 0);
    assert_int_equal(containers_get(store, "default", "w", 1, &value, &err), 0);
    assert_float_equal(((float *)value.data)[0], 1.5, 0);
    assert_int_equal(put(store, "default", "w", "[3.0,4]", FLOAT32, &err), 0);
    assert_float_equal(((float *)value.data)[0], 1.5, 0); /* a copy */
    tensor_release(&value);
    unit_assert_error(put(store, "scratch", "w", "[1.0,2]", FLOAT32, &err), err, ERR_NOINPUT,
                      "no variable 'w' in container 'scratch'");
    unit_assert_error(put(store, "default", "w", "[1,2]", INT32, &err), err, ERR_DATA,
                      "variable 'w' is float32[2], the new value int32[2]");
    unit_assert_error(put(store, "default", "w", "[1.0]", FLOAT32, &err), err, ERR_DATA,
                      "variable 'w' is [2], the new value [1]");
    variable_store_free(store);
}

static void a_list_tells_what_there_is(void **unused)
{
    (void)unused;
    struct variable_store *store = make_store();
    variable_vec list = VEC_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(put(store, "scratch", "s", "[1.0,2,3]", FLOAT32, &err), 0);
    assert_int_equal(put(store, "scratch", "s", "[1.0,2,3]", FLOAT32, &err), 0);
    assert_int_equal(containers_lock(store, NULL, false, 1, &list, &err), 0);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.items[0]->name, "w");
    assert_false(list.items[0]->initialized);
    assert_string_equal(list.items[2]->container, "scratch");
    assert_int_equal(list.items[2]->updates, 2);
    assert_int_equal(list.items[2]->value.shape.dims[0], 3);
    containers_unlock(&list, false);
    const struct variable_place place = {"default", "n"};
    assert_int_equal(containers_lock(store, &place, false, 1, &list, &err), 0);
    assert_int_equal(list.n, 1);
    containers_unlock(&list, false);
    variable_store_free(store);
}

static void reset_forgets_a_container_and_no_other(void **unused)
{
    (void)unused;
    struct variable_store *store = make_store();
    struct error err = ERROR_INIT;
    struct tensor value = TENSOR_INIT;
    int n;
    assert_int_equal(put(store, "default", "w", "[1.0,2]", FLOAT32, &err), 0);
    assert_int_equal(put(store, "default", "n", "5", INT64, &err), 0);
    assert_int_equal(put(store, "scratch", "s", "[1.0,2,3]", FLOAT32, &err), 0);
    assert_int_equal(containers_reset(store, "scratch", 1, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_null(variable_store_find(store, "scratch", "s")->value.data);
    unit_assert_error(containers_get(store, "scratch", "s", 1, &value, &err), err, ERR_NOINPUT,
                      "variable 's' is not initialized");
    assert_int_equal(containers_get(store, "default", "n", 1, &value, &err), 0);
    tensor_release(&value);
    /* the next value may have another shape, within what the graph allows */
    assert_int_equal(put(store, "scratch", "s", "[1.0]", FLOAT32, &err), 0);
    unit_assert_error(containers_reset(store, "none", 1, &n, &err), err, ERR_NOINPUT,
                      "no container 'none'");
    variable_store_free(store);
}

/* A variable that was reset can be declared anew; holders of the old one go on with that. */
static void what_was_reset_may_be_declared_otherwise(void **unused)
{
    (void)unused;
    struct variable_store *store = make_store();
    struct error err = ERROR_INIT;
    struct variable like = {.container = "default", .name = "w", .type = FLOAT64}, *made;
    struct variable *before = variable_store_find(store, "default", "w");
    const struct variable_place place = {"default", NULL};
    variable_vec list = VEC_INIT;
    int n;
    assert_int_equal(put(store, "default", "w", "[1.5,2]", FLOAT32, &err), 0);
    unit_assert_error(variable_store_get(store, &like, &made, &err), err, ERR_DATA,
                      "variable 'w' exists as float32[2], not float64[]");
    assert_int_equal(containers_reset(store, "default", 1, &n, &err), 0);
    assert_int_equal(put(store, "default", "w", "[1.5,2]", FLOAT32, &err), 0);
    unit_assert_error(variable_store_get(store, &like, &made, &err), err, ERR_DATA,
                      "variable 'w' exists as float32[2], not float64[]"); /* it is used again */
    assert_int_equal(containers_reset(store, "default", 1, &n, &err), 0);
    assert_int_equal(variable_store_get(store, &like, &made, &err), 0);
    assert_ptr_not_equal(made, before);
    assert_ptr_equal(variable_store_find(store, "default", "w"), made);
    assert_int_equal(put(store, "default", "w", "2.5", FLOAT64, &err), 0);
    assert_int_equal(containers_lock(store, &place, false, 1, &list, &err), 0);
    assert_int_equal(list.n, 2);
    containers_unlock(&list, false);
    variable_store_free(store);
}

static void a_step_that_does_not_end_is_named(void **unused)
{
    (void)unused;
    struct variable_store *store = make_store();
    struct error err = ERROR_INIT;
    struct tensor value = TENSOR_INIT;
    int n;
    assert_int_equal(put(store, "default", "w", "[1.0,2]", FLOAT32, &err), 0);
    assert_int_equal(put(store, "default", "n", "5", INT64, &err), 0);
    struct variable *last = variable_store_find(store, "default", "n");
    variable_lock_wait(last, false);
    unit_assert_error(containers_reset(store, "default", 0.02, &n, &err), err, ERR_RETRY,
                      "variable 'n' is in use by steps that do not end");
    /* readers share it, and a writer that gave up does not block them */
    assert_int_equal(containers_get(store, "default", "n", 0.02, &value, &err), 0);
    tensor_release(&value);
    variable_unlock(last, false);
    /* all or none: w has kept its value, and is not locked */
    assert_int_equal(put(store, "default", "w", "[3.0,4]", FLOAT32, &err), 0);
    assert_int_equal(containers_reset(store, "default", 0.02, &n, &err), 0);
    assert_int_equal(n, 2);
    variable_store_free(store);
}

#define THREADS 4
#define EACH 300

static struct variable_store *shared;

/* Readers, and writers that give up at random moments: [a, a] is never seen half written. */
static void *use(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    struct error err = ERROR_INIT;
    for (int i = 0; i < EACH; i++) {
        struct variable *w = variable_store_find(shared, "default", "w");
        bool write = unit_random(&random) & 1;
        if (!variable_lock_until(w, write, (double)(unit_random(&random) % 100) * 1e-6))
            continue;
        float *values = w->value.data;
        if (values && !write)
            assert_true(values[0] == values[1]);
        if (write && unit_random(&random) % 8 == 0) {
            variable_clear(w);
        } else if (write) {
            assert_int_equal(variable_prepare_write(w, &w->shape, VARIABLE_UPDATE, &err), 0);
            values = w->value.data;
            values[0] = (float)i;
            if (unit_random(&random) % 8 == 0)
                usleep(50);
            values[1] = (float)i;
            variable_written(w);
        }
        variable_unlock(w, write);
    }
    return NULL;
}

static void locks_with_a_deadline(void **unused)
{
    (void)unused;
    pthread_t threads[THREADS];
    shared = make_store();
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(variable_lock_until(variable_store_find(shared, "default", "w"), true, 0));
    variable_store_free(shared);
}

/* ---- variables created meanwhile ---- */

struct lister {
    pthread_t thread;
    variable_vec list;
    int code;
};

static void *list_all(void *argument)
{
    struct lister *lister = argument;
    struct error err = ERROR_INIT;
    lister->code = containers_lock(shared, NULL, false, 5, &lister->list, &err);
    return NULL;
}

static bool somebody_waits(struct variable *variable)
{
    pthread_mutex_lock(&variable->mutex);
    bool waits = variable->first_waiter != NULL;
    pthread_mutex_unlock(&variable->mutex);
    return waits;
}

struct giver {
    struct variable_watcher watcher; /* must be first */
    struct variable *last;           /* locked for writing by this thread, until `made` */
};

/* Lets a caller that has reached the last variable go on to the new one. */
static int give_value(struct variable_watcher *watcher, struct variable *variable,
                      struct error *err)
{
    struct giver *giver = (struct giver *)watcher;
    int64_t number = 5;
    const struct tensor value = tensor_borrow(INT64, &SHAPE_SCALAR, &number);
    variable_unlock(giver->last, true);
    usleep(50000);
    if (!variable_put_in(variable, &value, err))
        variable->updates = 7;
    return err->code;
}

static void a_new_variable_is_listed_once_it_has_its_value(void **unused)
{
    (void)unused;
    struct variable like = {.container = "default", .name = "new", .type = INT64}, *made;
    struct lister lister = {0};
    struct error err = ERROR_INIT;
    shared = make_store();
    struct giver giver = {{give_value, NULL}, variable_store_find(shared, "scratch", "s")};
    variable_watch(shared, &giver.watcher);
    variable_lock_wait(giver.last, true);
    assert_int_equal(pthread_create(&lister.thread, NULL, list_all, &lister), 0);
    while (!somebody_waits(giver.last))
        usleep(100);
    assert_int_equal(variable_store_get(shared, &like, &made, &err), 0);
    pthread_join(lister.thread, NULL);
    assert_int_equal(lister.code, 0);
    assert_int_equal(lister.list.n, 4);
    assert_string_equal(lister.list.items[3]->name, "new");
    assert_true(lister.list.items[3]->initialized);
    assert_int_equal(lister.list.items[3]->updates, 7);
    containers_unlock(&lister.list, false);
    variable_store_free(shared);
}

static int refuse(struct variable_watcher *watcher, struct variable *variable, struct error *err)
{
    (void)watcher;
    return error_set(err, ERR_DATA, "no value for '%s'", variable->name);
}

static void a_variable_that_got_no_value_is_not_there(void **unused)
{
    (void)unused;
    struct variable_store *store = make_store();
    struct variable_watcher watcher = {refuse, NULL};
    struct variable like = {.container = "default", .name = "new", .type = INT64}, *made;
    struct error err = ERROR_INIT;
    variable_watch(store, &watcher);
    for (int again = 0; again < 2; again++)
        unit_assert_error(variable_store_get(store, &like, &made, &err), err, ERR_DATA,
                          "no value for 'new'");
    assert_null(variable_store_find(store, "default", "new"));
    variable_store_free(store);
}

#define MADE 100
#define WIDTH 1000 /* int64 elements */

static atomic_bool all_made;

/* Writes each variable twice; every element is the number of the write. */
static void write_twice(struct variable *variable)
{
    struct error err = ERROR_INIT;
    for (int64_t number = 1; number <= 2; number++) {
        variable_lock_wait(variable, true);
        assert_int_equal(variable_prepare_write(variable, &variable->shape, VARIABLE_UPDATE, &err),
                         0);
        for (int i = 0; i < WIDTH; i++)
            ((int64_t *)variable->value.data)[i] = number;
        variable_written(variable);
        variable_unlock(variable, true);
    }
}

static void *make_and_write(void *unused)
{
    char name[16];
    struct error err = ERROR_INIT;
    struct variable *variable,
        like = {.container = "default", .name = name, .type = INT64, .shape = shape_vector(WIDTH)};
    for (int i = 0; i < MADE; i++) {
        snprintf(name, sizeof name, "new%d", i);
        assert_int_equal(variable_store_get(shared, &like, &variable, &err), 0);
        write_twice(variable);
    }
    for (int i = 0; i < MADE; i++) { /* a restore created them, and the graph comes now */
        snprintf(name, sizeof name, "new%d", i);
        like.slice =
            (struct variable_slice){.of = "whole", .rows = MADE * WIDTH, .first = i * WIDTH};
        assert_int_equal(variable_store_get(shared, &like, &variable, &err), 0);
        usleep(50);
    }
    atomic_store(&all_made, true);
    return unused;
}

static void check_cut(const struct cut *cut)
{
    for (size_t i = 0; i < cut->tensors.n; i++) {
        const struct variable_record *tensor = &cut->tensors.items[i];
        const int64_t *values = tensor->value.data;
        assert_int_equal(tensor_count(&tensor->value), WIDTH);
        for (int k = 0; k < WIDTH; k++)
            if (values[k] != (int64_t)tensor->updates)
                fail_msg("%s: write %d in the value of write %d", tensor->name, (int)values[k],
                         (int)tensor->updates);
        if (!tensor->slice.of)
            continue;
        assert_string_equal(tensor->slice.of, "whole");
        assert_int_equal(tensor->slice.rows, MADE * WIDTH);
        assert_int_equal(tensor->slice.first, WIDTH * atoi(tensor->name + strlen("new")));
    }
}

/* As when a worker begins during a save. */
static void a_cut_has_whole_values_while_variables_are_made(void **unused)
{
    (void)unused;
    pthread_t thread;
    struct error err = ERROR_INIT;
    shared = variable_store_new();
    atomic_store(&all_made, false);
    assert_int_equal(pthread_create(&thread, NULL, make_and_write, NULL), 0);
    for (bool last = false; !last;) {
        struct cut cut;
        variable_vec locked = VEC_INIT;
        last = atomic_load(&all_made);
        assert_int_equal(containers_lock(shared, NULL, false, 5, &locked, &err), 0);
        cut_take(shared, &locked, &cut);
        containers_unlock(&locked, false);
        assert_int_equal(cut_collect(&cut, &err), 0);
        check_cut(&cut);
        assert_true(!last || cut.tensors.n == MADE);
        cut_release(&cut);
    }
    pthread_join(thread, NULL);
    variable_store_free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_in_and_come_out),
        cmocka_unit_test(a_list_tells_what_there_is),
        cmocka_unit_test(reset_forgets_a_container_and_no_other),
        cmocka_unit_test(what_was_reset_may_be_declared_otherwise),
        cmocka_unit_test(a_step_that_does_not_end_is_named),
        cmocka_unit_test(locks_with_a_deadline),
        cmocka_unit_test(a_new_variable_is_listed_once_it_has_its_value),
        cmocka_unit_test(a_variable_that_got_no_value_is_not_there),
        cmocka_unit_test(a_cut_has_whole_values_while_variables_are_made),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
