/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of a device's memory, or of host memory for use with it: what a dynamic plan's values live
 * in. Memory goes back to the pool when its last holder lets go, so that from the second step on
 * nothing comes from the system. Where it is the host's nobody may touch it from then on until it
 * is handed out again (base/guard.h). Thread-safe.
 */
#ifndef TF_EXEC_POOL_H
#define TF_EXEC_POOL_H

#include "exec/device/device.h"

struct pool;

struct pool *pool_new(struct device *device, bool on_device);
/* Buffers that are out go back to the system when their last holder lets go: a value may outlive
 * its plan. The device must outlive both. */
void pool_free(struct pool *pool);

/* Memory that nobody holds goes back to the system; so does memory that comes back until something
 * is taken again: a value of a plan that is not run any more may be kept for long. */
void pool_trim(struct pool *pool);

/* Returns whether the next pool_alloc of so many bytes would take what came back. */
bool pool_has(struct pool *pool, size_t bytes);

/* One holder; NULL without memory. */
struct buffer *pool_alloc(struct pool *pool, size_t bytes);

#endif
