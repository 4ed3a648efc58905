/* SPDX-License-Identifier: Apache-2.0
 *
 * Optional libraries of a GPU. Each has an environment variable, such as TF_CUDNN: 0 disables the
 * library, and 1 makes it an error if it is missing. Only files whose names end in _cuda.c include
 * this.
 */
#ifndef TF_OPS_DEVICE_OPTIONAL_CUDA_H
#define TF_OPS_DEVICE_OPTIONAL_CUDA_H

#include <stdbool.h>

#include "base/error.h"

struct cuda_device;

/* Returns '0', '1', or 0 if the variable is not set. */
char cuda_wish(const char *variable);

/* Loads the library unless it is disabled. An error: it was requested, but is missing. */
int cuda_load_optional(const struct cuda_device *d, const char *variable,
                       int (*load)(struct error *err), bool *is_there, struct error *err);

#endif
