/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/blas_cpu.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "ops/math/parallel_cpu.h"

/* Rows and columns of the blocks of C, if the partition must not depend on the team.
 */
#define BLOCK_ROWS 128
#define BLOCK_COLUMNS 512

struct operands {
    const char *a, *b;
    char *c;
    int64_t lda, ldb, ldc;
};

/* Integers: each row of C is a sum of rows of op(B), so that the inner loop is contiguous unless B
 * is transposed. Unsigned arithmetic wraps around. */
#define INTEGER_GEMM(name, type)                                                                   \
    static void name(const struct gemm *g, const struct operands *o)                               \
    {                                                                                              \
        const type *a = (const type *)o->a, *b = (const type *)o->b;                               \
        for (int64_t i = 0; i < g->m; i++) {                                                       \
            type *c = (type *)o->c + i * o->ldc;                                                   \
            if (!g->accumulate)                                                                    \
                memset(c, 0, (size_t)g->n * sizeof *c);                                            \
            for (int64_t p = 0; p < g->k; p++) {                                                   \
                type x = g->transpose_a ? a[p * o->lda + i] : a[i * o->lda + p];                   \
                const type *y = g->transpose_b ? b + p : b + p * o->ldb;                           \
                int64_t stride = g->transpose_b ? o->ldb : 1;                                      \
                if (stride == 1)                                                                   \
                    for (int64_t j = 0; j < g->n; j++)                                             \
                        c[j] += x * y[j];                                                          \
                else                                                                               \
                    for (int64_t j = 0; j < g->n; j++)                                             \
                        c[j] += x * y[j * stride];                                                 \
            }                                                                                      \
        }                                                                                          \
    }

INTEGER_GEMM(gemm_int32, uint32_t)
INTEGER_GEMM(gemm_int64, uint64_t)

static dnnl_status_t gemm_block(const struct gemm *g, const struct operands *o)
{
    switch (g->type) {
    case FLOAT32: {
        const float *a = (const float *)o->a, *b = (const float *)o->b;
        float beta = g->accumulate ? 1.0f : 0.0f;
        if (CPU_DNNL_COMPUTES)
            return dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n,
                              g->k, 1.0f, a, o->lda, b, o->ldb, beta, (float *)o->c, o->ldc);
        cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
                    g->transpose_b ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k,
                    1.0f, a, (int)o->lda, b, (int)o->ldb, beta, (float *)o->c, (int)o->ldc);
        break;
    }
    case FLOAT64:
        cblas_dgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
                    g->transpose_b ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k,
                    1.0, (const double *)o->a, (int)o->lda, (const double *)o->b, (int)o->ldb,
                    g->accumulate ? 1.0 : 0.0, (double *)o->c, (int)o->ldc);
        break;
    case INT32:
        gemm_int32(g, o);
        break;
    default:
        gemm_int64(g, o);
    }
    return dnnl_success;
}

bool gemm_has_rows(const struct gemm *g)
{
    return CPU_DNNL_COMPUTES && g->type == FLOAT32 && g->transpose_a && !g->transpose_b && g->k > 0;
}

