/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/digest.h"

#include <openssl/sha.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

#define THREADS_MAX 4

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

struct digest_pool {
    struct digest_item *items;
    size_t n;
    atomic_size_t next;
    atomic_bool stop;
    atomic_bool *done;
    pthread_mutex_t lock;
    pthread_cond_t progress;
    pthread_t threads[THREADS_MAX];
    int n_threads;
};

static void *work(void *context)
{
    struct digest_pool *pool = context;
    while (!atomic_load(&pool->stop)) {
        size_t i = atomic_fetch_add(&pool->next, 1);
        if (i >= pool->n)
            break;
        struct digest_item *item = &pool->items[i];
        item->digest = digest_of(item->data, item->n);
        pthread_mutex_lock(&pool->lock);
        atomic_store(&pool->done[i], true);
        pthread_cond_broadcast(&pool->progress);
        pthread_mutex_unlock(&pool->lock);
    }
    return NULL;
}

struct digest_pool *digest_pool_new(struct digest_item *items, size_t n, int threads)
{
    struct digest_pool *pool = mem_alloc(sizeof *pool);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = threads > 0 ? threads : (int)cores;
    if (wanted > THREADS_MAX)
        wanted = THREADS_MAX;
    pool->items = items;
    pool->n = n;
    pool->done = mem_array(n + 1, sizeof *pool->done);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->progress, NULL);
    while (pool->n_threads < wanted && (size_t)pool->n_threads < n &&
           !pthread_create(&pool->threads[pool->n_threads], NULL, work, pool))
        pool->n_threads++;
    return pool;
}

void digest_pool_wait(struct digest_pool *pool, size_t i)
{
    if (!pool->n_threads) /* there were none to be had */
        work(pool);
    if (atomic_load(&pool->done[i]))
        return;
    pthread_mutex_lock(&pool->lock);
    while (!atomic_load(&pool->done[i]))
        pthread_cond_wait(&pool->progress, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void digest_pool_free(struct digest_pool *pool)
{
    atomic_store(&pool->stop, true);
    for (int i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->progress);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool->done);
    mem_free(pool);
}
