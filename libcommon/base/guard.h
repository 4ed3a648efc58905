/* SPDX-License-Identifier: Apache-2.0
 *
 * Guards for host memory that is kept for later and must not be touched until then: builds with
 * AddressSanitizer report each access. In other builds they do nothing.
 */
#ifndef TF_BASE_GUARD_H
#define TF_BASE_GUARD_H

#include <stddef.h>
#include <string.h>

#if defined(__has_feature) /* clang does not define gcc's macro */
#define SPOILS_MEMORY __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SPOILS_MEMORY 1
#else
#define SPOILS_MEMORY 0
#endif

#if SPOILS_MEMORY
#include <sanitizer/asan_interface.h>
#endif

static inline void guard_memory(void *data, size_t bytes)
{
#if SPOILS_MEMORY
    __asan_poison_memory_region(data, bytes);
#else
    (void)data;
    (void)bytes;
#endif
}

/* Removes the guard before the memory is reused or freed. */
static inline void unguard_memory(void *data, size_t bytes)
{
#if SPOILS_MEMORY
    __asan_unpoison_memory_region(data, bytes);
#else
    (void)data;
    (void)bytes;
#endif
}

/* Fills memory that must be written before it is read with the bytes of NaN, if SPOILS_MEMORY. */
static inline void spoil_memory(void *data, size_t bytes)
{
    if (bytes)
        memset(data, 0xff, bytes);
}

#endif
