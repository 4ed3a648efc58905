/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena: memory that is released all at once. Pointers stay valid until arena_release. Like
 * mem_alloc, none of these functions returns NULL. Not thread-safe.
 */
#ifndef TF_BASE_ARENA_H
#define TF_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes used of the newest block */
    size_t total;               /* bytes taken from the system */
};

#define ARENA_INIT                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }

void *arena_alloc(struct arena *arena, size_t bytes); /* zeroed, aligned to 16 */
void *arena_array(struct arena *arena, size_t count, size_t item_bytes);
void *arena_copy(struct arena *arena, const void *data, size_t bytes);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void arena_release(struct arena *arena); /* the arena is then ready for use again */

#endif
