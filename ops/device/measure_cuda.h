/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring times on a device, and memory for trials. Only files whose names end in _cuda.c include
 * this.
 */
#ifndef TF_OPS_DEVICE_MEASURE_CUDA_H
#define TF_OPS_DEVICE_MEASURE_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "ops/device/launch_cuda.h"

struct buffer;
struct cuda_device;
struct device;

struct cuda_trial_part {
    size_t bytes;
    void *data; /* set; aligned like an allocation */
};

/* Allocates parts in one buffer, filled with hashed values in [0, 1) of the float type: with zeros
 * a device draws less power and runs faster, and negative variances have no roots. The last part is
 * workspace, and is not filled. NULL: too little memory, or the device has failed. The thread must
 * have entered the device, and must not capture. */
struct buffer *cuda_trial_memory(struct device *device, enum cuda_type type,
                                 struct cuda_trial_part *parts, int n);

/* Measures the median time, in milliseconds, of several runs of what `enqueue` puts into the
 * compute queue, after one that does not count. Waits for the device, which the thread must have
 * entered. False: `enqueue` returned other than 0, or the device has failed. */
bool cuda_measure(struct cuda_device *d, int (*enqueue)(const void *context), const void *context,
                  float *median);

#endif
