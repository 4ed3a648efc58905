/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of one process that others on its host read: blocks that it fills and lends, until every
 * reader has given the block back. Who reads and who fills agree by messages of their own on which
 * block has what; here is only the memory, and a counter for each block.
 *
 * Pages that were never lent take no memory; those that were stay until the lender is freed. A
 * reader that ends without giving back what it has leaves the block lent for good.
 */
#ifndef TF_TRANSPORT_LEND_H
#define TF_TRANSPORT_LEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

#define LEND_BYTES ((size_t)256 << 10) /* of a block */
#define LEND_BLOCKS 128

struct lender;
struct borrower;

/* By what another process finds the memory: the number that it has in it tells it from any other.
 */
struct lend_offer {
    int64_t pid, fd;
    uint64_t number;
};

/* Its LEND_OFFER_FIELDS fields of a record. False: they are not there. */
#define LEND_OFFER_FIELDS 3
void lend_offer_pack(msgpack_packer *packer, const struct lend_offer *offer);
bool lend_offer_read(const msgpack_object *header, struct lend_offer *offer);

/* NULL: the system gives none. */
struct lender *lender_new(void);
void lender_free(struct lender *lender); /* NULL is harmless */
struct lend_offer lender_offer(const struct lender *lender);

/* A block for so many readers, which each give it back once; -1: all are lent. *data is to be
 * filled before anybody is told of it. Any thread. */
int lender_lend(struct lender *lender, int readers, void **data);

/* NULL: that memory is not there, or not for this process (another user's, another host's, in
 * another container). */
struct borrower *borrower_new(const struct lend_offer *offer);
void borrower_free(struct borrower *borrower); /* NULL is harmless */

/* NULL: there is no such block. Any thread, as the next one. */
void *borrower_block(const struct borrower *borrower, uint64_t block);
void borrower_return(struct borrower *borrower, uint64_t block);

#endif
