/* SPDX-License-Identifier: Apache-2.0
 *
 * Large values for a peer of this host: they are put into memory that the peer maps
 * (transport/value/segment.h), and only where they are goes over the link. The peer answers whether
 * it has the value; until then it is kept here, and sent as bytes if it does not. A part of flow.c:
 * with the peer's lock, unless it says otherwise.
 */
#ifndef TF_TRANSPORT_FLOW_LEND_H
#define TF_TRANSPORT_FLOW_LEND_H

#include <stdatomic.h>

#include "base/vec.h"
#include "transport/value/flow.h"
#include "transport/value/segment.h"

struct lent { /* and not answered yet */
    uint64_t number;
    struct value_id id; /* the key is a copy */
    struct tensor value;
    bool granted;
};

struct lending {
    struct segments *segments;
    atomic_bool on; /* the peer has what was lent, as far as is known */
    VEC(struct lent) lent;
};

/* `shares`: the peer's link goes through shared memory. */
void lending_init(struct lending *lending, struct segments *segments, bool shares);
void lending_release(struct lending *lending);

/* A copy that can be lent, of a value that is worth it and cannot. Without the lock. */
bool lending_copy(struct lending *lending, const struct tensor *value, struct tensor *copy);

/* Whether the value can be lent as it is. */
bool lending_can(const struct lending *lending, const struct tensor *value);
int lending_lend(struct lending *lending, struct link *link, const struct value_id *id,
                 const struct tensor *value, bool granted, struct error *err);

/* The peer's answer: *back is what it does not have. False: it answers what was not asked. */
bool lending_answered(struct lending *lending, struct link *link, const struct record *record,
                      struct lent *back);
void lent_release(struct lent *lent);

/* A value that the peer lends; answers it. Of *value the type DTYPE_INVALID: it comes as bytes.
 * ERR_PROTOCOL. Without the lock. */
int lending_take(struct peer *peer, struct segments *segments, const struct record *record,
                 struct tensor *value, struct error *err);

#endif
