/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_DEVICE_FAULT_CUDA_H
#define TF_OPS_DEVICE_FAULT_CUDA_H

#include "ops/device/launch_cuda.h"

/* Leaves the fault in the block, unless it is none or there is one; both are in the device's
 * memory. Enqueued; a cudaError_t, 0 when all is well. */
CUDA_C int cuda_leave_fault(struct step_block *block, const struct fault *fault,
                            struct CUstream_st *stream);

#endif
