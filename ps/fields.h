/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of requests to shards, and of their replies: one struct for both ends. A field that is
 * not given is left out.
 */
#ifndef TF_PS_FIELDS_H
#define TF_PS_FIELDS_H

#include "checkpoint/store/checkpoint.h"
#include "ps/client.h"

/* The checkpoint that a shard's values come from. All shards of a job must resume from the same
 * one. So the first shard decides, and names it by its digest; the others find exactly that one, or
 * end. Each decision has a unique number: shards with different numbers were restored apart, and
 * can neither train nor be saved together. */
struct shard_origin {
    uint64_t decision;      /* 0: none, as in a job that started afresh */
    int64_t step, sequence; /* step -1: there was no checkpoint */
    struct ckpt_run run;
    struct digest manifest;
    int64_t generation; /* of the store, as which the job saves */
};

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

/* The request gets the fields; it has to be sent before they change. */
void shard_fields_add(struct task_request *request, struct shard_fields *fields);
/* Asks the task of the client; then the fields get those of its reply. */
int shard_fields_ask(struct client *client, int task, const char *verb, struct shard_fields *fields,
                     const char *about, struct error *err);

#endif
