/* SPDX-License-Identifier: Apache-2.0
 *
 * A device remembers how each product that it has seen is computed.
 */
#include "ops/device/gemm_cuda.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/str.h"
#include "ops/device/cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/device/measure_cuda.h"

#define WORKSPACE_LIMIT ((size_t)32 << 20) /* bytes; as cuBLAS recommends for capability 9 */

struct known_gemm {
    struct cuda_gemm of; /* the product's sizes */
    struct cuda_gemm_plan plan;
};

/* ---- opening ---- */

int cuda_gemm_open(struct cuda_device *d, struct error *err)
{
    if (cuda_blas_open(d, err))
        return err->code;
    return cuda_handle_open(d, &d->handles[CUDA_LT], &d->lt->calls, "TF_CUBLASLT", err);
}

/* ---- the choice ---- */

static bool is_int(int64_t n)
{
    return n > 0 && n <= INT32_MAX;
}

static bool is_same(const struct cuda_gemm *x, const struct cuda_gemm *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->batches == y->batches &&
           x->type == y->type && x->transpose_a == y->transpose_a &&
           x->transpose_b == y->transpose_b && x->wide_result == y->wide_result &&
           x->lda == y->lda && x->ldb == y->ldb && x->ldc == y->ldc && x->step_a == y->step_a &&
           x->step_b == y->step_b && x->step_c == y->step_c;
}

/* Describes a matrix to measure with: all batches, of `columns` times `ld` elements each.
 */
static struct cuda_trial_part part(const struct cuda_gemm *g, int64_t columns, int64_t ld,
                                   int64_t step)
{
    int element = g->wide_result ? (int)sizeof(float) : cuda_float_bytes(g->type);
    int64_t count = (g->batches - 1) * step + columns * ld;
    return (struct cuda_trial_part){.bytes = (size_t)(count * element)};
}

/* Products in a row of a measurement, as a small one takes little more than an event. */
#define PRODUCTS 2

struct gemm_trial {
    struct cuda_device *device;
    const struct cuda_gemm *gemm;
    const struct cuda_lt_algorithm *algorithm;
    struct cuda_lt_room workspace;
};

static int run_products(const void *context)
{
    const struct gemm_trial *t = context;
    int status = 0;
    for (int i = 0; i < PRODUCTS && !status; i++)
        status = t->device->lt->gemm(t->device->handles[CUDA_LT].handle, t->gemm, t->algorithm,
                                     &t->workspace);
    return status;
}

/* Returns the index of the fastest; -1: measuring failed. */
static int measure(struct cuda_device *d, const struct cuda_gemm *sizes,
                   const struct cuda_lt_algorithm *all, int n)
{
    struct cuda_gemm g = *sizes;
    struct cuda_trial_part parts[] = {part(&g, g.transpose_a ? g.m : g.k, g.lda, g.step_a),
                                      part(&g, g.transpose_b ? g.k : g.n, g.ldb, g.step_b),
                                      part(&g, g.n, g.ldc, g.step_c),
                                      {.bytes = WORKSPACE_LIMIT}};
    struct buffer *memory = cuda_trial_memory(&d->device, g.type, parts, 4);
    int place = -1;
    if (!memory)
        return place;
    struct gemm_trial trial = {
        d,
        &g,
        NULL,
        {(struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE), parts[3].data, WORKSPACE_LIMIT}};
    g.a = parts[0].data;
    g.b = parts[1].data;
    g.c = parts[2].data;
    float best = 0, time;
    for (int i = 0; i < n; i++) {
        trial.algorithm = &all[i];
        if (cuda_measure(d, run_products, &trial, &time) && (place < 0 || time < best)) {
            best = time;
            place = i;
        }
    }
    memory->free(memory);
    return place;
}

/* Returns the index of the algorithm among `n`, which is not 0; without a measurement, the
 * first. */
static int choose(struct cuda_device *d, const struct cuda_gemm *g,
                  const struct cuda_lt_algorithm *all, int n)
{
    struct str name = STR_INIT;
    if (!cuda_choices_measured(&d->choices))
        return 0;
    /* The name contains all that a measurement depends on. */
    str_printf(
        &name,
        "%s cublaslt=%d product %s%s %c%c sizes=%" PRId64 ",%" PRId64 ",%" PRId64 " ld=%" PRId64
        ",%" PRId64 ",%" PRId64 " batches=%" PRId64 " steps=%" PRId64 ",%" PRId64 ",%" PRId64,
        d->choice, d->lt->version(), dtype_name(cuda_dtype(g->type)),
        g->wide_result ? "-float32" : "", g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N',
        g->m, g->n, g->k, g->lda, g->ldb, g->ldc, g->batches, g->step_a, g->step_b, g->step_c);
    struct cuda_choice choice = {.name = name.data};
    int place;
    if (cuda_choices_find(&d->choices, &choice)) {
        place = choice.number < n ? (int)choice.number : -1;
    } else if ((place = measure(d, g, all, n)) < 0) {
        place = 0;
    } else {
        choice.number = place;
        choice.bytes = all[place].workspace_bytes;
        cuda_choices_add(&d->choices, &choice);
    }
    str_release(&name);
    return place;
}

