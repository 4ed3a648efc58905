/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a device takes for something, and memory to try that with. Only files whose names end in
 * _cuda.c include this.
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
    void *data; /* set; aligned as an allocation */
};

/* Parts in one allocation, of hashed values in [0, 1) of the float type: on zeros a device takes
 * less power, and has higher clocks; below zero variances have no roots. The last part is to work
 * in, and is left as it is. NULL: there is not as much, or the device has failed. The thread has
 * entered the device, and captures nothing. */
struct buffer *cuda_trial_memory(struct device *device, enum cuda_type type,
                                 struct cuda_trial_part *parts, int n);

/* The median of the times, in milliseconds, of some runs of what `enqueue` puts into the compute
 * queue, after one that is not counted. Waits for the device, which the thread has entered. False:
 * `enqueue` has returned something other than 0, or the device has failed. */
bool cuda_measure(struct cuda_device *d, int (*enqueue)(const void *context), const void *context,
                  float *median);

#endif
