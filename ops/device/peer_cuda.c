/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies from one CUDA device to another, which do not go through the host where the driver says
 * that the first reaches the second's memory.
 */
#include "ops/device/cuda.h"

#define PEERS_MAX 64

static bool can_reach(const struct cuda_device *d, int from, int to)
{
    bool can = false;
    return !d->driver->peer_can(from, to, &can) && can;
}

/* Asked once for each, of the device whose memory is read; where access is refused after all, the
 * host stands in. */
static bool reach(struct cuda_device *d, int to)
{
    uint64_t bit = (uint64_t)1 << to;
    struct error ignored = ERROR_INIT;
    pthread_mutex_lock(&d->peer_lock);
    if (!(d->peers_asked & bit) && !cuda_enter(d, &ignored)) {
        d->peers_asked |= bit;
        if (can_reach(d, d->device.index, to) && !d->driver->peer_enable(d->device.index, to))
            d->peers_reached |= bit;
    }
    bool is_reached = d->peers_reached & bit;
    pthread_mutex_unlock(&d->peer_lock);
    return is_reached;
}

static bool reaches(struct device *device, int from, int to)
{
    struct cuda_device *d = cuda_device(device);
    struct error ignored = ERROR_INIT;
    if (from < 0 || to < 0 || from >= PEERS_MAX || to >= PEERS_MAX)
        return false;
    if (from == device->index)
        return reach(d, to);
    return !cuda_enter(d, &ignored) && can_reach(d, from, to);
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
    int result = d->driver->copy_peer(cuda_stream(d, QUEUE_OUT), &copy);
    return cuda_check_enqueued(d, result, "a copy to another device", err);
}

void cuda_peer_functions(struct device *device)
{
    device->reaches = reaches;
    device->copy_to = copy_to;
}
