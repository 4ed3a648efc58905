/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of matrix products: floats by cuBLASLt or cuBLAS, integers by our own.
 */
#include "base/memory.h"
#include "ops/device/cuda.h"
#include "ops/device/gemm_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"
#include "ops/matrix/launchers_cuda.h"

struct matmul_state {
    struct product_flags flags;
    char name[CUDA_GEMM_NAME_BYTES]; /* for plans */
};

static int64_t at_least_one(int64_t n)
{
    return n ? n : 1;
}

/* cuBLAS is column-major, and so sees each of our matrices transposed: C' = op(B)' op(A)'. */
static struct cuda_gemm gemm_of(const struct product_sizes *p, enum dtype type)
{
    return (struct cuda_gemm){.type = cuda_type_of(type),
                              .transpose_a = p->flags.transpose_b,
                              .transpose_b = p->flags.transpose_a,
                              .m = p->n,
                              .n = p->m,
                              .k = p->k,
                              .batches = p->batches,
                              .lda = at_least_one(p->flags.transpose_b ? p->k : p->n),
                              .ldb = at_least_one(p->flags.transpose_a ? p->m : p->k),
                              .ldc = at_least_one(p->n),
                              .step_a = p->k * p->n,
                              .step_b = p->m * p->k,
                              .step_c = p->m * p->n};
}

/* ---- prepare ---- */

static int prepare(struct kernel_setup *setup, const char *flag_a, const char *flag_b)
{
    struct matmul_state *state = setup->state = mem_alloc(sizeof *state);
    *state = (struct matmul_state){.flags = product_flags_of(setup->node, flag_a, flag_b)};
    if (!dtype_is_floating(setup->in_types[0].type))
        return 0;
    struct cuda_device *d = cuda_device(setup->device);
    struct cuda_gemm_plan plan;
    if (cuda_gemm_open(d, setup->err))
        return setup->err->code;
    if (!setup->shapes_known)
        return 0;
    struct product_sizes sizes =
        product_sizes_of(&state->flags, &setup->in_types[0].shape, &setup->in_types[1].shape);
    struct cuda_gemm gemm = gemm_of(&sizes, setup->in_types[0].type);
    cuda_gemm_plan(d, &gemm, &plan);
    cuda_gemm_name(d, &plan, setup->row->code, state->name);
    setup->name = state->name;
    setup->scratch_bytes = plan.bytes;
    return 0;
}

static int matmul_prepare(struct kernel_setup *setup)
{
    return prepare(setup, "transpose_a", "transpose_b");
}

static int batch_matmul_prepare(struct kernel_setup *setup)
{
    return prepare(setup, "adj_x", "adj_y");
}

/* ---- run ---- */

static int multiply_floats(struct kernel_call *call, const struct product_sizes *p,
                           const struct tensor *out)
{
    struct cuda_gemm gemm = gemm_of(p, out->type);
    struct cuda_gemm_plan plan;
    gemm.a = call->in[1]->data;
    gemm.b = call->in[0]->data;
    gemm.c = out->data;
    cuda_gemm_plan(cuda_device(call->device), &gemm, &plan);
    char *scratch = cuda_scratch(call, plan.bytes);
    if (plan.bytes && !scratch)
        return call->err->code;
    return cuda_gemm_run(call, &gemm, &plan, scratch);
}

static int run(struct kernel_call *call)
{
    const struct matmul_state *state = call->state;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct product_sizes sizes =
        product_sizes_of(&state->flags, &call->in[0]->shape, &call->in[1]->shape);
    if (dtype_is_floating(out->type))
        return multiply_floats(call, &sizes, out);
    struct cuda_product launch = {.type = cuda_type_of(out->type),
                                  .sizes = sizes,
                                  .a = call->in[0]->data,
                                  .b = call->in[1]->data,
                                  .c = out->data};
    return cuda_launched(call, cuda_product(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_matmul = {.prepare = matmul_prepare, .run = run};
const struct kernel_code kernel_cuda_batch_matmul = {.prepare = batch_matmul_prepare, .run = run};
