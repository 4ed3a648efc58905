/* SPDX-License-Identifier: Apache-2.0
 *
 * LAPACK and BLAS on row-major matrices. LAPACK sees the transpose of each: for the inverse and the
 * determinant this does not matter, Cholesky uses the other triangle, a solution the other
 * transpose.
 */
#include <cblas.h>
#include <string.h>

#include "base/memory.h"
#include "exec/device/step_block.h"
#include "ops/device/cpu.h"
#include "ops/device/form_cpu.h"
#include "ops/matrix/linear_sizes.h"

void sgetrf_(const int *, const int *, float *, const int *, int *, int *);
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void sgetri_(const int *, float *, const int *, const int *, float *, const int *, int *);
void dgetri_(const int *, double *, const int *, const int *, double *, const int *, int *);
void sgetrs_(const char *, const int *, const int *, const float *, const int *, const int *,
             float *, const int *, int *, size_t);
void dgetrs_(const char *, const int *, const int *, const double *, const int *, const int *,
             double *, const int *, int *, size_t);
void spotrf_(const char *, const int *, float *, const int *, int *, size_t);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);

/* One matrix of a batch. */
struct problem {
    int n, columns; /* of the matrix; of the right-hand side */
    bool adjoint, lower;
    const void *a, *b;
    void *out;
    int *pivots;
    void *work; /* n * n, then n * columns elements */
};

/* Returns 0, or LAPACK's info k > 0: the k-th pivot is zero, or the leading minor of order k is not
 * positive. */
typedef int solver(const struct problem *p);

#define SOLVERS(type, x)                                                                           \
    static void transpose_##type(const type *from, int rows, int columns, type *to)                \
    {                                                                                              \
        for (int64_t i = 0; i < rows; i++)                                                         \
            for (int64_t j = 0; j < columns; j++)                                                  \
                to[j * rows + i] = from[i * columns + j];                                          \
    }                                                                                              \
    static int inverse_##type(const struct problem *p)                                             \
    {                                                                                              \
        int info, size = p->n * p->n;                                                              \
        if (p->adjoint)                                                                            \
            transpose_##type(p->a, p->n, p->n, p->out);                                            \
        else                                                                                       \
            memmove(p->out, p->a, (size_t)size * sizeof(type));                                    \
        x##getrf_(&p->n, &p->n, p->out, &p->n, p->pivots, &info);                                  \
        if (!info)                                                                                 \
            x##getri_(&p->n, p->out, &p->n, p->pivots, p->work, &size, &info);                     \
        return info;                                                                               \
    }                                                                                              \
    static int determinant_##type(const struct problem *p)                                         \
    {                                                                                              \
        int info;                                                                                  \
        type *lu = p->work, product = 1;                                                           \
        memcpy(lu, p->a, (size_t)p->n *(size_t)p->n * sizeof(type));                               \
        x##getrf_(&p->n, &p->n, lu, &p->n, p->pivots, &info);                                      \
        for (int64_t i = 0; i < p->n; i++)                                                         \
            product *= p->pivots[i] == i + 1 ? lu[i * (p->n + 1)] : -lu[i * (p->n + 1)];           \
        *(type *)p->out = product;                                                                 \
        return 0;                                                                                  \
    }                                                                                              \
    static int cholesky_##type(const struct problem *p)                                            \
    {                                                                                              \
        int info;                                                                                  \
        type *l = p->out;                                                                          \
        memmove(l, p->a, (size_t)p->n *(size_t)p->n * sizeof(type));                               \
        x##potrf_("U", &p->n, l, &p->n, &info, 1);                                                 \
        for (int64_t i = 0; i < p->n; i++)                                                         \
            memset(l + i * p->n + i + 1, 0, (size_t)(p->n - i - 1) * sizeof(type));                \
        return info;                                                                               \
    }                                                                                              \
    static int solve_##type(const struct problem *p)                                               \
    {                                                                                              \
        int info;                                                                                  \
        type *lu = p->work, *rhs = lu + (int64_t)p->n * p->n;                                      \
        memcpy(lu, p->a, (size_t)p->n *(size_t)p->n * sizeof(type));                               \
        transpose_##type(p->b, p->n, p->columns, rhs);                                             \
        x##getrf_(&p->n, &p->n, lu, &p->n, p->pivots, &info);                                      \
        if (info)                                                                                  \
            return info;                                                                           \
        x##getrs_(p->adjoint ? "N" : "T", &p->n, &p->columns, lu, &p->n, p->pivots, rhs, &p->n,    \
                  &info, 1);                                                                       \
        transpose_##type(rhs, p->columns, p->n, p->out);                                           \
        return info;                                                                               \
    }                                                                                              \
    static int triangular_##type(const struct problem *p)                                          \
    {                                                                                              \
        const type *a = p->a;                                                                      \
        for (int64_t i = 0; i < p->n; i++)                                                         \
            if (a[i * (p->n + 1)] == 0)                                                            \
                return (int)i + 1;                                                                 \
        memmove(p->out, p->b, (size_t)p->n *(size_t)p->columns * sizeof(type));                    \
        cblas_##x##trsm(CblasRowMajor, CblasLeft, p->lower ? CblasLower : CblasUpper,              \
                        p->adjoint ? CblasTrans : CblasNoTrans, CblasNonUnit, p->n, p->columns, 1, \
                        a, p->n, p->out, p->columns);                                              \
        return 0;                                                                                  \
    }                                                                                              \
    /* L^-T phi(L^T G) L^-1, made symmetric; phi: lower triangle with half the diagonal. */        \
    static int cholesky_grad_##type(const struct problem *p)                                       \
    {                                                                                              \
        int64_t n = p->n;                                                                          \
        const type *g = p->b;                                                                      \
        type *m = p->work, *out = p->out;                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < n; j++)                                                        \
                m[i * n + j] = j <= i ? g[i * n + j] : 0;                                          \
        cblas_##x##trmm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, p->n,      \
                        p->n, 1, p->a, p->n, m, p->n);                                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = i; j < n; j++)                                                        \
                m[i * n + j] = j == i ? m[i * n + j] / 2 : 0;                                      \
        cblas_##x##trsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, p->n,      \
                        p->n, 1, p->a, p->n, m, p->n);                                             \
        cblas_##x##trsm(CblasRowMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, p->n,   \
                        p->n, 1, p->a, p->n, m, p->n);                                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < n; j++)                                                        \
                out[i * n + j] = (m[i * n + j] + m[j * n + i]) / 2;                                \
        return 0;                                                                                  \
    }

