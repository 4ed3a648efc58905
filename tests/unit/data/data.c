/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the input pipeline. Its visible behaviour is tested in tests/tools/tf-data.bats.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/batches.h"
#include "data/cells.h"
#include "data/column.h"
#include "data/ranges.h"
#include "data/rows.h"

static void lists_of_positions(void **unused)
{
    (void)unused;
    struct ranges ranges = {0};
    struct error err = ERROR_INIT;
    assert_true(ranges_contain(&ranges, 5));
    assert_int_equal(ranges_parse("2,5-7", &ranges, &err), 0);
    assert_false(ranges_contain(&ranges, 1));
    assert_true(ranges_contain(&ranges, 2) && ranges_contain(&ranges, 7));
    assert_int_equal(ranges_last(&ranges), 7);
    assert_int_equal(ranges_parse("100-", &ranges, &err), 0);
    assert_true(ranges_contain(&ranges, 100) && ranges_last(&ranges) == RANGE_OPEN);
    ranges_release(&ranges);
    assert_int_equal(ranges_parse("9,1-3,2-5,4,9,7", &ranges, &err), 0);
    for (int64_t i = 1; i < 12; i++)
        assert_true(ranges_contain(&ranges, i) == (i <= 5 || i == 7 || i == 9));
    assert_int_equal(ranges.n, 3);
    ranges_release(&ranges);
    static const char *const wrong[] = {"", "0", "1,", "-", "3-2", "a", "1-2-3", "+1", "1 ", "-0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(ranges_parse(wrong[i], &ranges, &err), ERR_USAGE);
        ranges_release(&ranges);
    }
}

/* Each column that is fitted has a prep of its own. */
static int parse(const char *text, struct data_column *column)
{
    static struct arena arena;
    static struct prep prep;
    struct error err = ERROR_INIT;
    prep_release(&prep);
    prep = (struct prep){0};
    int code = data_column_parse(column, text, strchr(text, '/') != NULL, &arena, &err);
    return code ? code : data_columns_bind(column, 1, &prep, false, &err);
}

