/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in memory that other processes of the host map, so that what is sent to them is not
 * copied. A process has a segment: much address space, and memory where tensors lie. Each tensor
 * has a slot with a count of those who have it, in whatever process. It is written by the process
 * that made it, before anybody is told of it, and its memory again when nobody has it any more;
 * others have the segment mapped for reading only.
 *
 * Memory is kept for the next tensors, as fresh pages cost more than a copy: a large one takes what
 * several others have left side by side (transport/value/extents.h). Mappings are kept as well.
 * Memory that a process leaves counted when it dies is not used again; when it has not been used
 * for a while the whole segment is left as it is for another one. Memory that a tensor is in stays
 * valid, whoever has died. Thread-safe.
 */
#ifndef TF_TRANSPORT_SEGMENT_H
#define TF_TRANSPORT_SEGMENT_H

#include "exec/step/outgoing.h"
#include "wire/record.h"

#define SEGMENT_LEAST_BYTES ((size_t)1 << 20) /* smaller values are not worth it */

struct segments; /* of a process: its own, and those of others that it has mapped */

/* Has at most `limit` bytes, in use and kept; 0: 4 GiB. */
struct segments *segments_new(size_t limit);
void segments_free(struct segments *segments); /* tensors that are still held stay valid */

/* Returns whether tensors of that type and size are worth a segment, and need no look before they
 * are used.
 */
bool segment_suits(enum dtype type, size_t bytes);

/* A tensor in a segment of this process. False: the limit is reached, or the system gives none. */
bool segments_alloc(struct segments *segments, struct tensor *t, enum dtype type,
                    const struct shape *shape);

/* The same for values that an executor makes; there is none until some peer can map it. It lives as
 * long as the segments. */
struct outgoing_memory *segments_outgoing(struct segments *segments);
void segments_have_reader(struct segments *segments);

bool segment_has(const struct tensor *t);
bool segment_has_part(const struct tensor *t); /* or a part of one that is */

/* Returns whether nobody but the tensor's holders in this process has its memory: it may be
 * written. */
bool segment_is_own(const struct tensor *t);

/* By what others find a tensor that is in a segment, or a part of one; it is counted for one of
 * them, who maps it. The number tells the segment from any other. */
struct segment_offer {
    uint64_t pid, fd, number, slot, offset, bytes;
};
struct segment_offer segment_share(const struct tensor *t);
/* It was not mapped after all. */
void segment_take_back(const struct tensor *t);

/* Its one field of a record. False: it is not there. */
void segment_offer_pack(msgpack_packer *packer, const struct segment_offer *offer);
bool segment_offer_read(const msgpack_object *header, struct segment_offer *offer);

enum segment_reply {
    SEGMENT_TAKEN,
    SEGMENT_FULL,      /* not now: the limit is reached */
    SEGMENT_NOT_THERE, /* not for this process, or smaller than said */
};

/* The tensor that was shared, until it is released. What is smaller than SEGMENT_LEAST_BYTES does
 * not stay, and counts for no limit. */
enum segment_reply segments_map(struct segments *segments, const struct segment_offer *offer,
                                enum dtype type, const struct shape *shape, struct tensor *t);

/* Frees what was not used for `seconds`. */
void segments_trim(struct segments *segments, double seconds);

#endif
