/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking several tasks at once, and waiting for all of them with a deadline.
 */
#ifndef TF_PS_INQUIRY_H
#define TF_PS_INQUIRY_H

#include <stdatomic.h>

#include "transport/value/hub.h"

struct inquiry;

struct task_request {
    const char *verb;
    int n_fields;
    void (*pack)(void *context, msgpack_packer *packer); /* NULL: no fields */
    const struct named_tensor *tensors;
    int n_tensors;
    const atomic_bool *cancelled; /* ends the wait when it becomes true; NULL: nothing does */
    const char *about; /* what it is about, for messages: "'output/W'"; NULL: nothing to say */

    /* Called in the loop's thread for each task that answered well; may be NULL. */
    void (*answered)(void *context, const char *task, const struct record *reply);
    void *context;
};

/* Asks each task that `tasks` names; links to them are open. */
struct inquiry *inquiry_start(struct hub *hub, const char *const *tasks, int n,
                              const struct task_request *request);

/* Waits until all have answered. The first that failed is the error; one that says nothing within
 * `seconds` ERR_UNAVAILABLE: "ps:1 at ..., incarnation 2: no answer in 30 s, waiting for ..."; if
 * it was cancelled ERR_CANCELLED.
 * Frees the inquiry: `answered` is not called after this has returned. Runs the loop if nobody does
 * (`pumps`), else must not be called by the loop's thread. */
int inquiry_finish(struct inquiry *inquiry, bool pumps, double seconds, struct error *err);

#endif
