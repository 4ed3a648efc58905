/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory. Two policies, as in redis: small metadata comes from mem_alloc, which never returns NULL
 * (when the system has no more, the handler set by the tool says so in one line and ends the
 * process with ERR_OS); whatever is sized by input (tensor data, record bodies) comes from mem_try,
 * whose failure the caller turns into an error.
 */
#ifndef TF_BASE_MEMORY_H
#define TF_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Tensor data is aligned to this many bytes: a cache line and an AVX-512 register. */
#define MEM_ALIGNMENT 64
#define ALIGN_UP(bytes) (((bytes) + MEM_ALIGNMENT - 1) & ~(size_t)(MEM_ALIGNMENT - 1))

void *mem_alloc(size_t bytes);                    /* zeroed */
void *mem_array(size_t count, size_t item_bytes); /* zeroed; overflow counts as no memory */
void *mem_realloc(void *pointer, size_t bytes);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t length);
void mem_free(void *pointer);

/* Aligned to MEM_ALIGNMENT, not zeroed; large blocks ask for huge pages. NULL when there is no
 * memory. Free with mem_free. `bytes` may be 0: a valid pointer comes back. */
void *mem_try(size_t bytes);

/* A larger block of mem_try in place of `old`, which is freed, with its first `kept` bytes. NULL:
 * there is no memory, and `old`, which may be NULL if nothing is kept, stays as it is. */
void *mem_try_grow(void *old, size_t kept, size_t bytes);

/* Allocates like mem_try, but aligned only as any object is: small blocks come back faster. */
void *mem_try_unaligned(size_t bytes);

/* Gives whole free pages of the heap back to the system, after much was freed that is not needed
 * again. */
void mem_trim(void);

/* Threads take memory from one heap, where what one has freed is for all: for a process one thread
 * of which computes, and others mostly wait. Before there are threads. */
void mem_share_heap(void);

/* ---- a limit ---- */

/* Makes mem_try fail, from now on, where blocks of 64 KiB and more would be more than `bytes` in
 * all; mem_limit_text says so with `whose` ("ps:0"), which is copied. 0: no limit. Before there are
 * threads. */
void mem_set_limit(size_t bytes, const char *whose);

bool mem_is_limited(void);

/* The same for memory from elsewhere that counts: false, it would be too much. */
bool mem_charge(size_t bytes);
void mem_discharge(size_t bytes);

/* The text to be put behind "no memory for ...": ": the 1024 MiB of ps:0 are in use" if the last
 * mem_try or mem_charge of this thread failed for the limit, else "". */
const char *mem_limit_text(void);

/* Says, for devices, which have memory of their own, why they have just refused some. The thread's
 * next mem_limit_text tells it, and no later one. */
void mem_refused(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A keeper of memory that is only kept for reuse gives it back before mem_try fails for the limit.
 * From any thread; it allocates nothing, and takes no lock with which anybody allocates. */
struct mem_keeper {
    void (*give_back)(struct mem_keeper *keeper);
    struct mem_keeper *next, **at; /* `at`: the pointer to it */
};
void mem_keeper_add(struct mem_keeper *keeper);
void mem_keeper_remove(struct mem_keeper *keeper); /* it is not called any more */
/* Has all of them give back. */
void mem_relieve(void);

/* Called when mem_alloc fails; must not return. The default writes a line to stderr and calls
 * _exit(ERR_OS). Set it before there are threads; it may be called by any of them. */
void mem_set_handler(void (*out_of_memory)(size_t bytes));

/* Returns whether one was set: then the program is ours, and ends where there is no memory. */
bool mem_has_handler(void);

/* Calls the handler: for allocations that are not ours and cannot fail otherwise. 0: it is not
 * known how many bytes. */
void mem_exhausted(size_t bytes) __attribute__((noreturn));

#endif
