/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/blas_cuda.h"

#include "ops/device/cuda.h"

int cuda_blas_open(struct cuda_device *d, struct error *err)
{
    return cuda_handle_open(d, &d->handles[CUDA_BLAS], &d->blas->calls, NULL, err);
}

int cuda_blas_gemm(struct kernel_call *call, const struct cuda_gemm *gemm)
{
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_handle *h = &d->handles[CUDA_BLAS];
    struct cuda_gemm product = *gemm;
    product.tf32 = d->tf32 && gemm->type == CUDA_FLOAT32;
    if (cuda_handle_begin(call, h))
        return call->err->code;
    return cuda_handle_end(call, h, d->blas->gemm(h->handle, &product), "a product");
}

int cuda_blas_trsm(struct kernel_call *call, const struct cuda_trsm *trsm)
{
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_handle *h = &d->handles[CUDA_BLAS];
    if (cuda_handle_begin(call, h))
        return call->err->code;
    return cuda_handle_end(call, h, d->blas->trsm(h->handle, trsm), "triangular equations");
}
