/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a device takes for something. Only files whose names end in _cuda.c include this.
 */
#ifndef TF_OPS_DEVICE_MEASURE_CUDA_H
#define TF_OPS_DEVICE_MEASURE_CUDA_H

#include <stdbool.h>

struct cuda_device;

/* The median of the times, in milliseconds, of some runs of what `enqueue` puts into the compute
 * queue, after one that is not counted. Waits for the device, which the thread has entered. False:
 * `enqueue` has returned something other than 0, or the device has failed. */
bool cuda_measure(struct cuda_device *d, int (*enqueue)(const void *context), const void *context,
                  float *median);

#endif
