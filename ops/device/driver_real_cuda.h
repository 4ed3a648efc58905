/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_OPS_DEVICE_DRIVER_REAL_CUDA_H
#define TF_OPS_DEVICE_DRIVER_REAL_CUDA_H

#include "ops/device/driver_cuda.h"

extern const struct cuda_driver cuda_driver_real;

#endif
