/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that a device's module needs of the system, for C or C++ (nvcc). A module in C++
 * includes further headers of the project, such as those of ops, after this one and as C:
 *
 *     #include "exec/device/module.h"
 *     extern "C" {
 *     #include "ops/nn/window.h"
 *     }
 *
 * C++ headers have templates, which cannot be C: those that the C headers need are included here.
 */
#ifndef TF_EXEC_MODULE_H
#define TF_EXEC_MODULE_H

#ifdef __cplusplus
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

extern "C" {
#endif

#include "base/memory.h"
#include "collective/sum.h"
#include "exec/device/deferred.h"
#include "exec/device/device.h"
#include "exec/device/fault.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/state/variable.h"
#include "exec/step/step.h"

/* The table that a module exports. */
extern const struct device_entry device_entry;

#ifdef __cplusplus
}
#endif

#endif
