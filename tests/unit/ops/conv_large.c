/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution and its gradients whose unrolled windows exceed what a device unrolls at once,
 * compared with a formula: windows of ones over images of one value each.
 */
#include "lib/session.h"

/* Windows of 64 x 64 at 64 x 64 places: 128 MiB per image. */
static const char graph[] =
    "scale = Placeholder() {dtype=float64, shape=[2,1,1,1]}\n"
    "image_sizes = Const() {dtype=int32, value=[2,127,127,1]}\n"
    "filter_sizes = Const() {dtype=int32, value=[64,64,1,1]}\n"
    "one = Const() {dtype=float64, value=1}\n"
    "ones = Fill(image_sizes, one)\n"
    "x = Mul(ones, scale)\n"
    "f = Fill(filter_sizes, one)\n"
    "y = Conv2D(x, f) {strides=[1,1,1,1], padding=\"VALID\"}\n"
    "dx = Conv2DBackpropInput(image_sizes, f, y) {strides=[1,1,1,1], padding=\"VALID\"}\n"
    "df = Conv2DBackpropFilter(x, filter_sizes, y) {strides=[1,1,1,1], padding=\"VALID\"}\n";

static struct tensor run(struct fixture *f, const char *fetch)
{
    static const struct shape shape = {.rank = 4, .dims = {2, 1, 1, 1}};
    double values[2] = {1, 2};
    struct tensor scale = tensor_borrow(FLOAT64, &shape, values), result;
    if (fixture_run(f, fetch, "scale", &scale, &result))
        fail_msg("%s", f->err.text);
    return result;
}

/* Number of windows over the cell at `at` of 127, along an axis. */
static double windows_over(int64_t at)
{
    return at < 63 ? (double)(at + 1) : (double)(127 - at);
}

static void sums_are_exact(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f, graph, false);
    struct tensor y = run(&f, "y"), dx = run(&f, "dx"), df = run(&f, "df");
    for (int64_t i = 0; i < tensor_count(&y); i++)
        assert_float_equal(tensor_get_float64(&y, i), i < 4096 ? 4096 : 8192, 0);
    for (int64_t i = 0; i < tensor_count(&dx); i++) {
        int64_t cell = i % (127 * 127);
        double count = windows_over(cell / 127) * windows_over(cell % 127);
        assert_float_equal(tensor_get_float64(&dx, i), count * (i == cell ? 4096 : 8192), 0);
    }
    for (int64_t i = 0; i < tensor_count(&df); i++)
        assert_float_equal(tensor_get_float64(&df, i), 4096. * (4096 + 2 * 8192), 0);
    tensor_release(&y);
    tensor_release(&dx);
    tensor_release(&df);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_exact)};
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
