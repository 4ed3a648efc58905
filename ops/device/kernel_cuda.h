/* SPDX-License-Identifier: Apache-2.0
 *
 * What CUDA kernels' prepare and run have in common. Only files whose names end in _cuda.c include
 * this. A kernel's run makes its outputs, calls launchers (launch_cuda.h) with the stream that
 * cuda_compute gives it, and returns what cuda_launched makes of their result.
 */
#ifndef TF_OPS_DEVICE_KERNEL_CUDA_H
#define TF_OPS_DEVICE_KERNEL_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"

/* N_CUDA_TYPES: kernels know no such type. */
enum cuda_type cuda_type_of(enum dtype type);

/* The stream into which the call puts its kernels. */
struct CUstream_st *cuda_compute(const struct kernel_call *call);

/* KERNEL_ENQUEUED if the launcher's result is 0, else the error. */
int cuda_launched(struct kernel_call *call, int result);

/* The place where kernels leave a fault of that input. */
struct cuda_fault cuda_fault_of(const struct kernel_call *call, int input);

/* The fault of the step; NULL: the call belongs to none. */
const struct fault *cuda_step_fault(const struct kernel_call *call);

/* Scratch memory for a run: what prepare asked for where that is enough, else temporary. NULL with
 * call->err set; of 0 bytes NULL, and no error. */
void *cuda_scratch(struct kernel_call *call, size_t bytes);

/* ---- kernels_cuda.c ---- */

/* The code of a row of ops/kernels_cuda.def; NULL: there is none of the name. */
const struct kernel_code *cuda_kernel_code(struct device *device, const char *name);

#endif
