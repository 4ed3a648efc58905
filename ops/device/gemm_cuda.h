/* SPDX-License-Identifier: Apache-2.0
 *
 * How a product of floats is computed: by cuBLASLt, where that is there and takes it, with an
 * algorithm that is chosen once for its sizes; otherwise by cuBLAS. TF_CUBLASLT=0 leaves the first
 * out, TF_CUBLASLT=1 makes it an error that it is missing. Only files whose names end in _cuda.c
 * include this.
 */
#ifndef TF_OPS_DEVICE_GEMM_CUDA_H
#define TF_OPS_DEVICE_GEMM_CUDA_H

#include "ops/device/blas_lt_cuda.h"

#define CUDA_GEMM_NAME_BYTES 80

struct cuda_gemm_plan {
    int place; /* of the algorithm in the library's list, from 0; < 0: it is cuBLAS's */
    struct cuda_lt_algorithm algorithm;
    size_t bytes; /* of scratch memory */
};

/* Opens the libraries before the first product, from a prepare. ERR_UNAVAILABLE: one is missing. */
int cuda_gemm_open(struct cuda_device *d, struct error *err);
void cuda_gemm_close(struct cuda_device *d);

/* For all products of those sizes, wherever their matrices are, as long as the device is open: by
 * the file of choices (choices_cuda.h), where there is one, or by shapes. Thread-safe. */
void cuda_gemm_plan(struct cuda_device *d, const struct cuda_gemm *gemm,
                    struct cuda_gemm_plan *plan);

/* The kernel's name for plans, with the algorithm of that product behind it, where it has one. */
void cuda_gemm_name(const struct cuda_device *d, const struct cuda_gemm_plan *plan,
                    const char *kernel, char name[CUDA_GEMM_NAME_BYTES]);

/* Multiplies with scratch memory of plan->bytes, aligned to MEM_ALIGNMENT. KERNEL_ENQUEUED, or an
 * error. Thread-safe. */
int cuda_gemm_run(struct kernel_call *call, const struct cuda_gemm *gemm,
                  const struct cuda_gemm_plan *plan, void *scratch);

#endif
