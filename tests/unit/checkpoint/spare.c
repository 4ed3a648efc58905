/* SPDX-License-Identifier: Apache-2.0
 *
 * Spare memory, to which variables move when they are written while their value is in use.
 */
#include "checkpoint/variables/spare.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/session.h"

#define COUNT ((int64_t)3 << 20)
#define PAGE 4096

static struct variable *make(struct variable_store *store, struct device *device, const char *name,
                             int writes)
{
    const struct variable like = {.container = "default",
                                  .name = name,
                                  .type = FLOAT32,
                                  .shape = {.rank = 1, .dims = {COUNT}},
                                  .device = device};
    struct variable *v;
    struct error err = ERROR_INIT;
    assert_int_equal(variable_store_get(store, &like, &v, &err), 0);
    variable_lock_wait(v, true);
    for (int i = 0; i < writes; i++) {
        assert_int_equal(variable_prepare_write(v, &v->shape, VARIABLE_OVERWRITE, &err), 0);
        if (device->is_host)
            ((float *)v->value.data)[COUNT - 1] = (float)i;
        variable_written(v);
    }
    variable_unlock(v, true);
    return v;
}

/* Returns how many whole pages of a tensor are resident. */
static int64_t resident(const struct tensor *t)
{
    static unsigned char pages[COUNT * sizeof(float) / PAGE];
    uintptr_t first = ((uintptr_t)t->data + PAGE - 1) / PAGE * PAGE;
    size_t n = ((uintptr_t)t->data + tensor_bytes(t) - first) / PAGE;
    int64_t is_in = 0;
    assert_int_equal(mincore((void *)first, n * PAGE, pages), 0);
    for (size_t i = 0; i < n; i++)
        is_in += pages[i] & 1;
    return is_in;
}

static void wait_until_done(const struct spare *spare)
{
    while (spare->is_started && !atomic_load(&spare->is_done))
        sched_yield();
}

static void what_steps_write_moves_to_memory_that_was_touched(void **state)
{
    struct device *device = fixture_device();
    struct variable_store *store = variable_store_new();
    struct variable *trained = make(store, device, "trained", 2);
    struct variable *constant = make(store, device, "constant", 1);
    struct spare spare = {0};
    struct tensor held, other;
    struct error err = ERROR_INIT;
    (void)state;
    spare_begin(&spare, store);
    wait_until_done(&spare);
    if (!device->is_host) { /* its variables never move */
        assert_false(variable_other_memory(trained, &other));
        spare_end(&spare);
        variable_store_free(store);
        return;
    }
    assert_null(constant->pool); /* a variable that no step writes needs none */

    assert_false(variable_other_memory(trained, &other)); /* it has its spare memory already */

    variable_lock_wait(trained, true);
    assert_int_equal(variable_get_value(trained, &held, &err), 0);
    assert_int_equal(variable_prepare_write(trained, &trained->shape, VARIABLE_OVERWRITE, &err), 0);
    assert_ptr_not_equal(trained->value.data, held.data);
    assert_int_equal(resident(&trained->value), COUNT * (int64_t)sizeof(float) / PAGE);
    variable_unlock(trained, true);
    tensor_release(&held);

    spare_begin(&spare, store); /* again, for the next write */
    wait_until_done(&spare);
    spare_end(&spare);
    variable_store_free(store);
}

/* An early end comes at once, however much is left to do, and a second one is harmless. */
static void it_can_be_broken_off(void **state)
{
    struct device *device = fixture_device();
    struct variable_store *store = variable_store_new();
    struct spare spare = {0};
    (void)state;
    for (int round = 0; round < 50; round++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", round);
        make(store, device, name, 2);
        spare_begin(&spare, store);
        spare_begin(&spare, store); /* it is still running, or runs again */
        spare_end(&spare);
        assert_false(spare.is_started);
    }
    spare_end(&spare);
    variable_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_steps_write_moves_to_memory_that_was_touched),
        cmocka_unit_test(it_can_be_broken_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