static void words_of_a_column(void **unused)
{
    (void)unused;
    struct data_column c;
    assert_int_equal(parse("x=1-64:float64:scale=0.5:offset=-8:shape=8x8x1", &c), 0);
    assert_string_equal(c.name, "x");
    assert_string_equal(c.where, "1-64");
    assert_true(c.type == FLOAT64 && c.scale == 0.5 && c.offset == -8);
    assert_true(c.shape.rank == 3 && c.shape.dims[0] == 8 && c.shape.dims[2] == 1);
    assert_int_equal(parse("y=./a:b.npy:int32", &c), 0);
    assert_string_equal(c.where, "./a:b.npy");
    assert_int_equal(c.type, INT32);
    static const char *const wrong[] = {"x",
                                        "=1",
                                        "x=",
                                        "x=1:flaot32",
                                        "x=1:onehot=0",
                                        "x=1:scale=",
                                        "x=1:scale=nan",
                                        "x=1:shape=8x",
                                        "x=1:shape=1x1x1x1x1x1x1x1",
                                        "x=1:resource",
                                        "x=1:string:scale=2",
                                        "x=1:onehot=3:standardize"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (parse(wrong[i], &c) != ERR_USAGE)
            fail_msg("'%s' was accepted", wrong[i]);
}

static struct tensor make(const char *literal, enum dtype type)
{
    struct tensor t;
    struct error err = ERROR_INIT;
    assert_non_null(tensor_parse(&t, literal, type, &err));
    return t;
}

static const char *apply(const char *words, const char *literal, enum dtype type)
{
    static struct str out;
    struct data_column column;
    struct error err = ERROR_INIT;
    struct tensor raw = make(literal, type), fed;
    assert_int_equal(parse(words, &column), 0);
    str_clear(&out);
    if (data_column_apply(&column, &raw, NULL, &fed, &err)) {
        str_append(&out, err.text);
    } else {
        shape_print_typed(&out, fed.type, &fed.shape);
        tensor_print(&out, &fed, -1);
        tensor_release(&fed);
    }
    return str_text(&out);
}

static void casts_and_arithmetic(void **unused)
{
    (void)unused;
    assert_string_equal(apply("x=1", "[1,2]", INT16), "int16[2][1,2]");
    assert_string_equal(apply("x=1:int64", "[1,-2]", FLOAT64), "int64[2][1,-2]");
    assert_string_equal(apply("x=1:scale=0.5:offset=1", "[1,2]", UINT8), "float32[2][1.5,2]");
    assert_string_equal(apply("x=1:float16:scale=2", "[1,2.5]", FLOAT32), "float16[2][2,5]");
    assert_string_equal(apply("x=1:shape=2x1", "[[1,2],[3,4]]", INT32),
                        "int32[2,2,1][[[1],[2]],[[3],[4]]]");
    assert_string_equal(apply("x=1:shape=3", "[[1,2],[3,4]]", INT32),
                        "'x': a row is [2], which shape=[3] does not hold");
    assert_string_equal(apply("x=1:uint8", "[1,256]", INT32),
                        "'x': row 2 of the rows selected: 256 is not a uint8");
    assert_string_equal(apply("x=1:int32", "[[1,2],[3,0.5]]", FLOAT32),
                        "'x': row 2 of the rows selected: 0.5 is not an int32");
    assert_string_equal(apply("x=1:int8", "[-128,127]", INT32), "int8[2][-128,127]");
}

static void one_hot(void **unused)
{
    (void)unused;
    assert_string_equal(apply("y=1:onehot=3", "[2,0]", INT32), "float32[2,3][[0,0,1],[1,0,0]]");
    assert_string_equal(apply("y=1:int32:onehot=2:scale=2:offset=-1", "[1]", INT32),
                        "int32[1,2][[-1,1]]");
    assert_string_equal(apply("y=1:onehot=3", "[2,3]", FLOAT32),
                        "'y': row 2 of the rows selected: 3 is not in [0, 3) for onehot");
}

/* Compares mean and population deviation with the formula, at a mean that cancels digits. */
static void standardized_columns(void **unused)
{
    (void)unused;
    struct data_column column;
    struct error err = ERROR_INIT;
    struct tensor raw =
        make("[[1000000001,5],[1000000002,5],[1000000003,5],[1000000006,5]]", FLOAT64);
    struct tensor fed;
    assert_int_equal(parse("x=1:standardize", &column), 0);
    assert_int_equal(data_column_apply(&column, &raw, NULL, &fed, &err), 0);
    const double *values = fed.data, deviation = sqrt((4 + 1 + 0 + 9) / 4.0);
    static const double from_mean[] = {-2, -1, 0, 3};
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(values[2 * i] - from_mean[i] / deviation) < 1e-12);
        assert_true(values[2 * i + 1] == 0);
    }
    tensor_release(&fed);
}

/* Missing values do not count in mean and deviation, whatever their fields hold. */
static void standardized_with_gaps(void **unused)
{
    (void)unused;
    struct data_column column;
    struct error err = ERROR_INIT;
    struct data_gaps gaps = {VEC_INIT, false};
    assert_int_equal(parse("x=1:float64:standardize", &column), 0);
    for (int are_means = 0; are_means < 2; are_means++) {
        struct tensor raw = make("[[1,0],[99,2],[3,4]]", FLOAT64), fed;
        gaps.at.n = 0;
        gaps.are_means = are_means;
        vec_push(&gaps.at, 2);
        assert_int_equal(data_column_apply(&column, &raw, &gaps, &fed, &err), 0);
        const double *values = fed.data, deviation = sqrt((4 + 4) / 3.0);
        assert_true(values[0] == -1 && values[4] == 1 && values[2] == (are_means ? 0 : 97));
        assert_true(values[1] == -2 / deviation && values[3] == 0 && values[5] == 2 / deviation);
        tensor_release(&fed);
    }
    struct tensor raw = make("[[1,2]]", FLOAT64), fed;
    gaps.at.items[0] = 1;
    assert_int_equal(data_column_apply(&column, &raw, &gaps, &fed, &err), ERR_DATA);
    assert_string_equal(err.text,
                        "'x': none of the rows selected has a value in one of the columns");
    vec_release(&gaps.at);
}

