/* SPDX-License-Identifier: Apache-2.0
 *
 * The libraries are column-major, and so see the transpose of each of our matrices: Cholesky uses
 * the other triangle, a solution the other transpose, and triangular systems have their matrix on
 * the other side. Right-hand sides for LU factors are transposed. Each step processes the whole
 * batch.
 */
#include "ops/matrix/linear_steps_cuda.h"

#include "ops/array/launchers_cuda.h"
#include "ops/device/blas_cuda.h"
#include "ops/matrix/launchers_cuda.h"

static int enqueued(int code)
{
    return code == KERNEL_ENQUEUED ? 0 : code;
}

/* Checks a launcher's result. */
static int launched(const struct linear_job *job, int result)
{
    return enqueued(cuda_launched(job->call, result));
}

int linear_cast(const struct linear_job *job, const struct cuda_cast *launch)
{
    return launched(job, cuda_cast(launch, cuda_compute(job->call)));
}

static int copy_operand(const struct linear_job *job, const void *from, int64_t columns, void *to)
{
    return linear_cast(job, &(struct cuda_cast){.from = job->type,
                                                .to = job->type,
                                                .n = job->sizes.matrices * job->sizes.n * columns,
                                                .x = from,
                                                .y = to});
}

static int square(const struct linear_job *job, enum cuda_square_form form, const void *from,
                  void *to)
{
    struct cuda_square launch = {.form = form,
                                 .type = job->type,
                                 .n = job->sizes.n,
                                 .matrices = job->sizes.matrices,
                                 .from = from,
                                 .to = to};
    return launched(job, cuda_square(&launch, cuda_compute(job->call)));
}

/* Transposes each matrix, from [rows, columns] to [columns, rows]. */
static int transpose(const struct linear_job *job, int64_t rows, int64_t columns, const void *from,
                     void *to)
{
    struct cuda_strided_copy launch = {.element_bytes = cuda_float_bytes(job->type),
                                       .rank = 3,
                                       .dims = {job->sizes.matrices, columns, rows},
                                       .from_strides = {rows * columns, 1, columns},
                                       .to_strides = {rows * columns, rows, 1},
                                       .from = from,
                                       .to = to};
    return launched(job, cuda_strided(&launch, cuda_compute(job->call)));
}

/* Factors the matrices in place. `code`: the fault if one cannot be factored; FAULT_NONE: that is
 * no error. */
static int factor(const struct linear_job *job, enum cuda_factors_kind kind, void *a, uint16_t code)
{
    struct cuda_factors factors = {.kind = kind,
                                   .type = job->type,
                                   .n = job->sizes.n,
                                   .matrices = job->sizes.matrices,
                                   .a = a,
                                   .pivots = (int32_t *)job->parts[PART_PIVOTS],
                                   .infos = (int32_t *)job->parts[PART_INFOS],
                                   .workspace = job->parts[PART_WORKSPACE],
                                   .workspace_elements = job->workspace};
    struct cuda_infos launch = {.matrices = job->sizes.matrices,
                                .infos = factors.infos,
                                .code = code,
                                .fault = cuda_fault_of(job->call, 0)};
    int result = enqueued(cuda_solver_factor(job->call, &factors));
    if (result || code == FAULT_NONE)
        return result;
    return launched(job, cuda_check_infos(&launch, cuda_compute(job->call)));
}

static int copy_and_factor(const struct linear_job *job, uint16_t code)
{
    void *factors = job->parts[PART_FACTORS];
    int result = copy_operand(job, job->a, job->sizes.n, factors);
    return result ? result : factor(job, CUDA_LU, factors, code);
}

/* Solves by the factors of what the library sees, in place of b: [n, columns], column-major. */
static int solve_by_factors(const struct linear_job *job, bool transposed, int columns, void *b)
{
    struct cuda_lu_solution solution = {.type = job->type,
                                        .transpose = transposed,
                                        .n = job->sizes.n,
                                        .columns = columns,
                                        .matrices = job->sizes.matrices,
                                        .factors = job->parts[PART_FACTORS],
                                        .pivots = (const int32_t *)job->parts[PART_PIVOTS],
                                        .b = b,
                                        .info = (int32_t *)job->parts[PART_INFOS] +
                                                job->sizes.matrices};
    return enqueued(cuda_solver_solve(job->call, &solution));
}

/* Solves op(A) X = B or, with A on the right, X op(A) = B, all row-major; A is `job->a`. */
static int solve_triangular(const struct linear_job *job, bool right, struct linear_flags flags,
                            void *b)
{
    int64_t n = job->sizes.n, columns = job->sizes.columns;
    struct cuda_trsm trsm = {.type = job->type,
                             .right = !right,
                             .upper = flags.lower,
                             .transpose = flags.adjoint,
                             .m = columns,
                             .n = n,
                             .batches = job->sizes.matrices,
                             .a = job->a,
                             .b = b,
                             .lda = n,
                             .ldb = columns,
                             .step_a = n * n,
                             .step_b = n * columns};
    return enqueued(cuda_blas_trsm(job->call, &trsm));
}

