/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt, of the version that this was built with. Its heuristic lists the algorithms; how
 * partial sums are added (enum cuda_lt_sums) is its reduction scheme. Schemes that add in the
 * result (INPLACE) use counters in the workspace "to guarantee the sequentiality", as the manual
 * says, which does not state an order.
 */
#include "ops/device/blas_lt_cuda.h"

#include "ops/device/library_real_cuda.h"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#define FUNCTIONS(X)                                                                               \
    X(get_version, cublasLtGetVersion)                                                             \
    X(create, cublasLtCreate)                                                                      \
    X(destroy, cublasLtDestroy)                                                                    \
    X(text, cublasLtGetStatusString)                                                               \
    X(desc_new, cublasLtMatmulDescCreate)                                                          \
    X(desc_set, cublasLtMatmulDescSetAttribute)                                                    \
    X(desc_free, cublasLtMatmulDescDestroy)                                                        \
    X(layout_new, cublasLtMatrixLayoutCreate)                                                      \
    X(layout_set, cublasLtMatrixLayoutSetAttribute)                                                \
    X(layout_free, cublasLtMatrixLayoutDestroy)                                                    \
    X(preference_new, cublasLtMatmulPreferenceCreate)                                              \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute)                                        \
    X(preference_free, cublasLtMatmulPreferenceDestroy)                                            \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic)                                                   \
    X(config, cublasLtMatmulAlgoConfigGetAttribute)                                                \
    X(matmul, cublasLtMatmul)

CUDA_LIBRARY(lt, FUNCTIONS, "chosen matrix products",
             CUDA_LIBRARY_FILE("cublasLt", CUBLAS_VER_MAJOR))

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof((struct cuda_lt_algorithm){0}.code),
               "an algorithm is kept as it is");

static int lt_version(void)
{
    return (int)lt.get_version();
}

CUDA_LIBRARY_HANDLES(lt, cublasLtHandle_t)

CUDA_LIBRARY_ERRORS(lt, cublasStatus_t)

/* ---- descriptors ---- */

struct described_product {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c; /* column-major, the default */
};

static bool is_wide(const struct cuda_gemm *g)
{
    return g->wide_result && g->type != CUDA_FLOAT64;
}

static cublasStatus_t layout(cublasLtMatrixLayout_t *made, const struct cuda_gemm *g,
                             cudaDataType_t type, const int64_t sizes[2], int64_t ld, int64_t step)
{
    int32_t batches = (int32_t)g->batches;
    cublasStatus_t status = lt.layout_new(made, type, (uint64_t)sizes[0], (uint64_t)sizes[1], ld);
    CUDA_TRY(status,
             lt.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches));
    CUDA_TRY(status,
             lt.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
    return status;
}

static cublasStatus_t describe(struct described_product *s, const struct cuda_gemm *g)
{
    static const cudaDataType_t types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF};
    const cudaDataType_t type = types[g->type], of_result = is_wide(g) ? CUDA_R_32F : type;
    bool is_double = g->type == CUDA_FLOAT64;
    int32_t op_a = g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
            op_b = g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    *s = (struct described_product){0};
    cublasStatus_t status = lt.desc_new(&s->product,
                                        is_double ? CUBLAS_COMPUTE_64F
                                        : g->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F,
                                        is_double ? CUDA_R_64F : CUDA_R_32F);
    CUDA_TRY(status, lt.desc_set(s->product, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a));
    CUDA_TRY(status, lt.desc_set(s->product, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b));
    /* A transposed matrix is described as it lies in memory. */
    const int64_t a[2] = {g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k},
                  b[2] = {g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n},
                  c[2] = {g->m, g->n};
    CUDA_TRY(status, layout(&s->a, g, type, a, g->lda, g->step_a));
    CUDA_TRY(status, layout(&s->b, g, type, b, g->ldb, g->step_b));
    CUDA_TRY(status, layout(&s->c, g, of_result, c, g->ldc, g->step_c));
    return status;
}

