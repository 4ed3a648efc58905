/* SPDX-License-Identifier: Apache-2.0
 *
 * Products and convolutions of float32 use the library that has kernels for the machine: oneDNN's
 * for x86-64, OpenBLAS' elsewhere. Calls are counted: functions that this program exports hide the
 * libraries' own.
 */
#include <dlfcn.h>
#include <math.h>

#include "base/memory.h"
#include "lib/session.h"

/* Declared as in cblas.h, whose enumerations are ints, and in dnnl.h, whose status is one. */
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
int dnnl_sgemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
               const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
               int64_t ldc);

static int by_openblas, by_onednn;

static void *of_library(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = handle ? dlsym(handle, name) : NULL;
    if (!symbol)
        fail_msg("%s has no %s", library, name);
    return symbol;
}

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    void *symbol = of_library("libopenblas.so.0", "cblas_sgemm");
    __typeof__(cblas_sgemm) *multiply;
    memcpy(&multiply, &symbol, sizeof multiply);
    by_openblas++;
    multiply(order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int dnnl_sgemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
               const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
               int64_t ldc)
{
    void *symbol = of_library("libdnnl.so.2", "dnnl_sgemm");
    __typeof__(dnnl_sgemm) *multiply;
    memcpy(&multiply, &symbol, sizeof multiply);
    by_onednn++;
    return multiply(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* clang-format off */
static const char graph_text[] =
    "x = Placeholder() {dtype=float32, shape=[48,48]}\n"
    "product = MatMul(x, x)\n"
    "turned = MatMul(x, x) {transpose_a=true}\n"
    "skinny_shape = Const() {dtype=int32, value=[8,288]}\n"
    "skinny = Reshape(x, skinny_shape)\n"
    "narrow = MatMul(skinny, skinny) {transpose_b=true}\n"
    "image_shape = Const() {dtype=int32, value=[1,24,24,4]}\n"
    "filter_shape = Const() {dtype=int32, value=[3,3,4,64]}\n"
    "image = Reshape(x, image_shape)\n"
    "filter = Reshape(x, filter_shape)\n"
    "conv = Conv2D(image, filter) {strides=[1,1,1,1], padding=\"VALID\"}\n";
/* clang-format on */

static struct tensor compute(struct fixture *f, const char *what)
{
    struct shape square = shape_matrix(48, 48);
    static float x[48 * 48];
    struct tensor feed, result;
    for (int i = 0; i < 48 * 48; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 64;
    feed = tensor_borrow(FLOAT32, &square, x);
    by_openblas = by_onednn = 0;
    if (fixture_run(f, what, "x", &feed, &result))
        fail_msg("%s", f->err.text);
    return result;
}

/* Only the library that has kernels was called. */
static void check_library(const char *what)
{
#ifdef __x86_64__
    int right = by_onednn, wrong = by_openblas;
#else
    int right = by_openblas, wrong = by_onednn;
#endif
    if (right < 1 || wrong)
        fail_msg("%s: %d calls of OpenBLAS, %d of oneDNN", what, by_openblas, by_onednn);
}

static void products(void **state)
{
    static const char *const fetched[] = {"product", "turned", "narrow"};
    struct fixture f;
    (void)state;
    fixture_open(&f, graph_text, false);
    for (size_t k = 0; k < sizeof fetched / sizeof *fetched; k++) {
        struct tensor result = compute(&f, fetched[k]);
        check_library(fetched[k]);
        tensor_release(&result);
    }
    fixture_close(&f);
}

/* oneDNN's convolution calls none of the counted functions; the value is that of the sum. */
static void convolution(void **state)
{
    struct fixture f;
    double sum = 0;
    (void)state;
    fixture_open(&f, graph_text, false);
    struct tensor result = compute(&f, "conv");
    assert_int_equal(by_onednn, 0);
#ifdef __x86_64__
    assert_int_equal(by_openblas, 0);
#else
    assert_true(by_openblas > 0);
#endif
    for (int y = 0; y < 3; y++)
        for (int i = 0; i < 12; i++) { /* columns and channels of the first window */
            int image = y * 24 * 4 + i, filter = (y * 12 + i) * 64;
            sum += (image * 37 % 101 - 50) / 64.0 * ((filter * 37 % 101 - 50) / 64.0);
        }
    assert_true(fabs(tensor_get_float64(&result, 0) - sum) < 1e-4);
    tensor_release(&result);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