static void kinds_of_cells(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        enum cell_kind kind;
    } cells[] = {{"", CELL_MISSING},     {" \t", CELL_MISSING},  {" NA", CELL_MISSING},
                 {"?", CELL_MISSING},    {"N/A ", CELL_MISSING}, {"na", CELL_TEXT},
                 {" 1.5 ", CELL_NUMBER}, {"1e400", CELL_NUMBER}, {"-inf", CELL_NUMBER},
                 {"NaN", CELL_NUMBER},   {"True", CELL_BOOL},    {" FALSE\t", CELL_BOOL},
                 {"truth", CELL_TEXT},   {"1,5", CELL_TEXT},     {"1 2", CELL_TEXT}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        assert_int_equal(cell_kind(cells[i].text, strlen(cells[i].text)), cells[i].kind);
}

static void permutations(void **unused)
{
    (void)unused;
    enum { N = 5, ROUNDS = 60000 };
    int counts[N][N] = {{0}};
    for (int64_t epoch = 0; epoch < ROUNDS; epoch++) {
        int64_t *order = rows_permutation(N, 7, epoch);
        int seen = 0;
        for (int i = 0; i < N; i++) {
            seen |= 1 << order[i];
            counts[i][order[i]]++;
        }
        assert_int_equal(seen, (1 << N) - 1);
        mem_free(order);
    }
    /* Each place holds each number equally often: chi-square with 16 degrees of freedom, p = 1e-5
     */
    double chi = 0, expected = (double)ROUNDS / N;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            chi += (counts[i][k] - expected) * (counts[i][k] - expected) / expected;
    assert_true(chi < 50);
    int64_t *a = rows_permutation(1000, 1, 1), *b = rows_permutation(1000, 1, 1);
    int64_t *c = rows_permutation(1000, 1, 2), *d = rows_permutation(1000, 2, 1);
    assert_memory_equal(a, b, 1000 * sizeof *a);
    assert_true(memcmp(a, c, 1000 * sizeof *a) && memcmp(a, d, 1000 * sizeof *a));
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(d);
}

/* Collects rows 0..n-1 of a table over all shards; each must come once an epoch. */
static void check_epoch(int64_t n, const struct batch_options *options)
{
    struct error err = ERROR_INIT;
    struct tensor values;
    struct shape shape = shape_vector(n);
    assert_int_equal(tensor_alloc(&values, INT64, &shape, &err), 0);
    int seen[100] = {0};
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)values.data)[i] = i;
    struct batch_options f = *options;
    for (f.shard = 0; f.shard < f.n_shards; f.shard++) {
        struct batches *batches;
        struct batch batch;
        bool more;
        int64_t steps = 0;
        struct table table = {.source = mem_strdup("t"), .n = 1, .rows = n};
        table.columns = mem_array(1, sizeof *table.columns);
        table.columns->name = "x";
        tensor_share(&table.columns->tensor, &values);
        assert_int_equal(batches_of_table(&table, &f, &batches, &err), 0);
        while (!batches->next(batches, &batch, &more, &err) && more) {
            assert_int_equal(batch.step, ++steps);
            for (int64_t i = 0; i < tensor_count(&batch.tensors[0].tensor); i++)
                seen[((int64_t *)batch.tensors[0].tensor.data)[i]]++;
            batch_release(&batch);
        }
        assert_int_equal(steps, batches->expected);
        batches_free(batches);
    }
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(seen[i], f.epochs);
    tensor_release(&values);
}

static void every_row_once_an_epoch(void **unused)
{
    (void)unused;
    for (int64_t n = 5; n < 24; n++)
        for (int shards = 1; shards <= 3; shards++)
            for (int shuffle = 0; shuffle < 2; shuffle++) {
                struct batch_options f = {
                    .batch = 4, .epochs = 3, .n_shards = shards, .shuffle = shuffle};
                check_epoch(n, &f);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_positions),      cmocka_unit_test(words_of_a_column),
        cmocka_unit_test(casts_and_arithmetic),    cmocka_unit_test(one_hot),
        cmocka_unit_test(standardized_columns),    cmocka_unit_test(permutations),
        cmocka_unit_test(standardized_with_gaps),  cmocka_unit_test(kinds_of_cells),
        cmocka_unit_test(every_row_once_an_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
