/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies from one CUDA device to another, which bypass the host if the driver says that the first
 * can access the second's memory.
 */
#include "ops/device/cuda.h"

#define PEERS_MAX 64

static bool reaches(struct device *device, int from, int to)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT;
    bool can = false;
    if (from < 0 || to < 0 || to >= PEERS_MAX || cuda_enter(d, &ignored))
        return false;
    return !d->driver->peer_can(from, to, &can) && can;
}

static int copy_to(struct device *device, void *to, struct device *other, const void *from,
                   size_t bytes, struct error *err)
{
    struct cuda_device *d = cuda_device(device);
    struct cuda_peer_copy copy = {.from_device = device->index,
                                  .to_device = other->index,
                                  .from = from,
                                  .to = to,
                                  .bytes = bytes};
    if (!bytes)
        return 0;
    if (cuda_has_failed(cuda_device(other), err) || cuda_enter(d, err))
        return err->code;
    /* Enables access once per device. If it is refused after all, CUDA copies through the host. */
    uint64_t bit = (uint64_t)1 << other->index;
    pthread_mutex_lock(&d->peer_lock);
    if (!(d->peers & bit))
        d->driver->peer_enable(d->device.index, other->index);
    d->peers |= bit;
    pthread_mutex_unlock(&d->peer_lock);
    int result = d->driver->copy_peer(cuda_stream(d, QUEUE_OUT), &copy);
    return cuda_check_enqueued(d, result, "a copy to another device", err);
}

const struct device_peer cuda_peer = {
    .reaches = reaches,
    .copy_to = copy_to,
};
