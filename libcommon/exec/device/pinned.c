/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/pinned.h"

#include <pthread.h>

#include "base/vec.h"

#define DEVICES_MAX 64 /* more are told of nothing */

struct pinned {
    const void *data;
    size_t bytes;
    uint64_t by; /* devices, by place */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct device *devices[DEVICES_MAX];
static VEC(struct pinned) all;

/* A device that cannot copies as from any memory. */
static void pin(struct pinned *pinned, int place)
{
    struct error ignored = ERROR_INIT;
    struct device *device = devices[place];
    if (device && !device->memory->pin(device, pinned->data, pinned->bytes, &ignored))
        pinned->by |= (uint64_t)1 << place;
}

static void unpin(struct pinned *pinned, int place)
{
    if (pinned->by >> place & 1)
        devices[place]->memory->unpin(devices[place], pinned->data);
    pinned->by &= ~((uint64_t)1 << place);
}

void pinned_add(const void *data, size_t bytes)
{
    struct pinned pinned = {.data = data, .bytes = bytes};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < DEVICES_MAX; i++)
        pin(&pinned, i);
    vec_push(&all, pinned);
    pthread_mutex_unlock(&lock);
}

void pinned_remove(const void *data)
{
    pthread_mutex_lock(&lock);
    size_t at = all.n - 1; /* what came last often goes first */
    while (at > 0 && all.items[at].data != data)
        at--;
    BUG_ON(!all.n || all.items[at].data != data);
    for (int i = 0; i < DEVICES_MAX; i++)
        unpin(&all.items[at], i);
    all.items[at] = vec_pop(&all);
    if (!all.n)
        vec_release(&all);
    pthread_mutex_unlock(&lock);
}

void pinned_open(struct device *device)
{
    int place = 0;
    if (!device->memory->pin)
        return;
    pthread_mutex_lock(&lock);
    while (place < DEVICES_MAX && devices[place])
        place++;
    if (place < DEVICES_MAX)
        devices[place] = device;
    for (size_t i = 0; place < DEVICES_MAX && i < all.n; i++)
        pin(&all.items[i], place);
    pthread_mutex_unlock(&lock);
}

void pinned_close(struct device *device)
{
    if (!device->memory->pin)
        return;
    pthread_mutex_lock(&lock);
    for (int place = 0; place < DEVICES_MAX; place++) {
        if (devices[place] != device)
            continue;
        for (size_t i = 0; i < all.n; i++)
            unpin(&all.items[i], place);
        devices[place] = NULL;
    }
    pthread_mutex_unlock(&lock);
}
