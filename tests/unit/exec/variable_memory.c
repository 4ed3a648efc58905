/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of values that are put into variables.
 */
#include <string.h>

#include "exec/state/variable.h"
#include "lib/unit.h"

static struct variable *new_variable(struct variable_store *store)
{
    const struct variable like = {
        .container = "default", .name = "w", .type = FLOAT32, .shape = {.rank = 1, .dims = {2}}};
    struct variable *variable;
    struct error err = ERROR_INIT;
    assert_int_equal(variable_store_get(store, &like, &variable, &err), 0);
    return variable;
}

static struct tensor new_value(float first, float second)
{
    const struct shape shape = {.rank = 1, .dims = {2}};
    struct tensor value;
    struct error err = ERROR_INIT;
    assert_int_equal(tensor_alloc(&value, FLOAT32, &shape, &err), 0);
    memcpy(value.data, (float[]){first, second}, 2 * sizeof(float));
    return value;
}

/* A restored tensor is not copied, and its other holders see no write. */
static void memory_is_shared_until_somebody_writes(void **state)
{
    struct variable_store *store = variable_store_new();
    struct variable *w = new_variable(store);
    struct tensor value = new_value(3, 4);
    struct error err = ERROR_INIT;
    (void)state;
    variable_lock_wait(w, true);
    assert_int_equal(variable_put_in(w, &value, &err), 0);
    assert_ptr_equal(w->value.data, value.data);
    assert_true(w->initialized);
    assert_int_equal(variable_prepare_write(w, &w->shape, VARIABLE_UPDATE, &err), 0);
    assert_ptr_not_equal(w->value.data, value.data);
    ((float *)w->value.data)[0] = 5;
    variable_unlock(w, true);
    assert_float_equal(((float *)w->value.data)[1], 4, 0);
    assert_float_equal(((float *)value.data)[0], 3, 0);
    tensor_release(&value);
    variable_store_free(store);
}

static void a_sole_holder_writes_in_place(void **state)
{
    struct variable_store *store = variable_store_new();
    struct variable *w = new_variable(store);
    struct tensor value = new_value(3, 4);
    const void *memory = value.data;
    struct error err = ERROR_INIT;
    (void)state;
    variable_lock_wait(w, true);
    assert_int_equal(variable_put_in(w, &value, &err), 0);
    tensor_release(&value);
    assert_int_equal(variable_prepare_write(w, &w->shape, VARIABLE_UPDATE, &err), 0);
    assert_ptr_equal(w->value.data, memory);
    variable_unlock(w, true);
    variable_store_free(store);
}

/* A piece would keep the whole tensor, and borrowed memory belongs to its owner. */
static void pieces_and_borrowed_memory_are_copied(void **state)
{
    struct variable_store *store = variable_store_new();
    struct variable *w = new_variable(store);
    const struct shape four = {.rank = 1, .dims = {4}};
    float numbers[2] = {6, 7};
    const struct tensor borrowed = tensor_borrow(FLOAT32, &w->shape, numbers);
    struct tensor value, piece;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(tensor_alloc(&value, FLOAT32, &four, &err), 0);
    memcpy(value.data, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
    piece = value;
    piece.shape = w->shape;
    variable_lock_wait(w, true);
    assert_int_equal(variable_put_in(w, &borrowed, &err), 0);
    assert_ptr_not_equal(w->value.data, numbers);
    assert_float_equal(((float *)w->value.data)[1], 7, 0);
    assert_int_equal(variable_put_in(w, &piece, &err), 0);
    assert_ptr_not_equal(w->value.data, value.data);
    assert_float_equal(((float *)w->value.data)[1], 2, 0);
    variable_unlock(w, true);
    tensor_release(&value);
    variable_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_shared_until_somebody_writes),
        cmocka_unit_test(a_sole_holder_writes_in_place),
        cmocka_unit_test(pieces_and_borrowed_memory_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
