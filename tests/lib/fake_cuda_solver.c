/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER in the tests: loops over matrices by columns, in the layout of its manual, which refuse
 * what it refuses and promise no more than it: after a zero pivot, or a minor that is not positive,
 * there is garbage, as there is in the workspace. Sums are in float64.
 * TF_TEST_DEVICE_LACKS=solver: there is no such library.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "lib/fake_cuda.h"

enum { SOLVER_NO_STREAM = 1, SOLVER_INVALID = 3 };

#define GARBAGE 0xff /* NaNs, and pivots that are no rows */

struct fake_solver {
    bool is_ready;
};

/* One matrix by columns. */
struct column_matrix {
    int rows, columns;
    double *at;
};

static int load(struct error *err)
{
    return fake_load("solver", "factors", err);
}

static int handle_new(void **handle)
{
    *handle = mem_alloc(sizeof(struct fake_solver));
    *(struct fake_solver *)*handle = (struct fake_solver){false};
    return 0;
}

static void handle_free(void *handle)
{
    mem_free(handle);
}

static int use(void *handle, struct CUstream_st *stream, void *no_workspace)
{
    struct fake_solver *solver = handle;
    (void)no_workspace;
    solver->is_ready = stream;
    return solver->is_ready ? 0 : SOLVER_INVALID;
}

/* ---- matrices ---- */

static size_t type_bytes(enum cuda_type type)
{
    return type == CUDA_FLOAT64 ? sizeof(double) : sizeof(float);
}

static double *element(const struct column_matrix *m, int i, int j)
{
    return &m->at[(int64_t)j * m->rows + i];
}

static void swap_rows(const struct column_matrix *m, int i, int k)
{
    for (int j = 0; j < m->columns; j++) {
        double value = *element(m, i, j);
        *element(m, i, j) = *element(m, k, j);
        *element(m, k, j) = value;
    }
}

static struct column_matrix read_matrix(enum cuda_type type, int rows, int columns,
                                        const void *data, int64_t index)
{
    int64_t count = (int64_t)rows * columns;
    struct column_matrix m = {rows, columns, mem_array((size_t)count, sizeof(double))};
    for (int64_t i = 0; i < count; i++)
        m.at[i] = type == CUDA_FLOAT64 ? ((const double *)data)[index * count + i]
                                       : (double)((const float *)data)[index * count + i];
    return m;
}

static void write_element(enum cuda_type type, const struct column_matrix *m, int64_t i, void *data,
                          int64_t index)
{
    int64_t at = index * m->rows * m->columns + i;
    if (type == CUDA_FLOAT64)
        ((double *)data)[at] = m->at[i];
    else
        ((float *)data)[at] = (float)m->at[i];
}

static void write_matrix(enum cuda_type type, struct column_matrix *m, void *data, int64_t index)
{
    for (int64_t i = 0; i < (int64_t)m->rows * m->columns; i++)
        write_element(type, m, i, data, index);
    mem_free(m->at);
}

/* ---- factors ---- */

/* Returns a size of workspace that nobody guesses. */
static int workspace_for(const struct cuda_factors *f)
{
    return f->kind == CUDA_LU ? 3 * f->n + 5 : 2 * f->n + 7;
}

static int workspace(void *handle, const struct cuda_factors *f, int *elements)
{
    (void)handle;
    *elements = workspace_for(f);
    return f->n > 0 && f->type <= CUDA_FLOAT64 ? 0 : SOLVER_INVALID;
}

static int largest_below(const struct column_matrix *a, int k)
{
    int best = k;
    for (int i = k + 1; i < a->rows; i++)
        if (fabs(*element(a, i, k)) > fabs(*element(a, best, k)))
            best = i;
    return best;
}

static void eliminate(const struct column_matrix *a, int k)
{
    for (int i = k + 1; i < a->rows; i++) {
        double factor = *element(a, i, k) /= *element(a, k, k);
        for (int j = k + 1; j < a->columns; j++)
            *element(a, i, j) -= factor * *element(a, k, j);
    }
}

/* Spoils what the manual leaves undefined: rows and columns from `first` on. */
static void spoil(const struct column_matrix *a, int first)
{
    for (int j = first; j < a->columns; j++)
        for (int i = first; i < a->rows; i++)
            *element(a, i, j) = NAN;
}

static int lu(const struct column_matrix *a, int32_t *pivots)
{
    memset(pivots, GARBAGE, (size_t)a->rows * sizeof *pivots);
    for (int k = 0; k < a->rows; k++) {
        int best = largest_below(a, k);
        pivots[k] = best + 1;
        swap_rows(a, k, best);
        if (*element(a, k, k) == 0) {
            spoil(a, k + 1);
            return k + 1;
        }
        eliminate(a, k);
    }
    return 0;
}

