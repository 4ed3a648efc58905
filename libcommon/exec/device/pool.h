/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of a device's memory, or of host memory for use with it: the memory of a dynamic plan's
 * values. A buffer returns to the pool when its last holder drops it, so from the second step on
 * nothing is allocated from the system. Host memory must not be touched from then until it is
 * handed out again (base/guard.h). Thread-safe.
 */
#ifndef TF_EXEC_POOL_H
#define TF_EXEC_POOL_H

#include "exec/device/device.h"

struct pool;

struct pool *pool_new(struct device *device, bool on_device);
/* Buffers that are in use go back to the system when their last holder drops them: a value may
 * outlive its plan. The device must outlive both. */
void pool_free(struct pool *pool);

/* Returns unused memory to the system, as well as buffers that come back before the next
 * pool_alloc: a value of a plan that no longer runs may be kept for long. */
void pool_trim(struct pool *pool);

/* Returns whether a returned buffer can hold so many bytes: pool_alloc would hand it out. */
bool pool_has(struct pool *pool, size_t bytes);

/* Held once; NULL without memory. */
struct buffer *pool_alloc(struct pool *pool, size_t bytes);

#endif
