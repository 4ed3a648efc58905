/* SPDX-License-Identifier: Apache-2.0
 *
 * The arenas of a session's whole plans. A step has one of each memory that its plan needs; who
 * runs when no other step does gets the one that the other has left, whatever its plan was, so that
 * the plans of a session need as much as the largest of them, for each step that ever ran at once.
 * Private to exec. Thread-safe.
 */
#ifndef TF_EXEC_ARENAS_H
#define TF_EXEC_ARENAS_H

#include <pthread.h>

#include "exec/device/device.h"

/* An arena of one memory. Guarded by the lock of its arenas. */
struct shared_arena {
    struct shared_arena *next;
    struct device *device;
    bool on_device;
    struct buffer *buffer; /* NULL: it went back, as a larger one took its place */
    size_t bytes;
    bool busy;   /* a step writes to it */
    int holders; /* instances that point into it */
};

struct arenas {
    pthread_mutex_t lock;
    struct shared_arena *all;
};

struct arenas *arenas_new(void);
/* Frees the arenas when nobody holds any of them. */
void arenas_free(struct arenas *arenas);

/* With the lock. One that is not busy, with as many bytes at least, or a new one, in whose place
 * smaller ones go back to the system; now held and busy. NULL without memory. */
struct shared_arena *arena_take(struct arenas *arenas, struct device *device, bool on_device,
                                size_t bytes);

/* With the lock: whether who holds it may write to it now. It has not gone back, and is not busy.
 */
bool arena_is_free(const struct shared_arena *arena);

/* With the lock. It goes back to the system with its last holder. */
void arena_drop(struct arenas *arenas, struct shared_arena *arena);

#endif
