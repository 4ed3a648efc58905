/* SPDX-License-Identifier: Apache-2.0
 *
 * How a product of floats is computed: by cuBLASLt, if it is available and supports the product,
 * with an algorithm chosen once for its sizes; otherwise by cuBLAS. TF_CUBLASLT=0 disables
 * cuBLASLt, TF_CUBLASLT=1 requires it. Only files whose names end in _cuda.c include this.
 */
#ifndef TF_OPS_DEVICE_GEMM_CUDA_H
#define TF_OPS_DEVICE_GEMM_CUDA_H

#include "ops/device/blas_lt_cuda.h"

#define CUDA_GEMM_NAME_BYTES 80

struct cuda_gemm_plan {
    int place; /* of the algorithm in the library's list, from 0; < 0: use cuBLAS */
    struct cuda_lt_algorithm algorithm;
    size_t bytes; /* of scratch memory */
};

/* Opens the libraries; prepare calls it before the first product. ERR_UNAVAILABLE: one is
 * missing. */
int cuda_gemm_open(struct cuda_device *d, struct error *err);

/* Chooses for all products of those sizes, at any address, as long as the device is open: by the
 * file of choices (choices_cuda.h), if there is one, or by shapes. Thread-safe. */
void cuda_gemm_plan(struct cuda_device *d, const struct cuda_gemm *gemm,
                    struct cuda_gemm_plan *plan);

/* Makes the kernel's name for plans, followed by the algorithm of that product, if it has one. */
void cuda_gemm_name(const struct cuda_device *d, const struct cuda_gemm_plan *plan,
                    const char *kernel, char name[CUDA_GEMM_NAME_BYTES]);

/* Multiplies, with scratch memory of plan->bytes, aligned to MEM_ALIGNMENT. Returns
 * KERNEL_ENQUEUED, or an error. Thread-safe. */
int cuda_gemm_run(struct kernel_call *call, const struct cuda_gemm *gemm,
                  const struct cuda_gemm_plan *plan, void *scratch);

#endif
