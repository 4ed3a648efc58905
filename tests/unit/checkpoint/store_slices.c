/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/slices.h"
#include "lib/stores.h"

#define ROWS 11
#define COLUMNS 3

/* Row r, column c of the table is 100 r + c. Slice k of n begins where n slices that differ by one
 * row at most, the longer ones first, let it begin. */
static int64_t first_of(int k, int n)
{
    return k * (ROWS / n) + (k < ROWS % n ? k : ROWS % n);
}

static const char *new_store(void)
{
    const char *path = stores_folder();
    struct error err = ERROR_INIT;
    if (store_create(path, &err))
        fail_msg("%s", err.text);
    return path;
}

static void save_in_slices(const char *path, int n, int missing)
{
    struct error err = ERROR_INIT;
    struct save_tensor parts[ROWS] = {{0}};
    char names[ROWS][16];
    struct store *store = stores_open(path, true);
    size_t kept = 0;
    for (int k = 0; k < n; k++) {
        struct save_tensor *part = &parts[kept];
        const struct shape shape = shape_matrix(first_of(k + 1, n) - first_of(k, n), COLUMNS);
        snprintf(names[k], sizeof names[k], "t/part_%d", k);
        *part = (struct save_tensor){
            .container = "default", .name = n > 1 ? names[k] : "t", .updates = 7};
        if (n > 1)
            part->slice = (struct variable_slice){"t", ROWS, first_of(k, n)};
        assert_int_equal(tensor_alloc(&part->value, INT32, &shape, &err), 0);
        for (int i = 0; i < shape.dims[0] * COLUMNS; i++)
            ((int32_t *)part->value.data)[i] =
                (int32_t)(100 * (first_of(k, n) + i / COLUMNS) + i % COLUMNS);
        kept += k != missing;
        if (k == missing)
            tensor_release(&part->value);
    }
    const struct save_request request = {
        .step = 1, .producer = "", .tensors = parts, .n_tensors = kept};
    assert_int_equal(store_save(store, &request, NULL, &err), 0);
    for (size_t i = 0; i < kept; i++)
        tensor_release(&parts[i].value);
    store_close(store);
}

static int read_slice(const char *path, int k, int n, struct tensor *value, struct error *err)
{
    struct store *store = stores_open(path, false);
    struct checkpoint *c;
    char name[32];
    uint64_t updates;
    struct variable like = {.container = "default",
                            .name = n > 1 ? name : "t",
                            .type = INT32,
                            .shape = shape_matrix(first_of(k + 1, n) - first_of(k, n), COLUMNS)};
    snprintf(name, sizeof name, "t/part_%d", k);
    if (n > 1)
        like.slice = (struct variable_slice){"t", ROWS, first_of(k, n)};
    assert_int_equal(checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, err), 0);
    int code = checkpoint_read_variable(c, &like, value, &updates, err);
    assert_true(code || updates == 7);
    checkpoint_close(c);
    store_close(store);
    return code;
}

/* From any number of slices into any other: every element of every slice. */
static void slices_are_cut_another_way(void **unused)
{
    (void)unused;
    for (int before = 1; before <= 5; before++) {
        const char *path = new_store();
        save_in_slices(path, before, -1);
        for (int now = 1; now <= 5; now++)
            for (int k = 0; k < now; k++) {
                struct error err = ERROR_INIT;
                struct tensor value;
                if (read_slice(path, k, now, &value, &err))
                    fail_msg("%s", err.text);
                int64_t n = first_of(k + 1, now) - first_of(k, now);
                assert_int_equal(value.shape.dims[0], n);
                for (int i = 0; i < n * COLUMNS; i++)
                    assert_int_equal(((int32_t *)value.data)[i],
                                     100 * (first_of(k, now) + i / COLUMNS) + i % COLUMNS);
                tensor_release(&value);
            }
        stores_remove(path);
    }
}

static void rows_that_are_not_there_are_told(void **unused)
{
    (void)unused;
    const char *path = new_store();
    struct error err = ERROR_INIT;
    struct tensor value;
    save_in_slices(path, 4, 2); /* rows 6 to 8 */
    assert_int_equal(read_slice(path, 0, 1, &value, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "variable 't': 8 of 11 rows are in it"));
    assert_int_equal(read_slice(path, 0, 2, &value, &err), 0); /* rows 0 to 5 */
    tensor_release(&value);
    stores_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_cut_another_way),
        cmocka_unit_test(rows_that_are_not_there_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
