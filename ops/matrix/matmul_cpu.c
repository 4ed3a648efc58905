/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/device/blas_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/matrix/product.h"

struct matmul {
    struct product_flags flags;
    bool deterministic;
};

static int prepare(struct kernel_setup *setup, const char *flag_a, const char *flag_b)
{
    struct matmul *state = setup->state = mem_alloc(sizeof *state);
    state->flags = product_flags_of(setup->node, flag_a, flag_b);
    state->deterministic = setup->deterministic;
    return 0;
}

static int matmul_prepare(struct kernel_setup *setup)
{
    struct gemm g = {.type = setup->in_types[0].type};
    prepare(setup, "transpose_a", "transpose_b");
    if (!setup->shapes_known)
        return 0;
    const struct matmul *state = setup->state;
    struct product_sizes sizes =
        product_sizes_of(&state->flags, &setup->in_types[0].shape, &setup->in_types[1].shape);
    g.transpose_a = state->flags.transpose_a;
    g.transpose_b = state->flags.transpose_b;
    g.m = sizes.m, g.n = sizes.n, g.k = sizes.k;
    setup->scratch_bytes = gemm_scratch_bytes(&g);
    return 0;
}

static int batch_matmul_prepare(struct kernel_setup *setup)
{
    return prepare(setup, "adj_x", "adj_y");
}

/* Makes the output, and describes its products and their number. NULL with call->err set. */
static struct tensor *describe(struct kernel_call *call, struct gemm *g, int64_t *batches)
{
    const struct matmul *state = call->state;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return NULL;
    struct product_sizes sizes =
        product_sizes_of(&state->flags, &call->in[0]->shape, &call->in[1]->shape);
    *batches = sizes.batches;
    *g = (struct gemm){.type = call->in[0]->type,
                       .transpose_a = sizes.flags.transpose_a,
                       .transpose_b = sizes.flags.transpose_b,
                       .m = sizes.m,
                       .n = sizes.n,
                       .k = sizes.k,
                       .deterministic = state->deterministic,
                       .scratch = call->scratch,
                       .device = call->device};
    return out;
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

static void multiply_part(void *context, int part, int parts)
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
    /* Many small products are computed in parallel. The team computes few large ones, or after a
     * failure, for its error, one after the other. */
    struct side_by_side all = {.batch = &batch, .n = n};
    bool is_done = call->threads > 1 && n >= call->threads;
    if (is_done) {
        team_run(call->threads, multiply_part, &all);
        is_done = !all.failed;
    }
    int code = 0;
    for (int64_t i = 0; !is_done && i < n && !code; i++)
        code = run_one(&batch, i, call->threads, call->err);
    return code;
}

/* ---- sums of products ---- */

/* Operands with short inner axes are concatenated into one product. Which are joined, and so the
 * bits, depends only on their sizes. Beyond this length, copies take longer than another pass over
 * the sum, so longer operands are multiplied in place. */
#define JOINED_MOST 512

struct matmul_sum {
    struct product_flags flags;
    bool deterministic;
    int first, n;       /* of the left operands; the right ones follow them */
    size_t for_product; /* bytes of scratch memory, before the joined operands */
};

static int matmul_sum_prepare(struct kernel_setup *setup)
{
    const struct shape *out = &setup->out_types[0].shape;
    struct matmul_sum *state = setup->state = mem_alloc(sizeof *state);
    *state = (struct matmul_sum){product_flags_of(setup->node, "transpose_a", "transpose_b"),
                                 setup->deterministic, (int)node_attr(setup->node, "M")->i,
                                 (int)node_attr(setup->node, "N")->i, 0};
    if (state->first)
        setup->out[0].forward = FORWARD_REUSE;
    if (!shape_is_known(out))
        return 0;
    struct gemm g = {.type = setup->out_types[0].type,
                     .transpose_a = state->flags.transpose_a,
                     .transpose_b = state->flags.transpose_b,
                     .m = out->dims[0],
                     .n = out->dims[1],
                     .k = JOINED_MOST}; /* of the largest product */
    for (int i = state->first; i < state->first + state->n; i++) {
        const struct shape *left = &setup->in_types[i].shape;
        int64_t k = left->rank == 2 ? left->dims[g.transpose_a ? 0 : 1] : SHAPE_UNKNOWN;
        k = k < 0 ? INT32_MAX : k;
        g.k = k > g.k ? k : g.k;
    }
    state->for_product = ALIGN_UP(gemm_scratch_bytes(&g));
    setup->scratch_bytes =
        state->for_product + (size_t)(JOINED_MOST * (g.m + g.n)) * dtype_bytes(g.type);
    return 0;
}

