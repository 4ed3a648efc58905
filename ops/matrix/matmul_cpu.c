/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/blas_cpu.h"
#include "ops/math/team_cpu.h"
#include "ops/matrix/product.h"

struct matmul {
    struct product_flags flags;
    bool deterministic;
};

static int prepare(struct kernel_setup *setup, const char *flag_a, const char *flag_b)
{
    struct matmul *state = mem_alloc(sizeof *state);
    state->flags = product_flags_of(setup->node, flag_a, flag_b);
    state->deterministic = setup->deterministic;
    setup->state = state;
    return 0;
}

static int matmul_prepare(struct kernel_setup *setup)
{
    struct gemm g = {.type = setup->in_types[0].type};
    prepare(setup, "transpose_a", "transpose_b");
    if (!setup->shapes_known)
        return 0;
    const struct matmul *state = setup->state;
    const struct shape *a = &setup->in_types[0].shape, *b = &setup->in_types[1].shape;
    g.transpose_a = state->flags.transpose_a;
    g.transpose_b = state->flags.transpose_b;
    g.m = a->dims[a->rank - (g.transpose_a ? 1 : 2)];
    g.k = a->dims[a->rank - (g.transpose_a ? 2 : 1)];
    g.n = b->dims[b->rank - (g.transpose_b ? 2 : 1)];
    setup->scratch_bytes = gemm_scratch_bytes(&g);
    return 0;
}

static int batch_matmul_prepare(struct kernel_setup *setup)
{
    return prepare(setup, "adj_x", "adj_y");
}

/* The output, and how many products it has. NULL with call->err set. */
static struct tensor *describe(struct kernel_call *call, struct gemm *g, int64_t *batches)
{
    const struct matmul *state = call->state;
    struct product_sizes sizes;
    if (product_sizes_of(call, &state->flags, &sizes))
        return NULL;
    *batches = sizes.batches;
    *g = (struct gemm){.type = call->in[0]->type,
                       .transpose_a = sizes.flags.transpose_a,
                       .transpose_b = sizes.flags.transpose_b,
                       .m = sizes.m,
                       .n = sizes.n,
                       .k = sizes.k,
                       .deterministic = state->deterministic,
                       .scratch = call->scratch};
    struct shape shape = product_shape(&sizes, &call->in[0]->shape);
    return kernel_alloc_output(call, 0, &shape);
}

static int matmul_run(struct kernel_call *call)
{
    struct gemm g;
    int64_t batches;
    struct tensor *out = describe(call, &g, &batches);
    if (!out)
        return call->err->code;
    return gemm_run(&g, call->in[0]->data, call->in[1]->data, out->data, call->threads, call->err);
}

struct gemm_batch {
    struct gemm gemm;
    const char *a, *b;
    char *c;
    int64_t bytes_a, bytes_b, bytes_c;
};

static int run_one(const struct gemm_batch *batch, int64_t i, int threads, struct error *err)
{
    return gemm_run(&batch->gemm, batch->a + i * batch->bytes_a, batch->b + i * batch->bytes_b,
                    batch->c + i * batch->bytes_c, threads, err);
}

struct side_by_side {
    const struct gemm_batch *batch;
    int64_t n;
    bool failed;
};

static void run_part(void *context, int part, int parts)
{
    struct side_by_side *all = context;
    int64_t end = all->n * (part + 1) / parts;
    for (int64_t i = all->n * part / parts; i < end; i++) {
        struct error err = ERROR_INIT;
        if (run_one(all->batch, i, 1, &err))
            __atomic_store_n(&all->failed, true, __ATOMIC_RELAXED);
    }
}

static int batch_matmul_run(struct kernel_call *call)
{
    struct gemm_batch batch;
    struct gemm *g = &batch.gemm;
    int64_t n, size = (int64_t)dtype_bytes(call->in[0]->type);
    struct tensor *out = describe(call, g, &n);
    if (!out)
        return call->err->code;
    batch.a = call->in[0]->data;
    batch.b = call->in[1]->data;
    batch.c = out->data;
    batch.bytes_a = g->m * g->k * size;
    batch.bytes_b = g->k * g->n * size;
    batch.bytes_c = g->m * g->n * size;
    /* Many small products side by side. Few large ones, or where one failed, for its error: the
     * team together. */
    struct side_by_side all = {.batch = &batch, .n = n};
    bool is_done = call->threads > 1 && n >= call->threads;
    if (is_done) {
        team_run(call->threads, run_part, &all);
        is_done = !all.failed;
    }
    int code = 0;
    for (int64_t i = 0; !is_done && i < n && !code; i++)
        code = run_one(&batch, i, call->threads, call->err);
    return code;
}

const struct kernel_code kernel_matmul = {.prepare = matmul_prepare, .run = matmul_run};
const struct kernel_code kernel_batch_matmul = {.prepare = batch_matmul_prepare,
                                                .run = batch_matmul_run};
