/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in memory that other processes of the host map, so that values sent to them are not
 * copied. A process has a segment: a large address space, with memory where tensors lie. Each
 * tensor has a slot that counts its readers in all processes. The process that creates a tensor
 * writes it before any other process learns of it, and gets its memory back when the tensor has no
 * reader; others map the segment read-only.
 *
 * Memory is kept for the next tensors, as fresh pages cost more than a copy: a large tensor takes
 * memory that several others left side by side (transport/value/extents.h). Mappings are kept, too.
 * Memory that a process leaves counted when it dies is not reused; if it stays so for a while the
 * whole segment is given up for a new one. The memory of a tensor stays valid, whichever process
 * has died. Thread-safe.
 */
#ifndef TF_TRANSPORT_SEGMENT_H
#define TF_TRANSPORT_SEGMENT_H

#include "exec/step/outgoing.h"
#include "wire/record.h"

#define SEGMENT_LEAST_BYTES ((size_t)1 << 20) /* smaller values are not worth sharing */

struct segments; /* of a process: its own, and segments of others that it has mapped */

/* The segments have at most `limit` bytes, in use and kept; 0: 4 GiB. */
struct segments *segments_new(size_t limit);
void segments_free(struct segments *segments); /* tensors that are still held stay valid */

/* Returns whether tensors of that type and size are worth a segment, and need no validation before
 * use. */
bool segment_suits(enum dtype type, size_t bytes);

/* Allocates a tensor in this process's segment. Returns false if the limit is reached, or the
 * system has no memory. */
bool segments_alloc(struct segments *segments, struct tensor *t, enum dtype type,
                    const struct shape *shape);

/* As segments_alloc, for values that an executor makes; allocates none until some peer can map it.
 * Lives as long as the segments. */
struct outgoing_memory *segments_outgoing(struct segments *segments);
void segments_have_reader(struct segments *segments);

bool segment_has(const struct tensor *t);
bool segment_has_part(const struct tensor *t); /* or a part of such a tensor */

/* Returns whether only holders in this process have the tensor's memory, so that it may be
 * written. */
bool segment_is_own(const struct tensor *t);

/* Describes a tensor in a segment, or a part of one, for another process. segment_share counts one
 * reader, the process that maps it. The number identifies the segment. */
struct segment_offer {
    uint64_t pid, fd, number, slot, offset, bytes;
};
struct segment_offer segment_share(const struct tensor *t);
/* The offered tensor was not mapped after all. */
void segment_take_back(const struct tensor *t);

/* Pack and read an offer, one field of a record. Reading returns false if there is none. */
void segment_offer_pack(msgpack_packer *packer, const struct segment_offer *offer);
bool segment_offer_read(const msgpack_object *header, struct segment_offer *offer);

enum segment_reply {
    SEGMENT_TAKEN,
    SEGMENT_FULL,      /* not now: the limit is reached */
    SEGMENT_NOT_THERE, /* not accessible, or smaller than claimed */
};

/* Maps a shared tensor, until it is released. A tensor smaller than SEGMENT_LEAST_BYTES is
 * short-lived, and does not count for the limit. */
enum segment_reply segments_map(struct segments *segments, const struct segment_offer *offer,
                                enum dtype type, const struct shape *shape, struct tensor *t);

/* Frees memory and mappings that were not used for `seconds`. */
void segments_trim(struct segments *segments, double seconds);

#endif
