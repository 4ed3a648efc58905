/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint of a running job, over its links. The shards pause between two rounds while they
 * snapshot their variables. Then they send the values to the caller, who writes them to a store.
 */
#ifndef TF_PS_BACKUP_H
#define TF_PS_BACKUP_H

#include "checkpoint/store/maintain.h"
#include "ps/client.h"

struct backup {
    struct client *client; /* linked to all shards */
    struct store *store;   /* open for writing */
    const char *path;      /* of the store */
    const char *owner, *producer;
    double lock_wait;    /* for the environments of shards */
    const char *fetches; /* the first worker's fetch records, for scalars; NULL: none */
    const struct maintain_watch *watch;
};

/* *step: the checkpoint's step. Errors are those of client_ask, store_open and store_save;
 * ERR_CANCELLED: the watch stopped it. After an error nothing is visible. */
int backup_save(const struct backup *backup, int64_t *step, struct error *err);

#endif
