/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that a GPU can do without: of the environment variable of one, TF_CUDNN say, 0 leaves
 * it out, and 1 makes it an error that it is missing. Only files whose names end in _cuda.c include
 * this.
 */
#ifndef TF_OPS_DEVICE_OPTIONAL_CUDA_H
#define TF_OPS_DEVICE_OPTIONAL_CUDA_H

#include <stdbool.h>

#include "base/error.h"

struct cuda_device;

/* '0', '1', or 0 where nobody has said anything. */
char cuda_wish(const char *variable);

/* Loads it, unless it is left out. An error: it was asked for, and is missing. */
int cuda_load_optional(const struct cuda_device *d, const char *variable,
                       int (*load)(struct error *err), bool *is_there, struct error *err);

#endif
