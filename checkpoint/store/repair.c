/* SPDX-License-Identifier: Apache-2.0
 *
 * Repairs meta pages from the kept copies of the last two commits' meta pages (committed.h). A
 * commit's pages are overwritten at the earliest by the second commit after it. A store that was
 * found to have fallen back gets no commits, so the lost commit is usually intact.
 */
#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/store/committed.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/store_private.h"

/* ---- meta pages ---- */

static int write_meta(struct store *store, const uint8_t *meta, struct error *err)
{
    uint64_t offset = page_u64(meta + PAGE_NUMBER) * store->page_bytes;
    if (!pages_write(store->fd, meta, PAGES_META_BYTES, offset, err) && fdatasync(store->fd))
        error_set_errno(err, ERR_IO, "writing");
    return err->code ? error_prefix(err, "%s: ", store->name) : 0;
}

/* Makes the previous commit's meta page: its own or, if that is unknown, the same trees again. */
static int make_older(const struct store *store, const struct commit_note *last,
                      uint8_t meta[PAGES_META_BYTES], struct error *err)
{
    struct commit_note before;
    bool is_there;
    uint64_t page = (last->txn - 1) % 2;
    if (committed_read_slot(store->committed_fd, (int)page, &before, &is_there, err))
        return error_prefix(err, "%s: ", store->name);
    if (is_there && before.txn + 1 == last->txn) {
        memcpy(meta, before.meta, PAGES_META_BYTES);
        return 0;
    }
    memcpy(meta, last->meta, PAGES_META_BYTES);
    pages_renumber_meta(meta, page, last->txn - 1);
    return 0;
}

int store_mend(struct store *store, struct error *err)
{
    struct commit_note last;
    struct pages_meta meta;
    struct pages_count count;
    uint8_t older[PAGES_META_BYTES];
    bool is_known;
    if (committed_read(store->committed_fd, &last, &is_known, err))
        return error_prefix(err, "%s: ", store->name);
    if (!is_known)
        return error_set(err, ERR_DATA, "%s: nothing is known of its last commit", store->name);
    if (pages_parse_meta(last.meta, (int)(last.txn % 2), &meta, err) ||
        pages_check(store->fd, &meta, &count, err))
        return error_prefix(err, "%s: the last commit is lost: ", store->name);
    if (make_older(store, &last, older, err) || write_meta(store, last.meta, err))
        return err->code;
    return write_meta(store, older, err);
}

/* ---- a store ---- */

struct repair {
    void (*say)(void *context, const char *line);
    void *context;
};

static void say_newest(const struct repair *r, struct store *store, const char *what)
{
    struct store_head head = {.step = -1};
    struct error ignored = ERROR_INIT;
    struct str line = STR_INIT;
    MDB_txn *txn;
    if (!store_begin(store, false, &txn, &ignored)) {
        store_read_head(store, txn, &head, &ignored);
        store_abort(store, txn);
    }
    str_printf(&line, "%s: %s; ", store->name, what);
    if (head.step >= 0)
        str_printf(&line, "newest is step %" PRId64, head.step);
    else
        str_append(&line, "it is empty");
    r->say(r->context, line.data);
    str_release(&line);
}

static int repair(const struct repair *r, const char *path, const struct store_options *options,
                  struct error *err)
{
    struct store *store;
    struct error failed = ERROR_INIT;
    struct store_options opening = *options;
    opening.write = true;
    opening.repairs = STORE_ROLLED_BACK;
    if (!store_open(path, &opening, &store, &failed)) {
        bool sound = !store->rolled_back.code;
        store_close(store);
        if (sound)
            return 0;
    } else if (failed.code != ERR_DATA) {
        *err = failed;
        return err->code;
    }
    opening.repairs = STORE_MENDS;
    if (!store_open(path, &opening, &store, err)) {
        say_newest(r, store, "its last commit is back");
        store_close(store);
        return 0;
    }
    if (err->code != ERR_DATA)
        return err->code;
    if (failed.code) {
        *err = failed;
        return error_set(err, ERR_DATA, "%.400s; tf-ckpt salvage saves what is intact",
                         failed.text);
    }
    error_clear(err);
    opening.repairs = STORE_ROLLED_BACK;
    if (store_open(path, &opening, &store, err))
        return err->code;
    if (committed_clear(store->committed_fd, err))
        error_prefix(err, "%s: ", store->name);
    if (!err->code && !store_commit_nothing(store, err)) { /* the found commit counts from now on */
        error_clear(&store->rolled_back);
        say_newest(r, store, "its last commit is lost");
    }
    store_close(store);
    return err->code;
}

/* Repairs the shards first, as the store lists what they hold. */
int store_repair(const char *path, const struct store_options *options,
                 void (*say)(void *context, const char *line), void *context, struct error *err)
{
    const struct repair r = {say, context};
    struct str folder = STR_INIT;
    struct dirent *entry;
    error_clear(err);
    str_printf(&folder, "%s/shards", path);
    DIR *shards = opendir(folder.data);
    while (shards && !err->code && (entry = readdir(shards))) {
        if (*entry->d_name == '.' || str_ends(entry->d_name, ".tmp"))
            continue;
        str_clear(&folder);
        str_printf(&folder, "%s/shards/%s", path, entry->d_name);
        repair(&r, folder.data, options, err);
    }
    if (shards)
        closedir(shards);
    str_release(&folder);
    return err->code ? err->code : repair(&r, path, options, err);
}
