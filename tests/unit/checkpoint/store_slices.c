/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/slices.h"
#include "lib/stores.h"

#define ROWS 11
#define COLUMNS 3

/* Row r, column c of the table is 100 r + c. Returns the first row of slice k of n, where slices
 * differ by one row at most and the longer ones come first. */
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
    struct variable_record parts[ROWS] = {{0}};
    char names[ROWS][16];
    struct store *store = stores_open(path, true);
    size_t kept = 0;
    for (int k = 0; k < n; k++) {
        struct variable_record *part = &parts[kept];
        const struct shape shape = shape_matrix(first_of(k + 1, n) - first_of(k, n), COLUMNS);
        snprintf(names[k], sizeof names[k], "t/part_%d", k);
        *part = (struct variable_record){
            .container = "default", .name = n > 1 ? names[k] : "t", .updates = 7};
        if (n > 1)
            part->slice = (struct variable_slice){.of = "t", .rows = ROWS, .first = first_of(k, n)};
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
        like.slice = (struct variable_slice){.of = "t", .rows = ROWS, .first = first_of(k, n)};
    assert_int_equal(checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, err), 0);
    int code = checkpoint_read_variable(c, &like, value, &updates, err);
    assert_true(code || updates == 7);
    checkpoint_close(c);
    store_close(store);
    return code;
}

/* Recuts from any number of slices into any other, and checks every element. */
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

/* ---- boxes ---- */

/* Cell k of a grid over the table, as a variable. */
static struct variable cell_of(int rows, int columns, int k, char *name, size_t n)
{
    int64_t y0 = k / columns * ROWS / rows, y1 = (k / columns + 1) * ROWS / rows;
    int64_t x0 = k % columns * COLUMNS / columns, x1 = (k % columns + 1) * COLUMNS / columns;
    struct variable cell = {.container = "default",
                            .name = name,
                            .type = INT32,
                            .shape = shape_matrix(y1 - y0, x1 - x0)};
    snprintf(name, n, rows * columns > 1 ? "t/part_%d" : "t", k);
    if (rows * columns > 1)
        cell.slice = (struct variable_slice){.of = "t", .rows = ROWS, .first = y0};
    if (columns > 1)
        cell.slice.axes[1] = (struct slice_axis){COLUMNS, x0};
    return cell;
}

static void save_in_cells(const char *path, int rows, int columns, int missing)
{
    struct error err = ERROR_INIT;
    struct variable_record parts[ROWS * COLUMNS] = {{0}};
    char names[ROWS * COLUMNS][32];
    struct store *store = stores_open(path, true);
    size_t kept = 0;
    for (int k = 0; k < rows * columns; k++) {
        struct variable cell = cell_of(rows, columns, k, names[k], sizeof names[k]);
        struct variable_record *part = &parts[kept];
        if (k == missing)
            continue;
        *part = (struct variable_record){
            .container = "default", .name = cell.name, .updates = 7, .slice = cell.slice};
        assert_int_equal(tensor_alloc(&part->value, INT32, &cell.shape, &err), 0);
        int64_t width = cell.shape.dims[1];
        for (int64_t i = 0; i < tensor_count(&part->value); i++)
            ((int32_t *)part->value.data)[i] = (int32_t)(100 * (cell.slice.first + i / width) +
                                                         cell.slice.axes[1].first + i % width);
        kept++;
    }
    const struct save_request request = {
        .step = 1, .producer = "", .tensors = parts, .n_tensors = kept};
    assert_int_equal(store_save(store, &request, NULL, &err), 0);
    for (size_t i = 0; i < kept; i++)
        tensor_release(&parts[i].value);
    store_close(store);
}

static int read_cell(const char *path, const struct variable *cell, struct tensor *value,
                     struct error *err)
{
    struct store *store = stores_open(path, false);
    struct checkpoint *c;
    uint64_t updates;
    assert_int_equal(checkpoint_open(store, CHECKPOINT_NEWEST, &c, NULL, err), 0);
    int code = checkpoint_read_variable(c, cell, value, &updates, err);
    checkpoint_close(c);
    store_close(store);
    return code;
}

static void boxes_are_cut_another_way(void **unused)
{
    static const int grids[][2] = {{1, 1}, {1, 3}, {2, 1}, {2, 2}, {4, 3}, {3, 2}};
    enum { N = sizeof grids / sizeof *grids };
    (void)unused;
    for (int before = 0; before < N; before++) {
        const char *path = new_store();
        save_in_cells(path, grids[before][0], grids[before][1], -1);
        for (int now = 0; now < N; now++)
            for (int k = 0; k < grids[now][0] * grids[now][1]; k++) {
                struct error err = ERROR_INIT;
                struct tensor value;
                char name[32];
                struct variable cell = cell_of(grids[now][0], grids[now][1], k, name, sizeof name);
                if (read_cell(path, &cell, &value, &err))
                    fail_msg("%s", err.text);
                assert_true(shape_equal(&value.shape, &cell.shape));
                int64_t width = cell.shape.dims[1];
                for (int64_t i = 0; i < tensor_count(&value); i++)
                    assert_int_equal(((int32_t *)value.data)[i],
                                     100 * (cell.slice.first + i / width) +
                                         cell.slice.axes[1].first + i % width);
                tensor_release(&value);
            }
        stores_remove(path);
    }
}

static void a_box_that_is_not_there_is_told(void **unused)
{
    struct error err = ERROR_INIT;
    struct tensor value;
    char name[32];
    const char *path = new_store();
    (void)unused;
    save_in_cells(path, 2, 2, 3); /* rows 5 to 10, columns 1 and 2 */
    struct variable whole = cell_of(1, 1, 0, name, sizeof name);
    assert_int_equal(read_cell(path, &whole, &value, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "variable 't': 21 of 33 elements are in it"));
    struct variable left = cell_of(1, 3, 0, name, sizeof name);
    assert_int_equal(read_cell(path, &left, &value, &err), 0);
    tensor_release(&value);
    stores_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_cut_another_way),
        cmocka_unit_test(rows_that_are_not_there_are_told),
        cmocka_unit_test(boxes_are_cut_another_way),
        cmocka_unit_test(a_box_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
