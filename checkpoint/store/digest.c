/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/digest.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cores.h"
#include "base/memory.h"
#include "base/thread.h"
#include "checkpoint/store/digest_lanes.h"

#define THREADS_MAX 4
#define LANES_MIN 8              /* fewer are faster one by one */
#define AHEAD (8 * DIGEST_GROUP) /* two groups for each of the threads */

struct digest digest_of(const void *data, size_t n)
{
    struct digest digest;
    SHA256(data, n, digest.bytes);
    return digest;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return !memcmp(a, b, sizeof *a);
}

void digest_hex(const struct digest *digest, char text[2 * DIGEST_BYTES + 1])
{
    for (int i = 0; i < DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest->bytes[i]);
}

uint64_t chunk_count(uint64_t bytes)
{
    return bytes / CHUNK_BYTES + (bytes % CHUNK_BYTES != 0);
}

size_t chunk_size(uint64_t bytes, uint64_t index)
{
    uint64_t left = bytes - index * CHUNK_BYTES;
    return (size_t)(left < CHUNK_BYTES ? left : CHUNK_BYTES);
}

/* ---- many at once ---- */

void digest_many(struct digest_item *items, size_t m)
{
    while (m) {
        size_t run = 1;
        while (run < m && run < DIGEST_LANES && items[run].n == items->n)
            run++;
        if (run >= LANES_MIN && digest_lanes_usable()) {
            const void *values[DIGEST_LANES];
            struct digest digests[DIGEST_LANES];
            for (size_t i = 0; i < DIGEST_LANES; i++)
                values[i] = items[i < run ? i : 0].data;
            digest_lanes(values, items->n, digests);
            for (size_t i = 0; i < run; i++)
                items[i].digest = digests[i];
        } else {
            run = 1;
            items->digest = digest_of(items->data, items->n);
        }
        items += run;
        m -= run;
    }
}

/* ---- by threads ---- */

struct digest_pool {
    struct digest_item *items;
    size_t n;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t progress;
    size_t next;    /* the first item that no thread has taken */
    size_t horizon; /* the first one that is too far ahead */
    bool stop;
    bool *done;
    pthread_t threads[THREADS_MAX];
    int n_threads;
};

static void *digest_groups(void *context)
{
    struct digest_pool *pool = context;
    size_t first, m;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->stop && pool->next < pool->n && pool->next >= pool->horizon)
            pthread_cond_wait(&pool->progress, &pool->lock);
        if (pool->stop || pool->next >= pool->n)
            break;
        first = pool->next;
        m = pool->n - first < DIGEST_GROUP ? pool->n - first : DIGEST_GROUP;
        pool->next += m;
        pthread_mutex_unlock(&pool->lock);
        digest_many(pool->items + first, m);
        pthread_mutex_lock(&pool->lock);
        memset(pool->done + first, true, m);
        pthread_cond_broadcast(&pool->progress);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct digest_pool *digest_pool_new(struct digest_item *items, size_t n, int threads)
{
    struct digest_pool *pool = mem_alloc(sizeof *pool);
    int wanted = threads > 0 ? threads : cores_usable();
    if (wanted > THREADS_MAX)
        wanted = THREADS_MAX;
    pool->items = items;
    pool->n = n;
    pool->horizon = AHEAD;
    pool->done = mem_array(n + 1, sizeof *pool->done);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->progress, NULL);
    while (pool->n_threads < wanted && (size_t)pool->n_threads * DIGEST_GROUP < n &&
           !thread_start(&pool->threads[pool->n_threads], digest_groups, pool))
        pool->n_threads++;
    return pool;
}

void digest_pool_wait(struct digest_pool *pool, size_t i)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->horizon < i + AHEAD) {
        pool->horizon = i + AHEAD;
        pthread_cond_broadcast(&pool->progress);
    }
    while (pool->n_threads && !pool->done[i])
        pthread_cond_wait(&pool->progress, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    if (!pool->n_threads && !pool->done[i]) { /* no thread could be started */
        digest_many(pool->items + i, 1);
        pool->done[i] = true;
    }
}

void digest_pool_free(struct digest_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->progress);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->progress);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool->done);
    mem_free(pool);
}