static void undescribe(struct described_product *s)
{
    if (s->product)
        lt.desc_free(s->product);
    if (s->a)
        lt.layout_free(s->a);
    if (s->b)
        lt.layout_free(s->b);
    if (s->c)
        lt.layout_free(s->c);
}

/* ---- algorithms ---- */

/* Returns false if the algorithm cannot be used, or does not meet the request. */
static bool take_heuristic(const cublasLtMatmulHeuristicResult_t *result, uint32_t scheme_mask,
                           size_t limit, struct cuda_lt_algorithm *taken)
{
    int32_t id = 0;
    uint32_t scheme = 0;
    size_t written;
    if (result->state || result->workspaceSize > limit ||
        lt.config(&result->algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written) ||
        lt.config(&result->algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme,
                  &written) ||
        (scheme & ~scheme_mask))
        return false;
    *taken = (struct cuda_lt_algorithm){.id = id, .workspace_bytes = result->workspaceSize};
    for (size_t i = 0; i < sizeof taken->code / sizeof *taken->code; i++)
        taken->code[i] = result->algo.data[i];
    return true;
}

static int find(void *handle, const struct cuda_gemm *g, enum cuda_lt_sums sums, size_t limit,
                struct cuda_lt_algorithm *found, int *n)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulHeuristicResult_t all[CUDA_LT_ALGORITHMS];
    cublasLtMatmulPreference_t preference = NULL;
    struct described_product s;
    uint64_t bytes = limit;
    /* Sums that are not split need no scheme, and are always allowed. */
    bool is_narrow = cuda_float_bytes(g->type) == 2 && !is_wide(g);
    uint32_t scheme_mask = sums == CUDA_LT_IN_ORDER || is_narrow
                               ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                               : CUBLASLT_REDUCTION_SCHEME_MASK;
    uint32_t alignment = CUDA_LT_ALIGNMENT;
    int there = 0;
    *n = 0;
    cublasStatus_t status = describe(&s, g);
    CUDA_TRY(status, lt.preference_new(&preference));
    CUDA_TRY(status, lt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                       sizeof bytes));
    CUDA_TRY(status, lt.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                       &scheme_mask, sizeof scheme_mask));
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments && !status; i++)
        status = lt.preference_set(preference, alignments[i], &alignment, sizeof alignment);
    CUDA_TRY(status, lt.heuristic(handle, s.product, s.a, s.b, s.c, s.c, preference,
                                  CUDA_LT_ALGORITHMS, all, &there));
    for (int i = 0; i < there && !status; i++)
        *n += take_heuristic(&all[i], scheme_mask, limit, &found[*n]);
    if (preference)
        lt.preference_free(preference);
    undescribe(&s);
    return (int)status;
}

static int gemm(void *handle, const struct cuda_gemm *g, const struct cuda_lt_algorithm *algorithm,
                const struct cuda_lt_room *room)
{
    const void *alpha = cuda_factor(g->type, true), *beta = cuda_factor(g->type, g->accumulate);
    struct described_product s;
    cublasLtMatmulAlgo_t algo;
    for (size_t i = 0; i < sizeof algo.data / sizeof *algo.data; i++)
        algo.data[i] = algorithm->code[i];
    cublasStatus_t status = describe(&s, g);
    CUDA_TRY(status, lt.matmul(handle, s.product, alpha, g->a, s.a, g->b, s.b, beta, g->c, s.c,
                               g->c, s.c, &algo, room->workspace, room->bytes, room->stream));
    undescribe(&s);
    return (int)status;
}

const struct cuda_lt cuda_lt_real = {
    .calls = {"cuBLASLt", load, error_text, handle_new, handle_free, NULL, 0},
    .version = lt_version,
    .find = find,
    .gemm = gemm};
#else
CUDA_LIBRARY_ABSENT(cuda_lt, "chosen matrix products", "cublasLt.h");
#endif
