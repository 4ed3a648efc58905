/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of CUDA calls; once a device has failed, it stays failed.
 */
#include "ops/device/cuda.h"

bool cuda_has_failed(struct cuda_device *d, struct error *err)
{
    if (!atomic_load_explicit(&d->has_failed, memory_order_acquire))
        return false;
    if (err)
        *err = d->failure; /* which no longer changes */
    return true;
}

int cuda_check(struct cuda_device *d, int result, const char *what, struct error *err)
{
    if (!result)
        return 0;
    pthread_mutex_lock(&d->lock);
    if (!d->failure.code)
        error_set(&d->failure, ERR_OS, "%s:%d has failed: %s: %s (error %d of CUDA)",
                  d->device.type, d->device.index, what, d->driver->error_text(result), result);
    atomic_store_explicit(&d->has_failed, true, memory_order_release);
    pthread_mutex_unlock(&d->lock);
    cuda_has_failed(d, err);
    return d->failure.code;
}

int cuda_enter(struct cuda_device *d, struct error *err)
{
    if (cuda_has_failed(d, err))
        return d->failure.code;
    return cuda_check(d, d->driver->set_device(d->device.index), "the device is set", err);
}