/* ---- ops ---- */

/* The library's inverse of the transpose of A is the transpose of the inverse. */
static int run_inverse(const struct linear_job *job)
{
    int code = copy_and_factor(job, FAULT_PIVOT);
    if (!code)
        code = square(job, CUDA_IDENTITY, NULL, job->out);
    return code ? code : solve_by_factors(job, job->flags.adjoint, job->sizes.n, job->out);
}

static int run_determinant(const struct linear_job *job)
{
    struct cuda_determinant launch = {.type = job->type,
                                      .n = job->sizes.n,
                                      .matrices = job->sizes.matrices,
                                      .factors = job->parts[PART_FACTORS],
                                      .pivots = (const int32_t *)job->parts[PART_PIVOTS],
                                      .infos = (const int32_t *)job->parts[PART_INFOS],
                                      .out = job->out};
    int code = launch.n ? copy_and_factor(job, FAULT_NONE) : 0;
    if (code)
        return code;
    return launched(job, cuda_determinant(&launch, cuda_compute(job->call)));
}

/* Zeros above the diagonal, which the library does not touch, are written before. */
static int run_cholesky(const struct linear_job *job)
{
    int code = square(job, CUDA_LOWER, job->a, job->out);
    return code ? code : factor(job, CUDA_CHOLESKY, job->out, FAULT_MINOR);
}

static int run_solve(const struct linear_job *job)
{
    int n = job->sizes.n, columns = job->sizes.columns;
    void *b = columns == 1 ? job->out : job->parts[PART_MORE];
    int code = copy_and_factor(job, FAULT_PIVOT);
    if (!code && columns == 1)
        code = copy_operand(job, job->b, 1, b);
    else if (!code)
        code = transpose(job, n, columns, job->b, b);
    if (!code)
        code = solve_by_factors(job, !job->flags.adjoint, columns, b);
    return code || columns == 1 ? code : transpose(job, columns, n, b, job->out);
}

static int run_triangular(const struct linear_job *job)
{
    struct cuda_diagonal launch = {.type = job->type,
                                   .n = job->sizes.n,
                                   .matrices = job->sizes.matrices,
                                   .a = job->a,
                                   .fault = cuda_fault_of(job->call, 0)};
    int code = launched(job, cuda_check_diagonal(&launch, cuda_compute(job->call)));
    if (!code)
        code = copy_operand(job, job->b, job->sizes.columns, job->out);
    return code ? code : solve_triangular(job, false, job->flags, job->out);
}

/* to = l^T g: the library sees the product of the transpose of g and of l. */
static int multiply_transposed(const struct linear_job *job, const void *l, const void *g, void *to)
{
    int64_t n = job->sizes.n;
    struct cuda_gemm gemm = {.type = job->type,
                             .transpose_b = true,
                             .m = n,
                             .n = n,
                             .k = n,
                             .batches = job->sizes.matrices,
                             .a = g,
                             .b = l,
                             .c = to,
                             .lda = n,
                             .ldb = n,
                             .ldc = n,
                             .step_a = n * n,
                             .step_b = n * n,
                             .step_c = n * n};
    return enqueued(cuda_blas_gemm(job->call, &gemm));
}

/* L^-T phi(L^T G) L^-1, made symmetric; phi: lower triangle with half the diagonal. */
static int run_cholesky_grad(const struct linear_job *job)
{
    void *l = job->parts[PART_FACTORS], *m = job->parts[PART_MORE];
    const struct linear_flags as_it_is = {.lower = true},
                              adjoint = {.lower = true, .adjoint = true};
    int code = square(job, CUDA_LOWER, job->a, l);
    if (!code)
        code = square(job, CUDA_LOWER, job->b, job->out);
    if (!code)
        code = multiply_transposed(job, l, job->out, m);
    if (!code)
        code = square(job, CUDA_LOWER_HALVED, m, m);
    if (!code)
        code = solve_triangular(job, false, adjoint, m);
    if (!code)
        code = solve_triangular(job, true, as_it_is, m);
    return code ? code : square(job, CUDA_SYMMETRIC, m, job->out);
}

static const struct linear_form forms[] = {
    {"MatrixInverse", run_inverse, true, false, true, CUDA_LU},
    {"MatrixDeterminant", run_determinant, true, false, true, CUDA_LU},
    {"Cholesky", run_cholesky, false, false, true, CUDA_CHOLESKY},
    {"CholeskyGrad", run_cholesky_grad, true, true, false, CUDA_LU},
    {"MatrixSolve", run_solve, true, true, true, CUDA_LU},
    {"MatrixTriangularSolve", run_triangular, false, false, false, CUDA_LU},
};

const struct linear_form *linear_form_for(const struct node *node)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (node_is(node, forms[i].op))
            return &forms[i];
    return NULL;
}