bool gemm_rows(const struct gemm *g, const void *a, const void *b, int64_t row, int64_t n,
               void *rows)
{
    const float *column = (const float *)a + row, *restrict by = b;
    struct operands o = {(const char *)column, b, rows, g->m, g->n, g->n};
    struct gemm some = *g;
    some.m = n;
    if (g->k > 1 || g->accumulate)
        return gemm_block(&some, &o) == dnnl_success;
    /* A column by a row, which the library would repack first. 0 + -0 is 0, as there. */
    float *restrict to = rows;
    for (int64_t i = 0; i < n; i++, to += some.n)
        for (int64_t j = 0; j < some.n; j++)
            to[j] = 0 + column[i] * by[j];
    return true;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct blocks {
    const struct gemm *gemm;
    const struct operands *operands;
    int64_t n;
    dnnl_status_t failed; /* one of the failures */
};

static void run_blocks(void *context, int member, int members)
{
    struct blocks *all = context;
    const struct gemm *g = all->gemm;
    int64_t size = (int64_t)dtype_bytes(g->type);
    int64_t across = (g->n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    for (int64_t i = member; i < all->n; i += members) {
        /* Blocks of C are numbered row by row. */
        int64_t row = i / across * BLOCK_ROWS, column = i % across * BLOCK_COLUMNS;
        struct gemm block = *g;
        block.m = smaller(BLOCK_ROWS, g->m - row);
        block.n = smaller(BLOCK_COLUMNS, g->n - column);
        struct operands part = *all->operands;
        part.a += (g->transpose_a ? row : row * part.lda) * size;
        part.b += (g->transpose_b ? column * part.ldb : column) * size;
        part.c += (row * part.ldc + column) * size;
        dnnl_status_t status = gemm_block(&block, &part);
        if (status)
            __atomic_store_n(&all->failed, status, __ATOMIC_RELAXED);
    }
}

/* oneDNN's sgemm is slow at a transposed B (a fifth of the speed at 16 x 4096 x 9216), its matmul
 * fast at the transposed product. Its memory is no larger than B, and B large enough to pay for
 * making the primitive. */
#define TRANSPOSED_WORK (1 << 18)

static bool is_transposed(const struct gemm *g)
{
    return CPU_DNNL_COMPUTES && g->type == FLOAT32 && g->transpose_b && !g->transpose_a &&
           !g->lda && !g->ldb && !g->ldc && g->m > 1 && g->m <= g->k &&
           g->n * g->k >= TRANSPOSED_WORK;
}

size_t gemm_scratch_bytes(const struct gemm *g)
{
    return is_transposed(g) ? (size_t)(g->m * g->n) * sizeof(float) : 0;
}

/* C^T = B A^T, in scratch. The library keeps primitives of sizes that it has met. */
static dnnl_status_t multiply_transposed(const struct gemm *g, const void *a, const void *b)
{
    const dnnl_dims_t dims[] = {{g->n, g->k}, {g->k, g->m}, {g->n, g->m}};
    const dnnl_dims_t strides[] = {{g->k, 1}, {1, g->k}, {g->m, 1}};
    const void *data[] = {b, a, g->scratch};
    const struct cpu_context *context = cpu_context(g->device);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, NULL}, {DNNL_ARG_WEIGHTS, NULL}, {DNNL_ARG_DST, NULL}};
    dnnl_memory_desc_t descs[3];
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_status_t status = dnnl_success;
#define TRY(call) status = status ? status : (call)
    for (int i = 0; i < 3; i++) {
        TRY(dnnl_memory_desc_init_by_strides(&descs[i], 2, dims[i], dnnl_f32, strides[i]));
        TRY(dnnl_memory_create(&args[i].memory, &descs[i], context->engine, (void *)data[i]));
    }
    TRY(dnnl_matmul_desc_init(&product, &descs[0], &descs[1], NULL, &descs[2]));
    TRY(dnnl_primitive_desc_create(&desc, &product, NULL, context->engine, NULL));
    TRY(dnnl_primitive_create(&primitive, desc));
    TRY(dnnl_primitive_execute(primitive, context->stream, 3, args));
#undef TRY
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(args[i].memory);
    return status;
}

/* Copies columns [begin, end) of C from rows of its transpose. */
static int transpose_part(void *context, int64_t begin, int64_t end)
{
    const struct gemm *g = ((void **)context)[0];
    const int64_t m = g->m, n = g->n;
    float *to = ((void **)context)[1];
    for (int64_t first = begin, last; first < end; first = last) {
        const float *from = (const float *)g->scratch + first * m;
        last = smaller(first + 16, end);
        for (int64_t i = 0; i < m; i++) {
            float *restrict row = to + i * n + first;
            for (int64_t j = 0; j < last - first; j++) /* 0 + -0 would be 0 */
                row[j] = g->accumulate ? row[j] + from[j * m + i] : from[j * m + i];
        }
    }
    return 0;
}

int gemm_run(const struct gemm *g, const void *a, const void *b, void *c, int threads,
             struct error *err)
{
    if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX)
        return error_set(err, ERR_DATA, "matrices of %lld x %lld x %lld are too large",
                         (long long)g->m, (long long)g->k, (long long)g->n);
    if (!g->m || !g->n)
        return 0;
    int64_t size = (int64_t)dtype_bytes(g->type);
    int64_t lda = g->transpose_a ? g->m : g->k, ldb = g->transpose_b ? g->k : g->n;
    struct operands o = {
        a, b, c, g->lda ? g->lda : lda, g->ldb ? g->ldb : ldb, g->ldc ? g->ldc : g->n};
    if (!g->k) {
        for (int64_t i = 0; i < g->m && !g->accumulate; i++)
            memset(o.c + i * o.ldc * size, 0, (size_t)(g->n * size));
        return 0;
    }
    bool library_threads = dtype_is_floating(g->type) && !g->deterministic;
    double useful = (double)g->m * (double)g->n * (double)g->k / GEMM_GRAIN;
    if (threads > useful)
        threads = (int)useful;
    threads = threads > 0 ? threads : 1;
    cpu_set_team(library_threads ? threads : 1);
    dnnl_status_t status;
    if (library_threads && g->scratch && is_transposed(g)) {
        void *context[] = {(void *)g, c};
        status = multiply_transposed(g, a, b);
        if (!status)
            parallel_for(threads, g->n, PARALLEL_GRAIN_MOVE / g->m + 1, transpose_part, context);
    } else if (library_threads)
        status = gemm_block(g, &o);
    else {
        struct blocks all = {.gemm = g, .operands = &o, .failed = dnnl_success};
        all.n = (g->m + BLOCK_ROWS - 1) / BLOCK_ROWS * ((g->n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS);
        if (threads <= 1 || all.n <= 1)
            run_blocks(&all, 0, 1);
        else
            team_run(threads, run_blocks, &all);
        status = all.failed;
    }
    return cpu_dnnl_check(status, "matrix product", err);
}
