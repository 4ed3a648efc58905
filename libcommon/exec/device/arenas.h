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
    size_t bytes;
    struct buffer *buffer;
    bool busy; /* a step has it */
};

struct arenas {
    pthread_mutex_t lock;
    struct shared_arena *all;
};

struct arenas *arenas_new(void);
/* When no step has any of them. */
void arenas_free(struct arenas *arenas);

/* With the lock: one that is not busy, with as many bytes as `wanted` at least, or a new one, in
 * whose place smaller ones go back to the system; now it is busy. wanted->next: the one that it was
 * the last time, which may be gone and comes first if not. NULL without memory. */
struct shared_arena *arena_take(struct arenas *arenas, const struct shared_arena *wanted);

/* With the lock: those of one memory (device NULL: of all) that are not busy go back to the
 * system. */
void arenas_trim(struct arenas *arenas, const struct device *device, bool on_device);

#endif
