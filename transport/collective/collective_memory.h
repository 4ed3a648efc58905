/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory between members on one host: shared blocks for chunks, and values that are read where they
 * are.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_MEMORY_H
#define TF_TRANSPORT_COLLECTIVE_MEMORY_H

#include "transport/collective/collective_round.h"

/* ---- shared blocks ---- */

/* The link to it is there. */
void shared_offer_to(struct process_group *group, int rank);
int shared_take_offer(struct process_group *group, int rank, const msgpack_object *header,
                      struct error *err);
int shared_take_answer(struct process_group *group, int rank, bool has_it, struct error *err);
/* A block of so many bytes, of a value of that kind, for so many readers, to be filled; -1: they
 * are to be sent. */
int shared_block(struct process_group *group, enum collective_kind kind, size_t bytes, int readers,
                 void **data);
/* The member's block as bytes, given back by the last who holds it. ERR_PROTOCOL. */
int shared_read(struct process_group *group, int rank, uint64_t block, struct tensor *t,
                struct error *err);

/* ---- values that are read where they are ---- */

/* With the lock: which ones these are. */
void direct_choose(const struct process_group *group, struct collective_round *round);
/* Offers a value to that member, counted for it; the offer is to be sent. */
int direct_offer(struct process_group *group, struct collective_round *round, int rank,
                 struct memory_offer **offers);
void direct_pack(msgpack_packer *packer, const struct memory_offer *offers, int n);
/* False: it is malformed. */
bool direct_read(const struct record *record, struct round_contribution *contribution);
/* The round is settled: maps what was offered, and answers. ERR_PROTOCOL. */
int direct_take(struct process_group *group, struct collective_round *round, struct error *err);
/* With the lock: that member's answer. False: it was not asked. */
bool direct_take_answer(struct collective_round *round, int rank, uint64_t n);
/* With the lock: whether all who are to answer have. */
bool direct_agreed(const struct process_group *group, const struct collective_round *round);
/* Returns whether the member reads this one's value and its sums, since then. */
bool direct_is_read(const struct collective_round *round, int rank, int value);
/* Finds where this one reads the member's. NULL: they are sent. */
const struct tensor *direct_part(const struct collective_round *round, int rank, int value);
const struct tensor *direct_sum(const struct collective_round *round, int rank, int value);

#endif