static struct cuda_gemm_plan find(struct cuda_device *d, const struct cuda_gemm *g)
{
    struct error ignored = ERROR_INIT; /* without an algorithm cuBLAS computes it */
    struct cuda_lt_algorithm all[CUDA_LT_ALGORITHMS];
    struct cuda_gemm_plan plan = {.place = -1};
    enum cuda_lt_sums sums = d->fast ? CUDA_LT_IN_ANY_ORDER : CUDA_LT_IN_ORDER;
    int n = 0;
    if (cuda_enter(d, &ignored) ||
        d->lt->find(d->handles[CUDA_LT].handle, g, sums, WORKSPACE_LIMIT, all, &n) || n < 1)
        return plan;
    plan.place = choose(d, g, all, n);
    if (plan.place < 0)
        return plan;
    plan.algorithm = all[plan.place];
    if (plan.algorithm.workspace_bytes)
        plan.bytes = plan.algorithm.workspace_bytes + CUDA_LT_WORKSPACE_ALIGNMENT - MEM_ALIGNMENT;
    return plan;
}

void cuda_gemm_plan(struct cuda_device *d, const struct cuda_gemm *gemm,
                    struct cuda_gemm_plan *plan)
{
    *plan = (struct cuda_gemm_plan){.place = -1};
    /* Empty sums, and sizes beyond int, are left to cuBLAS. */
    if (!d->handles[CUDA_LT].handle || !is_int(gemm->m) || !is_int(gemm->n) || !is_int(gemm->k) ||
        !is_int(gemm->batches) || !is_int(gemm->lda) || !is_int(gemm->ldb) || !is_int(gemm->ldc))
        return;
    /* An algorithm is chosen only by sizes, types and steps. */
    struct cuda_gemm sizes = *gemm;
    sizes.tf32 = d->tf32 && gemm->type == CUDA_FLOAT32;
    sizes.accumulate = false;
    sizes.a = sizes.b = sizes.c = NULL;
    if (sizes.batches == 1)
        sizes.step_a = sizes.step_b = sizes.step_c = 0;
    pthread_mutex_lock(&d->handles[CUDA_LT].lock);
    size_t i = 0;
    while (i < d->gemms.n && !is_same(&d->gemms.items[i].of, &sizes))
        i++;
    if (i == d->gemms.n)
        vec_push(&d->gemms, ((struct known_gemm){sizes, find(d, &sizes)}));
    *plan = d->gemms.items[i].plan;
    pthread_mutex_unlock(&d->handles[CUDA_LT].lock);
}

void cuda_gemm_name(const struct cuda_device *d, const struct cuda_gemm_plan *plan,
                    const char *kernel, char name[CUDA_GEMM_NAME_BYTES])
{
    if (plan->place < 0)
        snprintf(name, CUDA_GEMM_NAME_BYTES, "%s", kernel);
    else
        snprintf(name, CUDA_GEMM_NAME_BYTES, "%s cublaslt=%d algorithm=%d place=%d", kernel,
                 d->lt->version(), plan->algorithm.id, plan->place);
}

/* ---- run ---- */

static bool is_aligned(const void *at, size_t to)
{
    return (uintptr_t)at % to == 0;
}

int cuda_gemm_run(struct kernel_call *call, const struct cuda_gemm *gemm,
                  const struct cuda_gemm_plan *plan, void *scratch)
{
    struct cuda_device *d = cuda_device(call->device);
    /* An image within a batch may begin anywhere. */
    if (plan->place < 0 || !is_aligned(gemm->a, CUDA_LT_ALIGNMENT) ||
        !is_aligned(gemm->b, CUDA_LT_ALIGNMENT) || !is_aligned(gemm->c, CUDA_LT_ALIGNMENT))
        return cuda_blas_gemm(call, gemm);
    struct cuda_gemm product = *gemm;
    product.tf32 = d->tf32 && gemm->type == CUDA_FLOAT32;
    struct cuda_lt_room workspace = {.bytes = plan->algorithm.workspace_bytes};
    size_t beyond = (uintptr_t)scratch % CUDA_LT_WORKSPACE_ALIGNMENT;
    if (workspace.bytes)
        workspace.workspace = (char *)scratch + (beyond ? CUDA_LT_WORKSPACE_ALIGNMENT - beyond : 0);
    if (cuda_enter(d, call->err))
        return call->err->code;
    workspace.stream = (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE);
    int status = d->lt->gemm(d->handles[CUDA_LT].handle, &product, &plan->algorithm, &workspace);
    int code = cuda_library_check(d, &d->lt->calls, status, "a product", call->err);
    return code ? code : KERNEL_ENQUEUED;
}