SOLVERS(float, s)
SOLVERS(double, d)

struct linear_row {
    const char *op;
    enum fault_code fault; /* for a matrix that the solver refuses */
    solver *float32, *float64;
};

#define BOTH(name) name##_float, name##_double

static const struct linear_row forms[] = {
    {"MatrixInverse", FAULT_PIVOT, BOTH(inverse)},
    {"MatrixDeterminant", FAULT_NONE, BOTH(determinant)},
    {"Cholesky", FAULT_MINOR, BOTH(cholesky)},
    {"CholeskyGrad", FAULT_NONE, BOTH(cholesky_grad)},
    {"MatrixSolve", FAULT_PIVOT, BOTH(solve)},
    {"MatrixTriangularSolve", FAULT_DIAGONAL, BOTH(triangular)},
};

struct linear_state {
    const struct linear_row *form;
    solver *solve;
    struct linear_flags flags;
    bool deterministic; /* the library's factors depend on the size of the team */
};

static int prepare(struct kernel_setup *setup)
{
    const struct linear_row *form = FORM_FIND(setup, forms);
    if (!form)
        return setup->err->code;
    struct linear_state *state = setup->state = mem_alloc(sizeof *state);
    state->form = form;
    state->solve = setup->in_types[0].type == FLOAT32 ? form->float32 : form->float64;
    state->flags = linear_flags_of(setup->node);
    state->deterministic = setup->deterministic;
    return 0;
}

static int run_batch(struct kernel_call *call, const struct linear_sizes *sizes, struct problem *p)
{
    const struct linear_state *state = call->state;
    size_t size = dtype_bytes(call->in[0]->type), a_bytes = (size_t)p->n * (size_t)p->n * size;
    size_t b_bytes = (size_t)p->n * (size_t)p->columns * size;
    size_t out_bytes = tensor_bytes(call->out[0]) / (size_t)sizes->matrices;
    p->work = kernel_temporary(call, a_bytes + b_bytes + size);
    p->pivots = p->work ? kernel_temporary(call, ((size_t)p->n + 1) * sizeof *p->pivots) : NULL;
    if (!p->pivots)
        return call->err->code;
    cpu_set_team(state->deterministic || call->threads < 1 ? 1 : call->threads);
    for (int64_t i = 0; i < sizes->matrices; i++) {
        struct problem one = *p;
        one.a = (const char *)p->a + (size_t)i * a_bytes;
        one.b = p->b ? (const char *)p->b + (size_t)i * b_bytes : NULL;
        one.out = (char *)p->out + (size_t)i * out_bytes;
        int info = state->solve(&one);
        if (info)
            return kernel_fault(
                call, &(struct fault){.code = state->form->fault, .at = i, .value = info});
    }
    return KERNEL_DONE;
}

static int run(struct kernel_call *call)
{
    const struct linear_state *state = call->state;
    struct linear_sizes sizes;
    struct tensor *out = linear_output(call, &sizes);
    if (!out)
        return call->err->code;
    struct problem p = {.n = sizes.n,
                        .columns = sizes.columns,
                        .adjoint = state->flags.adjoint,
                        .lower = state->flags.lower,
                        .a = call->in[0]->data,
                        .b = call->n_in > 1 ? call->in[1]->data : NULL,
                        .out = out->data};
    if (!tensor_count(out))
        return KERNEL_DONE;
    if (!p.n) { /* the determinant of an empty matrix */
        for (int64_t i = 0; i < sizes.matrices; i++)
            tensor_set_float64(out, i, 1);
        return KERNEL_DONE;
    }
    return run_batch(call, &sizes, &p);
}

const struct kernel_code kernel_linear = {.prepare = prepare, .run = run};
