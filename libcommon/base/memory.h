/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory. Two policies, as in redis: small metadata comes from mem_alloc, which never returns NULL
 * (when memory is exhausted, the handler set by the tool prints one line and ends the process with
 * ERR_OS); memory sized by input (tensor data, record bodies) comes from mem_try, whose failure the
 * caller turns into an error.
 */
#ifndef TF_BASE_MEMORY_H
#define TF_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Tensor data is aligned to this many bytes: a cache line and an AVX-512 register. */
#define MEM_ALIGNMENT 64
#define ALIGN_UP(bytes) (((bytes) + MEM_ALIGNMENT - 1) & ~(size_t)(MEM_ALIGNMENT - 1))

void *mem_alloc(size_t bytes);                    /* zeroed */
void *mem_array(size_t count, size_t item_bytes); /* zeroed; overflow counts as out of memory */
void *mem_realloc(void *pointer, size_t bytes);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t length);
void mem_free(void *pointer);

/* Aligned to MEM_ALIGNMENT, not zeroed; large blocks ask for huge pages. NULL if out of memory.
 * Free with mem_free. `bytes` may be 0: the pointer is still valid. */
void *mem_try(size_t bytes);

/* Replaces `old`, which is freed, by a larger block of mem_try that begins with its first `kept`
 * bytes. NULL if out of memory: `old` then stays as it is. `old` may be NULL if nothing is kept. */
void *mem_try_grow(void *old, size_t kept, size_t bytes);

/* Like mem_try, but with the alignment of malloc: faster for small blocks. */
void *mem_try_unaligned(size_t bytes);

/* Returns whole free pages of the heap to the system, after much memory was freed that is not
 * needed again. */
void mem_trim(void);

/* Makes all threads share one heap, so that each can reuse what another has freed: for a process in
 * which one thread computes and others mostly wait. Call it before threads are started. */
void mem_share_heap(void);

/* ---- a limit ---- */

/* Limits the total of blocks of 64 KiB and more to `bytes`; beyond it mem_try fails, and
 * mem_limit_text says so with `whose` ("ps:0"), which is copied. 0: no limit. Call it before
 * threads are started. */
void mem_set_limit(size_t bytes, const char *whose);

bool mem_is_limited(void);

/* Count memory from elsewhere against the limit; false: it would exceed the limit. */
bool mem_charge(size_t bytes);
void mem_discharge(size_t bytes);

/* Returns text to append to "no memory for ...": ": the 1024 MiB of ps:0 are in use" if this
 * thread's last mem_try or mem_charge failed because of the limit, else "". */
const char *mem_limit_text(void);

/* Records why memory was just refused, for devices, which have their own. Only the thread's next
 * mem_limit_text returns this text. */
void mem_refused(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A reclaimer holds memory only for reuse; it gives it back before mem_try fails because of the
 * limit. Called from any thread; must not allocate, or take a lock that is held while allocating.
 */
struct mem_reclaimer {
    void (*give_back)(struct mem_reclaimer *reclaimer);
    struct mem_reclaimer *next, **at; /* `at`: the pointer that points to this */
};
void mem_reclaimer_add(struct mem_reclaimer *reclaimer);
void mem_reclaimer_remove(struct mem_reclaimer *reclaimer); /* it is not called afterwards */
/* Makes all reclaimers give back their memory. */
void mem_reclaim(void);

/* Sets the function called when mem_alloc fails; it must not return. The default writes a line to
 * stderr and calls _exit(ERR_OS). Set it before threads are started; any of them may call it. */
void mem_set_handler(void (*out_of_memory)(size_t bytes));

/* Returns whether a handler was set: then the program is a tool that ends when out of memory. */
bool mem_has_handler(void);

/* Calls the handler, for foreign allocations that have no other way to fail. 0: the number of bytes
 * is unknown. */
void mem_exhausted(size_t bytes) __attribute__((noreturn));

#endif
