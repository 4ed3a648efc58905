/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint of a running job, over its links: the shards hold still between two rounds as long
 * as marking takes, then hand their values to who asked, who writes them into a store of its own.
 */
#ifndef TF_PS_BACKUP_H
#define TF_PS_BACKUP_H

#include "checkpoint/store/maintain.h"
#include "ps/client.h"

struct backup {
    struct client *client; /* of all shards */
    struct store *store;   /* open for writing */
    const char *path;      /* of the store */
    const char *owner, *producer;
    double lock_wait;    /* for the environments of shards */
    const char *fetches; /* the first worker's records, for scalars; NULL: there are none */
    const struct maintain_watch *watch;
};

/* *step: of the checkpoint. Errors as of client_ask, store_open and store_save; ERR_CANCELLED: the
 * watch did not want to go on. Nothing is visible then. */
int backup_save(const struct backup *backup, int64_t *step, struct error *err);

#endif
