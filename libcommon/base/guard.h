/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the host that is kept for later, and that nobody may touch until then: who does is
 * found in builds with AddressSanitizer. In others nothing is done.
 */
#ifndef TF_BASE_GUARD_H
#define TF_BASE_GUARD_H

#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

static inline void guard_memory(void *data, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(data, bytes);
#else
    (void)data;
    (void)bytes;
#endif
}

/* Before it is used again, or given back. */
static inline void unguard_memory(void *data, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(data, bytes);
#else
    (void)data;
    (void)bytes;
#endif
}

#endif
