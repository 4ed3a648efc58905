/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of memory that one process fills and others on its host read. A block stays as it is until
 * every reader has given it back. Writer and readers agree by messages of their own on what is in
 * which block; here are only the memory and a counter for each block.
 *
 * Pages of blocks that were never granted take no memory; those of others stay until the blocks are
 * freed, or trimmed. A reader that ends without giving a block back keeps it for good.
 */
#ifndef TF_TRANSPORT_SHARED_BLOCKS_H
#define TF_TRANSPORT_SHARED_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

#define SHARED_BLOCK_BYTES ((size_t)256 << 10) /* of a block */
#define SHARED_BLOCKS 128

struct shared_blocks;
struct shared_view;

/* The memory's place for another process; the number in it tells it from any other. */
struct shared_offer {
    int64_t pid, fd;
    uint64_t number;
};

/* Its SHARED_OFFER_FIELDS fields of a record. False: they are not there. */
#define SHARED_OFFER_FIELDS 3
void shared_offer_pack(msgpack_packer *packer, const struct shared_offer *offer);
bool shared_offer_read(const msgpack_object *header, struct shared_offer *offer);

/* NULL: the system gives none. */
struct shared_blocks *shared_blocks_new(void);
void shared_blocks_free(struct shared_blocks *shared); /* NULL is harmless */
/* Pages of blocks that nobody reads go back; so they do when memory is short. Any thread. */
void shared_blocks_trim(struct shared_blocks *shared);
struct shared_offer shared_blocks_offer(const struct shared_blocks *shared);

/* One of the first `most` blocks for so many readers, which each give it back once; -1: all of
 * these are in use. *data is to be filled before anybody is told of it. Any thread. */
int shared_blocks_grant(struct shared_blocks *shared, int most, int readers, void **data);

/* NULL: that memory is not there, or not for this process (another user's, another host's, in
 * another container). */
struct shared_view *shared_view_new(const struct shared_offer *offer);
void shared_view_free(struct shared_view *view); /* NULL is harmless */

/* NULL: there is no such block. Any thread, as the next one. */
void *shared_view_block(const struct shared_view *view, uint64_t block);
void shared_view_return(struct shared_view *view, uint64_t block);

#endif
