/* SPDX-License-Identifier: Apache-2.0
 *
 * Fan-out requests: asks several tasks at once, and waits for all of them until a deadline.
 */
#ifndef TF_PS_INQUIRY_H
#define TF_PS_INQUIRY_H

#include <stdatomic.h>

#include "transport/value/conns.h"

struct inquiry;

struct task_request {
    const char *verb;
    int n_fields;
    void (*pack)(void *context, msgpack_packer *packer); /* NULL: no fields */
    const struct named_tensor *tensors;
    int n_tensors;
    const atomic_bool *cancelled; /* when true, ends the wait; NULL: not used */
    const char *about; /* the request's subject, for messages: "'output/W'"; NULL: none */

    /* Called in the loop's thread for each task that replied without error; may be NULL. */
    void (*answered)(void *context, const char *task, const struct record *reply);
    void *context;
};

/* Sends the request to each task in `tasks`; links to them must be open. */
struct inquiry *inquiry_start(struct conns *conns, const char *const *tasks, int n,
                              const struct task_request *request);

/* Waits until all have replied. Returns the first failure; ERR_UNAVAILABLE if a task does not reply
 * within `seconds`: "ps:1 at ..., incarnation 2: no reply in 30 s, waiting for ...";
 * ERR_CANCELLED.
 * Frees the inquiry: `answered` is not called after this has returned. With `pumps` it runs the
 * loop itself; without, it must not be called in the loop's thread. */
int inquiry_finish(struct inquiry *inquiry, bool pumps, double seconds, struct error *err);

#endif
