/* SPDX-License-Identifier: Apache-2.0
 *
 * The module cuda.so: the device over CUDA's own runtime.
 */
#include "exec/device/module.h"
#include "ops/device/blas_cuda.h"
#include "ops/device/blas_lt_cuda.h"
#include "ops/device/cuda.h"
#include "ops/device/dnn_cuda.h"
#include "ops/device/driver_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/device/nccl_cuda.h"
#include "ops/device/solver_cuda.h"

static int leave_fault(struct device *device, struct step_block *block, const struct fault *fault,
                       struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    if (cuda_enter(d, err))
        return err->code;
    struct cuda_stream *stream = cuda_stream(d, QUEUE_COMPUTE);
    int result = cuda_leave_fault(block, fault, (struct CUstream_st *)stream);
    return cuda_check_enqueued(d, result, "a fault is left", err);
}

static struct device *device_new(int index, const struct device_options *options, struct error *err)
{
    struct device *device = cuda_open(&cuda_driver_real, index, options, err);
    if (!device)
        return NULL;
    device->leave_fault = leave_fault;
    device->code = cuda_kernel_code;
    cuda_device(device)->blas = &cuda_blas_real;
    cuda_device(device)->lt = &cuda_lt_real;
    cuda_device(device)->solver = &cuda_solver_real;
    cuda_device(device)->dnn = &cuda_dnn_real;
    cuda_device(device)->nccl = &cuda_nccl_real;
    return device;
}

const struct device_entry device_entry = {DEVICE_ABI, device_new};
