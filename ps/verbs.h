/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user asks the shards of a job, a function each. All tasks of the client are asked, or
 * those that it concerns. Errors as of client_ask.
 */
#ifndef TF_PS_VERBS_H
#define TF_PS_VERBS_H

#include "ps/origin.h"

/* Selects variables: container NULL is any. */
struct variable_place {
    const char *container, *name;
};

/* A verb without fields but those of `place` (NULL members are left out). `answered` gets the reply
 * of each task. */
int verbs_ask(struct client *client, const char *verb, const struct variable_place *place,
              void (*answered)(void *context, const char *task, const struct record *reply),
              void *context, struct error *err);

/* ERR_NOINPUT when no shard has the variable, ERR_USAGE when several containers do. The caller
 * releases the value. */
int verbs_get(struct client *client, const struct variable_place *place, struct tensor *value,
              struct error *err);
int verbs_put(struct client *client, const struct variable_place *place, const struct tensor *value,
              struct error *err);

/* On all shards that have the container; *n: how many variables. ERR_NOINPUT when none has it. */
int verbs_reset(struct client *client, const char *container, int64_t *n, struct error *err);

/* Returns which of client->tasks leads a save: the one that has the clock, else the first. */
int verbs_leader(struct client *client, int *task, struct error *err);

/* A checkpoint of all shards in a folder, which they see under the same path, led by the one that
 * has the clock, else the first. *step: of the checkpoint. */
int verbs_save(struct client *client, const char *folder, bool last, int64_t *step,
               struct error *err);

/* All back to the newest intact one of "DIR", or to "DIR@STEP". */
int verbs_restore(struct client *client, const char *where, int64_t *step, struct error *err);

int verbs_stop(struct client *client, struct error *err);

#endif
