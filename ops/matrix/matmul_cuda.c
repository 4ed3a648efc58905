/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of matrix products: floats by cuBLAS, integers by our own.
 */
#include "base/memory.h"
#include "ops/device/blas_cuda.h"
#include "ops/device/cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/matrix/product.h"
#include "ops/matrix/product_cuda.h"

static int prepare(struct kernel_setup *setup, const char *flag_a, const char *flag_b)
{
    struct product_flags *flags = mem_alloc(sizeof *flags);
    *flags = product_flags_of(setup->node, flag_a, flag_b);
    setup->state = flags;
    if (!dtype_is_floating(setup->in_types[0].type))
        return 0;
    return cuda_blas_open(cuda_device(setup->device), setup->err);
}

static int matmul_prepare(struct kernel_setup *setup)
{
    return prepare(setup, "transpose_a", "transpose_b");
}

static int batch_matmul_prepare(struct kernel_setup *setup)
{
    return prepare(setup, "adj_x", "adj_y");
}

static int64_t at_least_one(int64_t n)
{
    return n ? n : 1;
}

/* cuBLAS goes by columns, and so sees each of our matrices transposed: C' = op(B)' op(A)'. */
static int multiply_floats(struct kernel_call *call, const struct product_sizes *p,
                           const struct tensor *out)
{
    struct cuda_gemm gemm = {.type = cuda_type_of(out->type),
                             .transpose_a = p->flags.transpose_b,
                             .transpose_b = p->flags.transpose_a,
                             .m = p->n,
                             .n = p->m,
                             .k = p->k,
                             .batches = p->batches,
                             .a = call->in[1]->data,
                             .b = call->in[0]->data,
                             .c = out->data,
                             .lda = at_least_one(p->flags.transpose_b ? p->k : p->n),
                             .ldb = at_least_one(p->flags.transpose_a ? p->m : p->k),
                             .ldc = at_least_one(p->n),
                             .step_a = p->k * p->n,
                             .step_b = p->m * p->k,
                             .step_c = p->m * p->n};
    return cuda_blas_gemm(call, &gemm);
}

static int multiply_integers(struct kernel_call *call, const struct product_sizes *p,
                             const struct tensor *out)
{
    struct cuda_product launch = {.type = cuda_type_of(out->type),
                                  .transpose_a = p->flags.transpose_a,
                                  .transpose_b = p->flags.transpose_b,
                                  .m = p->m,
                                  .n = p->n,
                                  .k = p->k,
                                  .batches = p->batches,
                                  .a = call->in[0]->data,
                                  .b = call->in[1]->data,
                                  .c = out->data};
    return cuda_launched(call, cuda_product(&launch, cuda_compute(call)));
}

static int run(struct kernel_call *call)
{
    struct product_sizes sizes;
    if (product_sizes_of(call, call->state, &sizes))
        return call->err->code;
    struct shape shape = product_shape(&sizes, &call->in[0]->shape);
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    if (!tensor_count(out))
        return KERNEL_DONE;
    return dtype_is_floating(out->type) ? multiply_floats(call, &sizes, out)
                                        : multiply_integers(call, &sizes, out);
}

const struct kernel_code kernel_cuda_matmul = {.prepare = matmul_prepare, .run = run};
const struct kernel_code kernel_cuda_batch_matmul = {.prepare = batch_matmul_prepare, .run = run};
