/* SPDX-License-Identifier: Apache-2.0
 *
 * The generation of the job that may save to a store, kept in the coordinating environment: eight
 * bytes of number, sixteen random bytes of claim, and the owner's name, for people. A store that
 * was never taken over has no such value, and is of the first generation.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "checkpoint/store/save.h"
#include "checkpoint/store/store_private.h"

#define FIRST 1
#define OWNER_BYTES 128
#define SLACK_BYTES (64 << 10)
#define CLAIMS_BYTES (1 << 20) /* maximum size of a file of claims */

struct generation {
    int64_t number;
    struct ckpt_run claim;   /* identity of the claim; all zero: there is none */
    char owner[OWNER_BYTES]; /* "process 4711, tf-exec" */
};
enum { AT_CLAIM = 8, AT_OWNER = AT_CLAIM + RUN_BYTES };

static MDB_val key_of(void)
{
    return (MDB_val){1, (void *)"g"};
}

static int read_generation(struct store *store, struct generation *g, struct error *err)
{
    MDB_txn *txn;
    error_clear(err);
    if (store_begin(store, false, &txn, err))
        return err->code;
    MDB_val key = key_of(), value;
    int status = mdb_get(txn, store->dbi, &key, &value);
    *g = (struct generation){.number = FIRST};
    if (status != MDB_NOTFOUND) {
        if (status) {
            store_failed(store, status, "reading", err);
        } else if (value.mv_size < AT_OWNER || value.mv_size >= AT_OWNER + OWNER_BYTES) {
            error_set(err, ERR_DATA, "%s: damaged: its generation", store->name);
        } else {
            memcpy(&g->number, value.mv_data, sizeof g->number);
            memcpy(g->claim.id, (char *)value.mv_data + AT_CLAIM, RUN_BYTES);
            memcpy(g->owner, (char *)value.mv_data + AT_OWNER, value.mv_size - AT_OWNER);
            if (!str_is_printable(g->owner, strlen(g->owner)))
                strcpy(g->owner, "another process");
        }
    }
    store_abort(store, txn);
    return err->code;
}

int store_generation(struct store *store, int64_t *generation, struct error *err)
{
    struct generation g;
    if (!read_generation(store, &g, err))
        *generation = g.number;
    return err->code;
}

static int refuse(const struct store *store, const struct generation *g, struct error *err)
{
    return error_set(err, ERR_DENIED, "%s: %s has resumed from it since; this job saves no more",
                     store->name, g->owner);
}

int store_check_writer(struct store *store, struct store_writer *writer, struct error *err)
{
    struct generation g;
    if (read_generation(store, &g, err))
        return err->code;
    if (writer->generation && g.number != writer->generation)
        return refuse(store, &g, err);
    writer->generation = g.number;
    return writer->goes_on ? 0 : store_check_alone(store, &writer->run, err);
}

/* ---- taking it over ---- */

/* Refuses a restarted job if the current claim is another job's, that is, not among its claims. */
static int check_claims(struct store *store, const struct generation *g, const char *path,
                        struct error *err)
{
    struct str all = STR_INIT;
    char claim[RUN_HEX_BYTES];
    run_hex(&g->claim, claim);
    int code = file_read(path, CLAIMS_BYTES, &all, err);
    if (code == ERR_NOINPUT)
        error_clear(err);
    else if (!code && run_is_known(&g->claim) && !strstr(str_text(&all), claim))
        refuse(store, g, err);
    str_release(&all);
    return err->code;
}

/* Called before the claim is made: a claim without a note would look like another job's. */
static int note_claim(const struct ckpt_run *claim, const char *path, struct error *err)
{
    char line[RUN_HEX_BYTES + 1];
    run_hex(claim, line);
    line[RUN_HEX_BYTES - 1] = '\n';
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, RUN_HEX_BYTES) != RUN_HEX_BYTES)
        error_set_errno(err, store_errno_code(errno), "%s", path);
    close_if_open(fd);
    return err->code;
}

static int claim_store(struct store *store, const struct store_options *options, const char *claims,
                       int64_t *generation, struct error *err)
{
    struct generation g;
    MDB_txn *txn;
    if (read_generation(store, &g, err) || (claims && check_claims(store, &g, claims, err)) ||
        run_make(&g.claim, NULL, err) || (claims && note_claim(&g.claim, claims, err)) ||
        store_reserve(store, SLACK_BYTES, false, err) || store_begin(store, true, &txn, err))
        return err->code;
    char bytes[AT_OWNER + OWNER_BYTES];
    g.number++;
    memcpy(bytes, &g.number, sizeof g.number);
    memcpy(bytes + AT_CLAIM, g.claim.id, RUN_BYTES);
    snprintf(bytes + AT_OWNER, OWNER_BYTES, "process %ld, %s", (long)getpid(), options->owner);
    MDB_val key = key_of(), value = {AT_OWNER + strlen(bytes + AT_OWNER), bytes};
    store_failed(store, mdb_put(txn, store->dbi, &key, &value, 0), "writing", err);
    *generation = g.number;
    return store_commit(store, txn, err);
}

int store_take_over(const char *path, const struct store_options *options, const char *claims,
                    int64_t *generation, struct error *err)
{
    struct store *store;
    if (store_open(path, options, &store, err))
        return err->code;
    claim_store(store, options, claims, generation, err);
    store_close(store);
    return err->code;
}
