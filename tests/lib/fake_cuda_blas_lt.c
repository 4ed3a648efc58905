/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt in the tests: loops over matrices in the layout of its manual, which refuse what it
 * refuses: leading dimensions below the rows, misaligned matrices or workspace, less workspace than
 * an algorithm needs, no stream. Sums are in float64. Algorithm 20 adds in order and is the best by
 * shapes; 21 adds two parts of a sum, which lie in the workspace, and is the fastest; 22, which has
 * no fixed order, begins at the other end every second time.
 * TF_TEST_DEVICE_LACKS=lt: there is no such library.
 */
#include <string.h>

#include "base/memory.h"
#include "lib/fake_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "tensor/tensor.h"

enum { LT_INVALID = 7, LT_NOT_SUPPORTED = 15 };
enum { WHOLE = 20, IN_PARTS = 21, ANY_ORDER = 22 };

struct fake_lt {
    atomic_uint runs; /* of the algorithm without a fixed order */
};

static int load(struct error *err)
{
    return fake_load("lt", "chosen matrix products", err);
}

static int version(void)
{
    return 130000;
}

static int handle_new(void **handle)
{
    struct fake_lt *lt = mem_alloc(sizeof *lt);
    atomic_init(&lt->runs, 0);
    *handle = lt;
    return 0;
}

static void handle_free(void *handle)
{
    mem_free(handle);
}

/* ---- what it takes ---- */

/* Matrices of a batch may be interleaved; those of the result must not coincide. */
static bool is_valid(const struct cuda_gemm *g)
{
    int64_t rows_a = g->transpose_a ? g->k : g->m, rows_b = g->transpose_b ? g->n : g->k;
    return g->type <= CUDA_BFLOAT16 && g->m > 0 && g->n > 0 && g->k > 0 && g->batches > 0 &&
           g->lda >= rows_a && g->ldb >= rows_b && g->ldc >= g->m &&
           (g->batches == 1 || g->step_c > 0) && (!g->tf32 || g->type == CUDA_FLOAT32);
}

static bool is_narrow(const struct cuda_gemm *g)
{
    return cuda_float_bytes(g->type) == 2 && !g->wide_result;
}

static size_t workspace_of(const struct cuda_gemm *g, int id)
{
    return id == IN_PARTS ? 2 * (size_t)(g->m * g->n * g->batches) * sizeof(double) : 0;
}

static int find(void *handle, const struct cuda_gemm *g, enum cuda_lt_sums sums, size_t limit,
                struct cuda_lt_algorithm *found, int *n)
{
    bool any_order = sums == CUDA_LT_IN_ANY_ORDER && !is_narrow(g);
    (void)handle;
    *n = 0;
    if (!is_valid(g))
        return LT_INVALID;
    for (int i = any_order ? 0 : 1; i < 3; i++) {
        int id = (const int[]){ANY_ORDER, WHOLE, IN_PARTS}[i];
        size_t bytes = workspace_of(g, id);
        if (bytes <= limit && (id != IN_PARTS || g->k > 1))
            found[(*n)++] = (struct cuda_lt_algorithm){id, bytes, {(uint64_t)id * 1000}};
    }
    return *n ? 0 : LT_NOT_SUPPORTED;
}

static bool is_aligned(const void *at, size_t to)
{
    return at && (uintptr_t)at % to == 0;
}

static int check(const struct cuda_gemm *g, const struct cuda_lt_algorithm *a,
                 const struct cuda_lt_room *room)
{
    size_t bytes = workspace_of(g, a->id);
    if (a->id < WHOLE || a->id > ANY_ORDER || a->code[0] != (uint64_t)a->id * 1000)
        return LT_NOT_SUPPORTED;
    bool is_placed = is_aligned(g->a, CUDA_LT_ALIGNMENT) && is_aligned(g->b, CUDA_LT_ALIGNMENT) &&
                     is_aligned(g->c, CUDA_LT_ALIGNMENT);
    bool has_room = room->stream && room->bytes >= bytes &&
                    (!bytes || is_aligned(room->workspace, CUDA_LT_WORKSPACE_ALIGNMENT));
    return is_valid(g) && is_placed && has_room ? 0 : LT_INVALID;
}

/* ---- the loops ---- */

static struct tensor array_of(enum dtype type, const void *data)
{
    struct shape shape = shape_vector(INT32_MAX);
    return tensor_borrow(type, &shape, test_to_host(data)); /* it is the device's in measurements */
}

struct product_loops {
    const struct cuda_gemm *g;
    struct tensor a, b, c;
    bool backwards;
};

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

/* Adds the terms of an element from `first` to before `end`. */
static double part(const struct product_loops *l, int64_t batch, int64_t i, int64_t j,
                   int64_t first, int64_t end)
{
    const struct cuda_gemm *g = l->g;
    int64_t at_a = batch * g->step_a, at_b = batch * g->step_b;
    double sum = 0;
    for (int64_t at = first; at < end; at++) {
        int64_t k = l->backwards ? end - 1 - (at - first) : at;
        sum += rounded(g, tensor_get_float64(
                              &l->a, at_a + (g->transpose_a ? i * g->lda + k : k * g->lda + i))) *
               rounded(g, tensor_get_float64(
                              &l->b, at_b + (g->transpose_b ? k * g->ldb + j : j * g->ldb + k)));
    }
    return sum;
}

static double sum_of(const struct product_loops *l, int64_t batch, int64_t i, int64_t j,
                     double *parts)
{
    int64_t k = l->g->k, half = k / 2;
    if (!parts)
        return part(l, batch, i, j, 0, k);
    parts[0] = part(l, batch, i, j, 0, half);
    parts[1] = part(l, batch, i, j, half, k);
    return parts[1] + parts[0];
}

static void set_products(struct product_loops *l, double *parts)
{
    const struct cuda_gemm *g = l->g;
    for (int64_t batch = 0; batch < g->batches; batch++)
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                int64_t at = batch * g->step_c + j * g->ldc + i;
                double before = g->accumulate ? tensor_get_float64(&l->c, at) : 0;
                tensor_set_float64(&l->c, at, before + sum_of(l, batch, i, j, parts));
                parts = parts ? parts + 2 : NULL;
            }
}

static int gemm(void *handle, const struct cuda_gemm *g, const struct cuda_lt_algorithm *a,
                const struct cuda_lt_room *room)
{
    struct fake_lt *lt = handle;
    int status = check(g, a, room);
    if (status)
        return status;
    if (a->id != IN_PARTS)
        fake_take_time((struct cuda_stream *)room->stream);
    enum dtype result = g->wide_result && g->type != CUDA_FLOAT64 ? FLOAT32 : cuda_dtype(g->type);
    struct product_loops l = {.g = g,
                              .a = array_of(cuda_dtype(g->type), g->a),
                              .b = array_of(cuda_dtype(g->type), g->b),
                              .c = array_of(result, g->c),
                              .backwards =
                                  a->id == ANY_ORDER && atomic_fetch_add(&lt->runs, 1) % 2};
    set_products(&l, a->id == IN_PARTS ? test_to_host(room->workspace) : NULL);
    return 0;
}

static const char *error_text(int status)
{
    return status == LT_INVALID ? "an argument is invalid" : "it has no such algorithm";
}

const struct cuda_lt fake_cuda_lt = {
    .calls = {"cuBLASLt", load, error_text, handle_new, handle_free, NULL, 0},
    .version = version,
    .find = find,
    .gemm = gemm};
