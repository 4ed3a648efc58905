/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the host that is kept for later, and that nobody may touch until then: who does is
 * found in builds with AddressSanitizer. In others nothing is done.
 */
#ifndef TF_BASE_GUARD_H
#define TF_BASE_GUARD_H

#include <stddef.h>
#include <string.h>

#if defined(__has_feature) /* clang, which has no macro of gcc's name */
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

/* Takes the guard off before the memory is used again, or given back. */
static inline void unguard_memory(void *data, size_t bytes)
{
#if SPOILS_MEMORY
    __asan_unpoison_memory_region(data, bytes);
#else
    (void)data;
    (void)bytes;
#endif
}

/* Memory that must be written whole before it is read is filled with the bytes of NaN. Where
 * SPOILS_MEMORY.
 */
static inline void spoil_memory(void *data, size_t bytes)
{
    if (bytes)
        memset(data, 0xff, bytes);
}

#endif
