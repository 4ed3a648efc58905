/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of requests to shards, and of their replies: one struct for both ends. A field that is
 * not given is left out.
 */
#ifndef TF_PS_FIELDS_H
#define TF_PS_FIELDS_H

#include "ps/origin.h"

struct shard_fields {
    const char *container, *name, *folder; /* NULL: not given */
    double seconds;                        /* for which the shard may wait; 0: not given */
    int64_t index;                         /* of the part that is asked for */
    int64_t variables;                     /* number of those that were reset */
    bool last;                             /* no automatic checkpoints after this one */
    bool is_versioned;                     /* a snapshot's step is a version of a clock, */
    bool exact;                            /* and all is of that version */
    struct shard_origin origin; /* step -1, decision 0, an unknown run: each is not given */
};

int shard_fields_count(const struct shard_fields *fields);
void shard_fields_pack(void *fields, msgpack_packer *packer);
/* Sets the fields that are given; with the arena NULL, no texts. */
void shard_fields_take(struct shard_fields *fields, const msgpack_object *header,
                       struct arena *arena);

/* Returns a request with the fields; it has to be sent before they change. */
struct task_request shard_fields_request(const char *verb, struct shard_fields *fields,
                                         const char *about);
/* Asks the task of the client; then the fields get those of its reply. */
int shard_fields_ask(struct client *client, int task, const char *verb, struct shard_fields *fields,
                     const char *about, struct error *err);

#endif