struct joined_operands {
    struct tensor *const *parts;
    int axis; /* along which they are joined */
    char *to;
    size_t row; /* bytes of a row of the joined matrix */
};

static int join_parts(void *context, int64_t begin, int64_t end)
{
    const struct joined_operands *joined = context;
    char *to = joined->to;
    for (int64_t i = 0; i < end; i++) {
        const struct tensor *part = joined->parts[i];
        size_t rows = joined->axis ? (size_t)part->shape.dims[0] : 1;
        size_t width = tensor_bytes(part) / rows;
        for (size_t r = 0; i >= begin && r < rows; r++)
            memcpy(to + r * joined->row, (const char *)part->data + r * width, width);
        to += width;
    }
    return 0;
}

/* Joins n operands to length k, if there are several. */
static const void *join(const struct kernel_call *call, int at, int n, int axis, char *to,
                        int64_t k)
{
    const struct tensor *first = call->in[at];
    struct joined_operands joined = {call->in + at, axis, to, (size_t)k * dtype_bytes(first->type)};
    if (n == 1)
        return first->data;
    int64_t grain = PARALLEL_GRAIN_MOVE / (tensor_count(first) + 1) + 1;
    parallel_for(call->threads, n, grain, join_parts, &joined);
    return to;
}

/* Adds the products from `at` on that are joined. Returns their number; 0: an error. */
static int add_products(struct kernel_call *call, struct gemm *g, int at)
{
    const struct matmul_sum *s = call->state;
    bool ta = g->transpose_a, tb = g->transpose_b;
    int left = s->first + at, n = 0;
    for (g->k = 0; at + n < s->n; n++) {
        int64_t more = call->in[left + n]->shape.dims[ta ? 0 : 1];
        if (n && (!call->scratch || g->k + more > JOINED_MOST))
            break;
        g->k += more;
    }
    char *to = (char *)call->scratch + s->for_product;
    const void *a = join(call, left, n, ta ? 0 : 1, to, g->k);
    to += (size_t)(JOINED_MOST * g->m) * dtype_bytes(g->type);
    const void *b = join(call, left + s->n, n, tb ? 1 : 0, to, g->k);
    return gemm_run(g, a, b, call->out[0]->data, call->threads, call->err) ? 0 : n;
}

static int matmul_sum_run(struct kernel_call *call)
{
    const struct matmul_sum *s = call->state;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct gemm g = {.type = out->type,
                     .transpose_a = s->flags.transpose_a,
                     .transpose_b = s->flags.transpose_b,
                     .accumulate = s->first,
                     .deterministic = s->deterministic,
                     .m = out->shape.dims[0],
                     .n = out->shape.dims[1],
                     .scratch = call->scratch,
                     .device = call->device};
    if (s->first && out->data != call->in[0]->data)
        memcpy(out->data, call->in[0]->data, tensor_bytes(out));
    for (int at = 0, n; at < s->n; at += n, g.accumulate = true)
        if (!(n = add_products(call, &g, at)))
            return call->err->code;
    return KERNEL_DONE;
}

const struct kernel_code kernel_matmul_sum = {.prepare = matmul_sum_prepare, .run = matmul_sum_run};
const struct kernel_code kernel_matmul = {.prepare = matmul_prepare, .run = matmul_run};
const struct kernel_code kernel_batch_matmul = {.prepare = batch_matmul_prepare,
                                                .run = batch_matmul_run};
