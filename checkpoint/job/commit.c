/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/job/commit.h"

#include "checkpoint/store/maintain.h"

int commit_checkpoint(struct store *store, struct commit *c, struct error *err)
{
    struct save_request *request = &c->request;
    error_clear(err);
    /* another job may have started at the same moment and saved first */
    c->is_succeeded = c->writer && store_check_writer(store, c->writer, err) == ERR_DENIED;
    if (err->code ||
        (request->n_shards && store_may_save(store, request->step, &request->run, err)) ||
        (c->collect && c->collect(c->context, store, request, err)) ||
        store_save(store, request, NULL, err))
        return err->code;
    if (c->writer)
        c->writer->goes_on = true;
    store_keep_newest(store, &request->run, c->keep, &c->left);
    return 0;
}
