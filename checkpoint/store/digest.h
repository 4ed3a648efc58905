/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks of tensors and their SHA-256, which is their key. A chunk fills a whole number of pages
 * together with the 16 bytes that LMDB puts before a large value.
 */
#ifndef TF_CHECKPOINT_DIGEST_H
#define TF_CHECKPOINT_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_BYTES ((uint64_t)(1 << 20) - 16)
#define DIGEST_BYTES 32

struct digest {
    uint8_t bytes[DIGEST_BYTES];
};

struct digest digest_of(const void *data, size_t n);
bool digest_equal(const struct digest *a, const struct digest *b);
void digest_hex(const struct digest *digest, char text[2 * DIGEST_BYTES + 1]);

/* The number of chunks of a value of this size, and the size of one of them. */
uint64_t chunk_count(uint64_t bytes);
size_t chunk_size(uint64_t bytes, uint64_t index);

/* ---- many at once ---- */

struct digest_item {
    const void *data;
    size_t n;
    struct digest digest;
};

/* Computes the digests of all m items; fastest if many consecutive items have one size. */
void digest_many(struct digest_item *items, size_t m);
#define DIGEST_GROUP 16 /* a group of this size is efficient */

/* Computes digests of many chunks in threads, in the order in which they are asked for, and just
 * far enough ahead that the caller does not wait. */
struct digest_pool;

/* Starts `threads` threads (0: one for each core, four at most). The items must live until
 * digest_pool_free, which also stops unfinished work. */
struct digest_pool *digest_pool_new(struct digest_item *items, size_t n, int threads);
/* Waits until item i has its digest. */
void digest_pool_wait(struct digest_pool *pool, size_t i);
void digest_pool_free(struct digest_pool *pool);

#endif
