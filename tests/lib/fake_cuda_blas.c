/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS in the tests: loops over matrices in the layout of its manual, which refuse what it
 * refuses. Sums are in float64. TF_TEST_DEVICE_LACKS=blas: there is no such library.
 */
#include <string.h>

#include "base/memory.h"
#include "lib/fake_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "tensor/tensor.h"

enum { BLAS_INVALID = 7, BLAS_NO_STREAM = 1 };

#define WORKSPACE_BYTES 4096

struct fake_blas {
    bool is_ready;
};

static int load(struct error *err)
{
    return fake_load("blas", "matrix products", err);
}

static int handle_new(void **handle)
{
    *handle = mem_alloc(sizeof(struct fake_blas));
    *(struct fake_blas *)*handle = (struct fake_blas){false};
    return 0;
}

static void handle_free(void *handle)
{
    mem_free(handle);
}

static int use(void *handle, struct CUstream_st *stream, void *workspace)
{
    struct fake_blas *blas = handle;
    blas->is_ready = stream && workspace;
    return blas->is_ready ? 0 : BLAS_INVALID;
}

static bool is_valid(const struct cuda_gemm *g)
{
    int64_t rows_a = g->transpose_a ? g->k : g->m, rows_b = g->transpose_b ? g->n : g->k;
    return g->type <= CUDA_BFLOAT16 && g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batches >= 0 &&
           g->lda >= (rows_a ? rows_a : 1) && g->ldb >= (rows_b ? rows_b : 1) &&
           g->ldc >= (g->m ? g->m : 1);
}

/* A matrix of a batch, all of its columns in a vector. */
static struct tensor matrix(enum dtype type, const void *data, int64_t step, int64_t batch)
{
    struct shape shape = shape_vector(INT32_MAX);
    const char *at = (const char *)data + batch * step * (int64_t)dtype_bytes(type);
    return tensor_borrow(type, &shape, (void *)(uintptr_t)at);
}

/* Rounds to the 11 bits of TF32, if that is requested: to nearest, ties away from zero. */
static double rounded(const struct cuda_gemm *g, double x)
{
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x1000) & 0xffffe000;
    memcpy(&value, &bits, sizeof bits);
    return g->tf32 ? (double)value : x;
}

static double product_at(const struct cuda_gemm *g, int64_t batch, int64_t i, int64_t j)
{
    struct tensor a = matrix(cuda_dtype(g->type), g->a, g->step_a, batch);
    struct tensor b = matrix(cuda_dtype(g->type), g->b, g->step_b, batch);
    double sum = 0;
    for (int64_t k = 0; k < g->k; k++)
        sum +=
            rounded(g, tensor_get_float64(&a, g->transpose_a ? i * g->lda + k : k * g->lda + i)) *
            rounded(g, tensor_get_float64(&b, g->transpose_b ? k * g->ldb + j : j * g->ldb + k));
    return sum;
}

static int gemm(void *handle, const struct cuda_gemm *g)
{
    if (!((const struct fake_blas *)handle)->is_ready)
        return BLAS_NO_STREAM;
    if (!is_valid(g))
        return BLAS_INVALID;
    enum dtype result = g->wide_result && g->type != CUDA_FLOAT64 ? FLOAT32 : cuda_dtype(g->type);
    for (int64_t batch = 0; batch < g->batches; batch++) {
        struct tensor c = matrix(result, g->c, g->step_c, batch);
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                double before = g->accumulate ? tensor_get_float64(&c, j * g->ldc + i) : 0;
                tensor_set_float64(&c, j * g->ldc + i, before + product_at(g, batch, i, j));
            }
    }
    return 0;
}

/* ---- triangular equations ---- */

static bool is_valid_trsm(const struct cuda_trsm *t)
{
    int64_t rows_a = t->right ? t->n : t->m;
    return t->type <= CUDA_FLOAT64 && t->m >= 0 && t->n >= 0 && t->batches >= 0 &&
           t->lda >= (rows_a ? rows_a : 1) && t->ldb >= (t->m ? t->m : 1);
}

/* Returns element [i,j] of the triangle op(A); the other triangle is not read. */
static double triangle_at(const struct cuda_trsm *t, const struct tensor *a, int64_t i, int64_t j)
{
    int64_t row = t->transpose ? j : i, column = t->transpose ? i : j;
    if (t->upper ? row > column : row < column)
        return 0;
    return tensor_get_float64(a, column * t->lda + row);
}

/* Solves one column of op(A) X = B or, with A on the right, one row of op(A)^T X^T = B^T: elements
 * of `x` are `step` apart. */
static void solve_line(const struct cuda_trsm *t, const struct tensor *a, struct tensor *b,
                       int64_t line)
{
    int64_t n = t->right ? t->n : t->m;
    int64_t at = t->right ? line : line * t->ldb, step = t->right ? t->ldb : 1;
    bool forward = t->upper != t->transpose ? t->right : !t->right;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = forward ? k : n - 1 - k;
        double sum = tensor_get_float64(b, at + i * step);
        for (int64_t l = 0; l < k; l++) {
            int64_t j = forward ? l : n - 1 - l;
            double element = t->right ? triangle_at(t, a, j, i) : triangle_at(t, a, i, j);
            sum -= element * tensor_get_float64(b, at + j * step);
        }
        tensor_set_float64(b, at + i * step, sum / triangle_at(t, a, i, i));
    }
}

static int trsm(void *handle, const struct cuda_trsm *t)
{
    if (!((const struct fake_blas *)handle)->is_ready)
        return BLAS_NO_STREAM;
    if (!is_valid_trsm(t))
        return BLAS_INVALID;
    for (int64_t batch = 0; batch < t->batches; batch++) {
        struct tensor a = matrix(cuda_dtype(t->type), t->a, t->step_a, batch);
        struct tensor b = matrix(cuda_dtype(t->type), t->b, t->step_b, batch);
        for (int64_t line = 0; line < (t->right ? t->m : t->n); line++)
            solve_line(t, &a, &b, line);
    }
    return 0;
}

static const char *error_text(int status)
{
    return status == BLAS_INVALID ? "an argument is invalid" : "no stream is set";
}

const struct cuda_blas fake_cuda_blas = {
    .calls = {"cuBLAS", load, error_text, handle_new, handle_free, use, WORKSPACE_BYTES},
    .gemm = gemm,
    .trsm = trsm};
