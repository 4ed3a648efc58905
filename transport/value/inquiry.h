/* SPDX-License-Identifier: Apache-2.0
 *
 * Fan-out requests: asks several tasks at once, and waits for all of them, until a deadline or as
 * long as the asker wants to.
 */
#ifndef TF_TRANSPORT_INQUIRY_H
#define TF_TRANSPORT_INQUIRY_H

#include "transport/value/conns.h"

struct inquiry;

struct task_request {
    const char *verb;
    uint64_t session; /* the session that it is for, a field; 0: none */
    int n_fields;     /* others, which `pack` packs; NULL: there are none */
    void (*pack)(void *fields, msgpack_packer *packer);
    void *fields;
    const struct named_tensor *tensors;
    int n_tensors;
    const char *about; /* the request's subject, for messages: "'output/W'"; NULL: none */

    /* Called in the loop's thread for each task that replied without error; may be NULL. */
    void (*answered)(void *context, const char *task, const struct record *reply);
    void *context;
};

struct inquiry *inquiry_new(struct conns *conns);
/* Sends a request to a peer, before inquiry_finish. */
void inquiry_ask(struct inquiry *inquiry, struct peer *peer, const struct task_request *request);
/* Sends the request to each task in `tasks`; links to them must be open. */
void inquiry_ask_all(struct inquiry *inquiry, const char *const *tasks, size_t n,
                     const struct task_request *request);

struct inquiry_wait {
    bool pumps;     /* runs the loop; else another thread does */
    double seconds; /* 0: no limit */
    /* Polled: returns whether to give up, with ERR_CANCELLED. May be NULL. */
    bool (*given_up)(void *context);
    void *context;
};

/* Waits until all have replied. Returns the first failure; ERR_UNAVAILABLE if a task does not reply
 * in time: "ps:1 at ..., incarnation 2: no reply in 30 s, waiting for ..."; ERR_CANCELLED. Frees
 * the inquiry: `answered` is not called after this has returned. */
int inquiry_finish(struct inquiry *inquiry, const struct inquiry_wait *wait, struct error *err);

#endif
