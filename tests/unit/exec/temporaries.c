/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that kernels ask for while they run: it is gone when the kernel is done, not with the
 * step.
 */
#include "lib/session.h"

#include "base/memory.h"

#define LIMIT ((size_t)40 << 20)

/* Each unrolls an image of 2 MiB to a matrix of 18 MiB. */
static const char convolutions[] = "x = Placeholder() {dtype=float64, shape=[1,128,128,16]}\n"
                                   "shape = Const() {dtype=int32, value=[3,3,16,16]}\n"
                                   "value = Const() {dtype=float64, value=0.0625}\n"
                                   "f = Fill(shape, value)\n"
                                   "a = Conv2D(x, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                                   "b = Conv2D(a, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                                   "c = Conv2D(b, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                                   "axes = Const() {dtype=int32, value=[0,1,2,3]}\n"
                                   "y = Max(c, axes)\n";

static double run_convolutions(struct fixture *f, const struct tensor *x)
{
    struct tensor y;
    if (fixture_run(f, "y", "x", x, &y))
        fail_msg("%s", f->err.text);
    double largest = tensor_get_float64(&y, 0);
    tensor_release(&y);
    return largest;
}

static void one_matrix_at_a_time(bool dynamic)
{
    static const struct shape shape = {.rank = 4, .dims = {1, 128, 128, 16}};
    struct error err = ERROR_INIT;
    struct tensor x;
    struct fixture f;
    assert_int_equal(tensor_alloc(&x, FLOAT64, &shape, &err), 0);
    for (int64_t i = 0; i < tensor_count(&x); i++)
        ((double *)x.data)[i] = 1;
    fixture_open(&f, convolutions, dynamic);
    for (int i = 0; i < 3; i++) /* inside each multiplies by 9: 3 * 3 of 16 channels, of 1/16 */
        assert_float_equal(run_convolutions(&f, &x), 9 * 9 * 9, 1e-9);
    fixture_close(&f);
    tensor_release(&x);
}

static void static_plans_give_back(void **state)
{
    (void)state;
    one_matrix_at_a_time(false);
}

static void dynamic_plans_give_back(void **state)
{
    (void)state;
    one_matrix_at_a_time(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(static_plans_give_back),
                                       cmocka_unit_test(dynamic_plans_give_back)};
    mem_set_limit(LIMIT, "the test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
