/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks of tensors and their SHA-256, by which they are kept and found. A chunk lies in a whole
 * number of pages: LMDB puts 16 bytes before a large value.
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

/* Chunks of a value of this size, and the size of one of them. */
uint64_t chunk_count(uint64_t bytes);
size_t chunk_size(uint64_t bytes, uint64_t index);

/* ---- many at once ---- */

struct digest_item {
    const void *data;
    size_t n;
    struct digest digest;
};

/* Gives all m items their digests; quickest when many that follow each other are of one size. */
void digest_many(struct digest_item *items, size_t m);
#define DIGEST_GROUP 16 /* so many at a time are worth while */

/* Digests of many chunks, made by threads in the order in which they are asked for, and only so
 * far ahead that whoever asks does not wait. */
struct digest_pool;

/* Starts `threads` (0: one for each core, four at most); the items must live until
 * digest_pool_free, which also stops what is not done yet. */
struct digest_pool *digest_pool_new(struct digest_item *items, size_t n, int threads);
/* Waits until item i has its digest. */
void digest_pool_wait(struct digest_pool *pool, size_t i);
void digest_pool_free(struct digest_pool *pool);

#endif
