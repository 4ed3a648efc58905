/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/spare.h"

#include <time.h>

#include "base/thread.h"
#include "base/time.h"
#include "exec/device/device.h"

#define LARGE_BYTES ((size_t)1 << 20) /* smaller variables delay no step noticeably */
#define PIECE_BYTES ((size_t)2 << 20)
#define PAGE_BYTES 4096
#define REST 4 /* the thread rests this many times as long as a piece took */

static void touch(const struct spare *spare, const struct tensor *other)
{
    volatile char *memory = other->data;
    const size_t bytes = other->buffer->bytes;
    for (size_t at = 0; at < bytes && !atomic_load(&spare->is_stopped);) {
        double begun = time_now();
        size_t end = at + PIECE_BYTES < bytes ? at + PIECE_BYTES : bytes;
        for (; at < end; at += PAGE_BYTES)
            memory[at] = 0;
        double rest = REST * (time_now() - begun);
        nanosleep(&(struct timespec){(time_t)rest, (long)(1e9 * (rest - (double)(time_t)rest))},
                  NULL);
    }
}

static void *work(void *context)
{
    struct spare *spare = context;
    for (size_t i = 0; i < spare->variables.n && !atomic_load(&spare->is_stopped); i++) {
        struct tensor other;
        if (!variable_other_memory(spare->variables.items[i], &other))
            continue;
        touch(spare, &other);
        tensor_release(&other); /* returns it to the pool that the variable allocates from */
    }
    atomic_store(&spare->is_done, true);
    return NULL;
}

void spare_begin(struct spare *spare, struct variable_store *store)
{
    if (spare->is_started && !atomic_load(&spare->is_done))
        return;
    spare_end(spare);
    for (struct variable *v = NULL; (v = variable_store_next(store, v));)
        if (v->updates > 1 && v->device && v->device->is_host &&
            tensor_bytes(&v->value) >= LARGE_BYTES)
            vec_push(&spare->variables, v);
    spare->is_started = spare->variables.n && !thread_start(&spare->thread, work, spare);
}

void spare_break(struct spare *spare)
{
    atomic_store(&spare->is_stopped, true);
}

void spare_end(struct spare *spare)
{
    spare_break(spare);
    if (spare->is_started)
        pthread_join(spare->thread, NULL);
    vec_release(&spare->variables);
    *spare = (struct spare){0};
}
