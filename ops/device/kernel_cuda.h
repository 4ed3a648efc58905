/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by prepare and run of CUDA kernels. Only files whose names end in _cuda.c include this. A
 * kernel's run allocates its outputs, calls launchers (launch_cuda.h) with the stream from
 * cuda_compute, and returns their result through cuda_launched.
 */
#ifndef TF_OPS_DEVICE_KERNEL_CUDA_H
#define TF_OPS_DEVICE_KERNEL_CUDA_H

#include "exec/device/kernel.h"
#include "ops/device/launch_cuda.h"

/* N_CUDA_TYPES: kernels do not support the type. */
enum cuda_type cuda_type_of(enum dtype type);
enum dtype cuda_dtype(enum cuda_type type);

/* Returns the stream for the call's kernels. */
struct CUstream_st *cuda_compute(const struct kernel_call *call);

/* Returns KERNEL_ENQUEUED if the launcher's result is 0, else the error. */
int cuda_launched(struct kernel_call *call, int result);

/* Returns where kernels report a fault of that input. */
struct cuda_fault cuda_fault_of(const struct kernel_call *call, int input);

/* Returns the step's fault; NULL: the call belongs to no step. */
const struct fault *cuda_step_fault(const struct kernel_call *call);

/* Returns scratch memory for a run: what prepare requested if that is enough, else temporary
 * memory. NULL with call->err set; for 0 bytes NULL without an error. */
void *cuda_scratch(struct kernel_call *call, size_t bytes);

/* ---- kernels_cuda.c ---- */

/* Returns the code of a row of ops/kernels_cuda.def; NULL: none has that name. */
const struct kernel_code *cuda_kernel_code(struct device *device, const char *name);

#endif
