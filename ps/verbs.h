/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of users to the shards of a job, one function each. Each asks all tasks of the
 * client, or those concerned. Errors are those of client_ask.
 */
#ifndef TF_PS_VERBS_H
#define TF_PS_VERBS_H

#include "ps/containers.h"
#include "ps/fields.h"

/* Sends a verb with only the fields of `place` (NULL members are left out). `answered` gets each
 * task's reply. */
int verbs_ask(struct client *client, const char *verb, const struct variable_place *place,
              void (*answered)(void *context, const char *task, const struct record *reply),
              void *context, struct error *err);

/* ERR_NOINPUT: no shard has the variable; ERR_USAGE: several containers have it. The caller
 * releases the value. */
int verbs_get(struct client *client, const struct variable_place *place, struct tensor *value,
              struct error *err);
int verbs_put(struct client *client, const struct variable_place *place, const struct tensor *value,
              struct error *err);

/* Resets the container on all shards that have it; *n: variables. ERR_NOINPUT: none has it. */
int verbs_reset(struct client *client, const char *container, int64_t *n, struct error *err);

/* Finds the leader of a save, in client->tasks: the shard with the clock, else the first. */
int verbs_leader(struct client *client, int *task, struct error *err);

/* Saves a checkpoint of all shards in a folder, which they see under the same path; verbs_leader
 * leads. *step: the checkpoint's step. */
int verbs_save(struct client *client, const char *folder, bool last, int64_t *step,
               struct error *err);

/* Restores all shards from the newest intact checkpoint of "DIR", or from "DIR@STEP". */
int verbs_restore(struct client *client, const char *where, int64_t *step, struct error *err);

/* For a shard, `task`, that resumes: asks the shard that `client` is linked to, which decides, for
 * its origin. ERR_RETRY: that shard has trained on meanwhile. */
int verbs_origin(struct client *client, const char *task, struct shard_origin *origin,
                 struct error *err);

#endif
