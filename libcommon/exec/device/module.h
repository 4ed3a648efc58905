/* SPDX-License-Identifier: Apache-2.0
 *
 * All that a device's module needs of the system, from C or from C++ (nvcc). A module in C++
 * includes further headers of the project, those of ops say, after this one and as C:
 *
 *     #include "exec/device/module.h"
 *     extern "C" {
 *     #include "ops/nn/window.h"
 *     }
 *
 * Headers of C++ have templates, which cannot be C: those that C's lead to are included here first.
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
