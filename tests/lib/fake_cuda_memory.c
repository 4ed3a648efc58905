/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's calls of memory.
 */
#include <stdint.h>

#include "base/memory.h"
#include "base/vec.h"
#include "lib/fake_cuda_driver.h"

/* ---- of the device ---- */

struct card_memory {
    uintptr_t begin;
    size_t bytes;
    struct fake_card *card;
};

static pthread_mutex_t cards_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows, and `used` */
static VEC(struct card_memory) cards_memory;

static size_t find_memory(const void *data)
{
    uintptr_t at = (uintptr_t)test_to_host(data);
    size_t i = 0;
    while (i < cards_memory.n && (at < cards_memory.items[i].begin ||
                                  at - cards_memory.items[i].begin >= cards_memory.items[i].bytes))
        i++;
    return i;
}

/* Returns NULL if the card has no more memory. */
static void *take_memory(struct fake_card *card, size_t bytes)
{
    pthread_mutex_lock(&cards_lock);
    bool has = bytes <= card->memory && card->used <= card->memory - bytes;
    void *data = has ? mem_try(bytes) : NULL;
    struct card_memory memory = {(uintptr_t)data, bytes, card};
    if (data) {
        vec_push(&cards_memory, memory);
        card->used += bytes;
    }
    pthread_mutex_unlock(&cards_lock);
    return data;
}

/* Forgets memory. Called before others may get it. */
static void give_memory(const void *data)
{
    pthread_mutex_lock(&cards_lock);
    size_t at = find_memory(data);
    if (at < cards_memory.n) {
        cards_memory.items[at].card->used -= cards_memory.items[at].bytes;
        cards_memory.items[at] = vec_pop(&cards_memory);
    }
    if (!cards_memory.n)
        vec_release(&cards_memory);
    pthread_mutex_unlock(&cards_lock);
}

int fake_memory_check(struct fake_card *card, const void *data)
{
    pthread_mutex_lock(&cards_lock);
    size_t at = find_memory(data);
    bool is_others = at < cards_memory.n && cards_memory.items[at].card != card;
    pthread_mutex_unlock(&cards_lock);
    return is_others ? fake_fail(card, "a copy is of memory of another card") : 0;
}

/* The first use of the memory must wait for the stream. */
int fake_memory_alloc(struct cuda_stream *stream, size_t bytes, void **memory)
{
    struct test_scheduler *s = stream->card->scheduler;
    struct error ignored = ERROR_INIT;
    int code = fake_enter(stream->card);
    test_capture_refuse(s, "memory is asked for");
    if (code)
        return code;
    void *data = take_memory(stream->card, bytes);
    if (!data)
        return CUDA_NO_MEMORY;
    struct test_access all = {data, bytes, true};
    pthread_mutex_lock(&s->lock);
    test_order_alloc(&s->order, data, bytes);
    test_order_use(&s->order, stream->line, &all, 1, &ignored);
    pthread_mutex_unlock(&s->lock);
    *memory = test_to_device(data);
    return 0;
}

struct freeing {
    struct test_job job; /* first */
    void *memory;        /* its plain address, which a leak detector can follow */
};

static void free_memory(struct test_job *job)
{
    struct freeing *freeing = (struct freeing *)job;
    mem_free(freeing->memory);
    mem_free(freeing);
}

int fake_memory_free(struct cuda_stream *stream, void *memory)
{
    int code = fake_enter(stream->card);
    struct freeing *freeing = mem_alloc(sizeof *freeing);
    freeing->job = (struct test_job){.free = free_memory};
    freeing->memory = test_to_host(memory);
    give_memory(memory);
    test_enqueue_free(stream->card->scheduler, stream->line, &freeing->job, freeing->memory);
    return code;
}

int fake_memory_keep(int device)
{
    (void)device;
    return fake_enter(fake_current());
}

/* ---- of the host ---- */

struct pinned_memory {
    uintptr_t begin, end;
    bool registered;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what is pinned */
static VEC(struct pinned_memory) all;

/* Finds the first range that has some of these bytes. */
static size_t find(const void *data, size_t bytes)
{
    uintptr_t begin = (uintptr_t)data, end = begin + bytes;
    size_t i = 0;
    while (i < all.n && (all.items[i].end <= begin || end <= all.items[i].begin))
        i++;
    return i;
}

static int add(void *data, size_t bytes, bool registered)
{
    struct pinned_memory new = {(uintptr_t)data, (uintptr_t)data + bytes, registered};
    pthread_mutex_lock(&lock);
    bool is_new = find(data, bytes) == all.n;
    if (is_new)
        vec_push(&all, new);
    pthread_mutex_unlock(&lock);
    return is_new ? 0 : CUDA_ALREADY_PINNED;
}

static int take_away(void *data, bool registered)
{
    struct fake_card *card = fake_current();
    struct pinned_memory old = {0};
    pthread_mutex_lock(&lock);
    size_t at = find(data, 1);
    if (at < all.n && all.items[at].begin == (uintptr_t)data &&
        all.items[at].registered == registered) {
        old = all.items[at];
        all.items[at] = vec_pop(&all);
    }
    if (!all.n)
        vec_release(&all);
    pthread_mutex_unlock(&lock);
    if (!old.end)
        return fake_fail(card, "memory of the host is given back that is not pinned");
    if (test_host_is_used(card->scheduler, data, old.end - old.begin))
        return fake_fail(card, "memory of the host is given back before a copy is over");
    return 0;
}

int fake_host_alloc(size_t bytes, void **memory)
{
    struct fake_card *card = fake_current();
    int code = fake_enter(card);
    test_capture_refuse(card->scheduler, "memory of the host is asked for");
    *memory = code ? NULL : mem_try(bytes);
    if (code || !*memory)
        return code ? code : CUDA_NO_MEMORY;
    return add(*memory, bytes, false);
}

int fake_host_free(void *memory)
{
    int code = take_away(memory, false);
    mem_free(memory);
    return code;
}

int fake_host_register(void *memory, size_t bytes)
{
    struct fake_card *card = fake_current();
    int code = fake_enter(card);
    if (!code && (((uintptr_t)memory | bytes) & 4095))
        code = fake_fail(card, "what is pinned is not whole pages");
    return code ? code : add(memory, bytes, true);
}

int fake_host_unregister(void *memory)
{
    return take_away(memory, true);
}

int fake_host_check(struct fake_card *card, const void *data, size_t bytes)
{
    uintptr_t begin = (uintptr_t)data, end = begin + bytes;
    struct pinned_memory of = {0};
    pthread_mutex_lock(&lock);
    size_t at = find(data, bytes);
    if (at < all.n)
        of = all.items[at];
    pthread_mutex_unlock(&lock);
    if (!of.end && test_captured(card->scheduler))
        test_capture_refuse(card->scheduler, "memory that is not pinned is copied");
    if (of.end && (begin < of.begin || of.end < end))
        return fake_fail(card, "a copy is of memory that is pinned in part");
    return 0;
}
