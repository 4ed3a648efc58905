/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunks of large values, and what is done with them by their programs.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_CHUNK_H
#define TF_TRANSPORT_COLLECTIVE_CHUNK_H

#include "base/vec.h"
#include "collective/schedule.h"
#include "transport/collective/collective_group.h"

#define CHUNK_BYTES ((int64_t)256 << 10)
#define CHUNKS_EACH 4                   /* that an owner has of a value, at least */
#define WINDOW_BYTES ((int64_t)1 << 20) /* of parts on their way, at least */
#define TO_ALL (-2)                     /* as a chunk's peer: all other members */

/* A chunk of a large value. It is over when its program has been done here. */
struct chunk {
    uint64_t index; /* of which members speak */
    int value;
    int piece;            /* of a value that goes by the call's schedule; -1: it goes directly */
    int64_t first, count; /* elements */
    int64_t at;           /* in the result */
    const struct chunk_program *program; /* since the round is settled */
    int peer;                            /* the program's, an end; or TO_ALL */
    struct tensor *parts;                /* by end, or the whole; NULL: none has come */
    size_t n_done;                       /* actions */
    bool busy;                           /* somebody does one */
    bool has_sum;                        /* what is added so far, or the sum, is in the result */
    bool begun, over;
};
typedef VEC(struct chunk) chunk_vec;

/* Cuts what flows bring, each of one value over one way, in chunks of at most so many elements.
 * They take turns, and indices of one are n_flows apart. Leaves no flows. */
void chunks_append(chunk_vec *chunks, chunk_vec *flows, uint64_t n_flows, int64_t most);
/* With the lock: gives the round copies of these, and leaves none. */
void chunks_add(struct collective_round *round, chunk_vec *chunks);
/* With the lock: those of the call. */
void chunks_cut(const struct process_group *group, struct collective_round *round);
/* With the lock: it is known who takes part. */
void chunks_settle(const struct process_group *group, struct collective_round *round);
void chunks_free(const struct process_group *group, struct collective_round *round);
/* With the lock: the one of that index; NULL: there is none. */
struct chunk *chunk_find(const struct collective_round *round, uint64_t index);
/* Returns whether the value goes by the round's schedule. */
bool value_is_scheduled(const struct collective_round *round, int value);
/* Returns whether a chunk's sum stays with its owner, who only says that it is there. */
bool chunk_stays(const struct collective_round *round, const struct chunk *chunk);
/* Begins chunks as long as not too much is on its way. */
void chunks_begin(struct process_group *group, struct collective_round *round);
/* With the lock: keeps that end's part of it, or what is whole, for the action that wants it.
 * False: none does. Then, without the lock, does what can be done. */
bool chunk_take(const struct process_group *group, const struct collective_round *round,
                struct chunk *chunk, int end, bool is_whole, const struct tensor *piece);
void chunk_advance(struct process_group *group, struct collective_round *round,
                   struct chunk *chunk);
/* With the lock: whether what is whole may be read to its place as it comes from that end. */
bool chunk_has_place(const struct process_group *group, const struct collective_round *round,
                     const struct chunk *chunk, int end);
/* Elements of a tensor as one of its own; shares the memory. */
struct tensor tensor_piece(const struct tensor *t, int64_t first, int64_t count);

#endif
