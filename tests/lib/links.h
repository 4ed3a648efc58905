/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ends of links within a test: a server whose loop runs in a thread of its own, and a client
 * that the test pumps. The server sends every request back as a reply, with its tensors.
 */
#ifndef TF_TESTS_LINKS_H
#define TF_TESTS_LINKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/streams.h"
#include "transport/link/peers_private.h"

struct end {
    struct loop *loop;
    struct peers *peers;
    pthread_t thread;
    struct address at; /* where it listens */
    char folder[64];
    struct link *link; /* the one that was opened last */
    int n_opened, n_failed, n_waiting;
    atomic_int n_records, n_closed;
    int64_t last_id;
    struct error why; /* of the link last closed, or of the failed dial */
    char said[512];
    struct named_tensor kept; /* of the last reply */
    int last_of;              /* which tensor of a reply is kept */
    bool echoes;
};

static inline void end_opened(void *context, struct link *link)
{
    struct end *end = context;
    end->link = link;
    end->n_opened++;
}

static inline void end_echo(struct link *link, const struct record *record, int64_t id)
{
    struct error err = ERROR_INIT;
    msgpack_packer *packer = link_begin(link, RECORD_REPLY, 1);
    pack_key(packer, "id");
    msgpack_pack_int64(packer, id);
    must(link_send(link, record->tensors, record->n_tensors, &err), &err);
}

static inline void end_record(void *context, struct link *link, struct record *record)
{
    struct end *end = context;
    int64_t id = -1;
    record_get_int(&record->header, "id", &id);
    if (end->echoes && record->kind == RECORD_REQUEST)
        end_echo(link, record, id);
    tensor_release(&end->kept.tensor);
    if (record->n_tensors > end->last_of)
        tensor_share(&end->kept.tensor, &record->tensors[end->last_of].tensor);
    end->last_id = id;
    atomic_fetch_add(&end->n_records, 1);
}

static inline void end_closed(void *context, struct link *link, const struct error *why)
{
    struct end *end = context;
    if (end->link == link)
        end->link = NULL;
    end->why = *why;
    end->n_closed++;
}

static inline void end_failed(void *context, const char *task, const struct error *why)
{
    struct end *end = context;
    (void)task;
    end->why = *why;
    end->n_failed++;
}

static inline void end_waiting(void *context, const char *task, const char *text)
{
    struct end *end = context;
    (void)task;
    snprintf(end->said, sizeof end->said, "%s", text);
    end->n_waiting++;
}

static inline int end_try_start(struct end *end, const struct peers_options *options,
                                struct error *err)
{
    struct peers_handler handler = {{end, end_opened, end_record, end_closed, NULL}, end_failed};
    struct peers_options told = *options;
    told.news = (struct peers_news){end_waiting, NULL, end};
    memset(end, 0, sizeof *end);
    end->loop = loop_new(err);
    if (end->loop)
        end->peers = peers_new(end->loop, &told, &handler, err);
    return err->code;
}

static inline void end_start(struct end *end, const struct peers_options *options)
{
    struct error err = ERROR_INIT;
    must(end_try_start(end, options, &err), &err);
}

static inline void *end_run(void *argument)
{
    struct end *end = argument;
    struct error err = ERROR_INIT;
    must(loop_run(end->loop, &err), &err);
    return NULL;
}

/* A folder for Unix sockets. */
static inline void end_folder(char folder[64])
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, 64, "%.40s/tfXXXXXX", temporary ? temporary : "/tmp");
    assert_non_null(mkdtemp(folder));
}

/* Serves at `address`; NULL: a Unix socket in its own folder. */
static inline void end_serve(struct end *end, struct peers_options options, const char *address)
{
    struct error err = ERROR_INIT;
    char folder[64] = "";
    if (!address)
        end_folder(folder);
    options.folder = address ? NULL : folder;
    end_start(end, &options);
    memcpy(end->folder, folder, sizeof folder);
    end->echoes = true;
    must(peers_listen(end->peers, address ? address : "unix:s", &end->at, &err), &err);
    assert_int_equal(pthread_create(&end->thread, NULL, end_run, end), 0);
}

/* Returns the address to dial: a Unix socket by its full path. */
static inline const char *end_address(const struct end *server)
{
    static char text[128];
    if (!*server->folder)
        return server->at.text;
    snprintf(text, sizeof text, "unix:%s/s", server->folder);
    return text;
}

static inline void end_stop(struct end *end)
{
    if (end->thread) {
        loop_stop(end->loop);
        pthread_join(end->thread, NULL);
    }
    tensor_release(&end->kept.tensor);
    peers_free(end->peers);
    loop_free(end->loop);
    if (*end->folder)
        assert_int_equal(rmdir(end->folder), 0); /* the socket is gone */
}

static inline void end_connect(struct end *client, const struct end *server, const char *task)
{
    struct error err = ERROR_INIT;
    must(peers_connect(client->peers, task, end_address(server), 10, &err), &err);
    must(peers_wait(client->peers, &err), &err);
    assert_non_null(client->link);
}

struct end_count {
    struct end *end;
    int n;
};

static inline bool end_has_records(void *context)
{
    struct end_count *count = context;
    return atomic_load(&count->end->n_records) >= count->n || count->end->n_closed;
}

static inline bool end_has_closed(void *context)
{
    struct end_count *count = context;
    return count->end->n_closed + count->end->n_failed >= count->n;
}

/* Waits at most 10 s for a closed link; the end must have its own thread. */
static inline void end_wait_closed(struct end *end)
{
    for (int i = 0; i < 1000 && !atomic_load(&end->n_closed); i++)
        usleep(10000);
}

static inline bool end_pump(struct end *end, bool (*until)(void *), int n, double timeout)
{
    struct end_count count = {end, n};
    return loop_run_until(end->loop, until, &count, timeout);
}

static inline void end_request(struct end *end, int64_t id, const struct named_tensor *tensors,
                               int n_tensors)
{
    struct error err = ERROR_INIT;
    msgpack_packer *packer = link_begin(end->link, RECORD_REQUEST, 1);
    pack_key(packer, "id");
    msgpack_pack_int64(packer, id);
    must(link_send(end->link, tensors, n_tensors, &err), &err);
}

#endif
