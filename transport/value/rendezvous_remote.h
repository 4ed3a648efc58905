/* SPDX-License-Identifier: Apache-2.0
 *
 * The rendezvous of one step over several processes: a table of what has come and nobody has asked
 * for yet, of what is waited for, and of what a peer has announced. Made by exchange.h.
 */
#ifndef TF_TRANSPORT_RENDEZVOUS_REMOTE_H
#define TF_TRANSPORT_RENDEZVOUS_REMOTE_H

#include "transport/value/flow.h"

/* Where a rendezvous sends what is not for its own task. */
struct rendezvous_owner {
    void *context;
    /* The peer of a device, held for the caller; NULL: the device is of this task. */
    int (*route)(void *context, const char *device, struct peer **peer, struct error *err);
    /* rendezvous->free was called. */
    void (*ended)(void *context, struct rendezvous *rendezvous);
};

/* Two holders use it: the step, by rendezvous->free, and whoever made it, by remote_release.
 * Keys that come are kept as they are given: they must stay as long. */
struct rendezvous *remote_new(const struct rendezvous_owner *owner, uint64_t session, uint64_t step,
                              size_t n_keys);
void remote_retain(struct rendezvous *rendezvous);
void remote_release(struct rendezvous *rendezvous);
uint64_t remote_step(const struct rendezvous *rendezvous);

/* A value of a peer (NULL: dead). `charged`: bytes of its credit that the value took, which go back
 * when it is taken; 0 with `granted`. ERR_PROTOCOL. */
struct arrival {
    struct peer *peer;
    const char *key;
    uint64_t iteration, charged;
    bool granted;
    const struct tensor *value;
};
int remote_arrived(struct rendezvous *rendezvous, const struct arrival *arrival, struct error *err);
int remote_announced(struct rendezvous *rendezvous, const struct arrival *arrival,
                     struct error *err);

/* Finds the key of the first that waits for a value from a device of the task. */
bool remote_waits_for(struct rendezvous *rendezvous, const char *task, struct str *out);

#endif
