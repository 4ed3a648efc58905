/* SPDX-License-Identifier: Apache-2.0
 *
 * Large values for a peer of this host: they are put into memory that the peer maps
 * (transport/value/segment.h), and the link carries only where they lie. The peer answers whether
 * it has the value; until then it is kept here, and sent as bytes if it does not. A part of flow.c:
 * with the peer's lock, unless it says otherwise.
 */
#ifndef TF_TRANSPORT_FLOW_SHARED_H
#define TF_TRANSPORT_FLOW_SHARED_H

#include <stdatomic.h>

#include "base/vec.h"
#include "transport/value/flow.h"
#include "transport/value/segment.h"

struct shared_value { /* which the peer has not answered yet */
    uint64_t number;
    struct value_id id; /* the key is a copy */
    struct tensor value;
    bool granted;
};

struct share_state {
    struct segments *segments;
    atomic_bool on; /* the peer has what was shared, as far as is known */
    VEC(struct shared_value) shared;
};

/* `shares`: the peer's link goes through shared memory. */
void sharing_init(struct share_state *sharing, struct segments *segments, bool shares);
void sharing_release(struct share_state *sharing);

/* A copy that can be shared, of a value that is worth it and cannot. Without the lock. */
bool sharing_copy(struct share_state *sharing, const struct tensor *value, struct tensor *copy);

/* Returns whether the value can be shared as it is. */
bool sharing_can(const struct share_state *sharing, const struct tensor *value);
int sharing_send(struct share_state *sharing, struct link *link, const struct value_id *id,
                 const struct tensor *value, bool granted, struct error *err);

/* The peer's answer: *back is what it does not have. False: it answers what was not asked. */
bool sharing_answered(struct share_state *sharing, struct link *link, const struct record *record,
                      struct shared_value *back);
void shared_value_release(struct shared_value *shared);

/* A value that the peer shares; answers it. *value of type DTYPE_INVALID: it comes as bytes.
 * ERR_PROTOCOL. Without the lock. */
int sharing_take(struct peer *peer, struct segments *segments, const struct record *record,
                 struct tensor *value, struct error *err);

#endif
