/* SPDX-License-Identifier: Apache-2.0
 *
 * The arenas of a session's whole plans. A step has one arena of each memory that its plan needs. A
 * step that runs while no other does gets the arena that the last one left, whatever its plan was,
 * so the plans of a session need as much as the largest of them, for each step that ever ran at the
 * same time. Private to exec. Thread-safe.
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
    size_t bytes;
    struct buffer *buffer;
    bool busy; /* a step uses it */
};

struct arenas {
    pthread_mutex_t lock;
    struct shared_arena *all;
};

struct arenas *arenas_new(void);
/* Call it when no step uses any of them. */
void arenas_free(struct arenas *arenas);

/* With the lock held: returns an arena that is not busy, with at least wanted->bytes, or a new one
 * (first smaller ones go back to the system), and marks it busy. wanted->next: the arena of the
 * last time, which is preferred if it still exists. NULL without memory. */
struct shared_arena *arena_take(struct arenas *arenas, const struct shared_arena *wanted);

/* With the lock held: returns idle arenas of one memory (device NULL: of all) to the system. */
void arenas_trim(struct arenas *arenas, const struct device *device, bool on_device);

#endif