/* Factors the upper triangle; the other one is neither read nor written. */
static int cholesky(const struct column_matrix *a)
{
    for (int j = 0; j < a->rows; j++)
        for (int i = 0; i <= j; i++) {
            double sum = *element(a, i, j);
            for (int k = 0; k < i; k++)
                sum -= *element(a, k, i) * *element(a, k, j);
            if (i == j && !(sum > 0))
                return j + 1;
            *element(a, i, j) = i == j ? sqrt(sum) : sum / *element(a, i, i);
        }
    return 0;
}

static bool is_valid_factors(const struct cuda_factors *f)
{
    return f->n > 0 && f->type <= CUDA_FLOAT64 && f->matrices >= 0 && f->a && f->infos &&
           f->workspace && (f->kind == CUDA_LU) == (f->pivots != NULL) &&
           f->workspace_elements == workspace_for(f);
}

static int factor(void *handle, const struct cuda_factors *f)
{
    if (!((const struct fake_solver *)handle)->is_ready)
        return SOLVER_NO_STREAM;
    if (!is_valid_factors(f))
        return SOLVER_INVALID;
    for (int64_t m = 0; m < f->matrices; m++) {
        memset(f->workspace, GARBAGE, (size_t)f->workspace_elements * type_bytes(f->type));
        struct column_matrix a = read_matrix(f->type, f->n, f->n, f->a, m);
        f->infos[m] = f->kind == CUDA_LU ? lu(&a, f->pivots + m * f->n) : cholesky(&a);
        write_matrix(f->type, &a, f->a, m);
    }
    return 0;
}

/* ---- solutions ---- */

/* Replaces B by X of T X = B, where T is a triangle of `lu`, or its transpose; L has a unit
 * diagonal. */
static void solve_triangle(const struct column_matrix *lu, bool upper, bool transpose,
                           const struct column_matrix *b)
{
    bool forward = upper == transpose;
    for (int column = 0; column < b->columns; column++)
        for (int k = 0; k < lu->rows; k++) {
            int i = forward ? k : lu->rows - 1 - k;
            double sum = *element(b, i, column);
            for (int l = 0; l < k; l++) {
                int j = forward ? l : lu->rows - 1 - l;
                sum -=
                    (transpose ? *element(lu, j, i) : *element(lu, i, j)) * *element(b, j, column);
            }
            *element(b, i, column) = upper ? sum / *element(lu, i, i) : sum;
        }
}

/* Exchanges rows; returns false if a pivot is no row. */
static bool exchange(const struct column_matrix *b, const int32_t *pivots, bool backward)
{
    for (int k = 0; k < b->rows; k++) {
        int i = backward ? b->rows - 1 - k : k;
        if (pivots[i] < 1 || pivots[i] > b->rows)
            return false;
        swap_rows(b, i, pivots[i] - 1);
    }
    return true;
}

/* Solves one system. The solution by factors of a singular matrix is garbage as a whole. */
static void solve_one(const struct cuda_lu_solution *s, const struct column_matrix *lu,
                      const int32_t *pivots, const struct column_matrix *b)
{
    bool fits = s->transpose || exchange(b, pivots, false);
    solve_triangle(lu, s->transpose, s->transpose, b);
    solve_triangle(lu, !s->transpose, s->transpose, b);
    if (s->transpose)
        fits = exchange(b, pivots, true);
    if (!fits)
        spoil(b, 0);
}

static int solve(void *handle, const struct cuda_lu_solution *s)
{
    if (!((const struct fake_solver *)handle)->is_ready)
        return SOLVER_NO_STREAM;
    if (s->n <= 0 || s->columns < 0 || s->type > CUDA_FLOAT64 || !s->factors || !s->pivots ||
        !s->b || !s->info)
        return SOLVER_INVALID;
    for (int64_t m = 0; m < s->matrices; m++) {
        struct column_matrix lu = read_matrix(s->type, s->n, s->n, s->factors, m);
        struct column_matrix b = read_matrix(s->type, s->n, s->columns, s->b, m);
        solve_one(s, &lu, s->pivots + m * s->n, &b);
        *s->info = 0;
        write_matrix(s->type, &b, s->b, m);
        mem_free(lu.at);
    }
    return 0;
}

static const char *error_text(int status)
{
    return status == SOLVER_INVALID ? "an argument is invalid" : "no stream is set";
}

const struct cuda_solver fake_cuda_solver = {
    .calls = {"cuSOLVER", load, error_text, handle_new, handle_free, use, 0},
    .workspace = workspace,
    .factor = factor,
    .solve = solve};
