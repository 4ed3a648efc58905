/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything here runs in the loop's thread.
 */
#include "transport/collective/sum_server.h"

#include <string.h>

#include "base/arena.h"
#include "base/container_of.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "transport/collective/collective_record.h"
#include "transport/collective/collective_round.h"

#define MEMBERS_MAX 65536              /* of a sum */
#define KEPT_BYTES ((size_t)256 << 20) /* memory of sums that is kept for the next ones */

/* The fields of a part. */
struct sum_part {
    struct collective_call call; /* its key and priority */
    uint64_t index;
    const msgpack_object *members; /* texts, which end with a zero */
    int n, place;                  /* number of members; place of the sender */
    bool divides;
    const struct tensor *block;
};

/* A sum that waits for parts. */
struct held_sum {
    struct held_sum *next;
    struct arena arena; /* holds `members` and the arrays */
    struct collective_key key;
    uint64_t index;
    int n, n_here;
    const char **members;
    struct peer **from; /* by place, held; NULL: its part has not arrived */
    struct tensor *parts;
    bool divides;
};

struct sum_server {
    struct sum_server_options options;
    struct conns_watcher watcher;
    struct buffer_pool *memory; /* of sums */
    struct held_sum *sums;
};

/* ---- reading records ---- */

/* Refuses malformed records, and those of tasks that are no members. */
static int read_said(const struct record *record, struct peer *peer, struct sum_part *said,
                     struct error *err)
{
    const msgpack_object *header = &record->header, *members = record_field(header, "members");
    int64_t priority;
    if (!reduce_read_key(header, &said->call.key, &said->index) ||
        !record_get_bool(header, "mean", &said->divides) ||
        !record_get_int(header, "priority", &priority))
        return error_set(err, ERR_PROTOCOL, "a reduce record that says not which it is");
    bool good =
        members && members->type == MSGPACK_OBJECT_ARRAY && members->via.array.size <= MEMBERS_MAX;
    said->members = good ? members->via.array.ptr : NULL;
    said->n = good ? (int)members->via.array.size : 0;
    said->place = -1;
    for (int i = 0; i < said->n && good; i++) {
        const char *task = record_end_text(&said->members[i]);
        good = task != NULL;
        if (good && !strcmp(task, peer_task(peer)))
            said->place = i;
    }
    if (!good || said->place < 0)
        return error_set(err, ERR_PROTOCOL, "sends of '%.200s' what is not among its own",
                         said->call.key.name);
    said->call.priority = priority > INT32_MIN && priority < INT32_MAX ? (int32_t)priority : 0;
    said->block = record->n_tensors == 1 ? &record->tensors[0].tensor : NULL;
    if (!said->block || said->block->shape.rank != 1 || said->block->type == STRING ||
        (int64_t)tensor_bytes(said->block) > CHUNK_BYTES)
        return error_set(err, ERR_PROTOCOL, "sends of '%.200s' what is no block",
                         said->call.key.name);
    return 0;
}

static void send_chunk(struct peer *to, const struct sum_part *said, const struct tensor *t)
{
    const struct reduce chunk = {
        .what = REDUCE_SUM, .call = &said->call, .index = said->index, .tensors = t, .n = 1};
    reduce_send_to(NULL, to, &chunk);
}

/* ---- sums ---- */

/* Finds the sum, or creates it. */
static struct held_sum **get_sum(struct sum_server *server, const struct sum_part *said)
{
    struct held_sum **at = &server->sums, *sum;
    while (*at && ((*at)->index != said->index || (*at)->key.step != said->call.key.step ||
                   (*at)->key.iteration != said->call.key.iteration ||
                   strcmp((*at)->key.name, said->call.key.name) != 0 ||
                   strcmp(said->members[0].via.str.ptr, (*at)->members[0]) != 0))
        at = &(*at)->next;
    if (*at)
        return at;
    *at = sum = mem_alloc(sizeof *sum);
    sum->key = said->call.key;
    sum->key.name = arena_strdup(&sum->arena, said->call.key.name);
    sum->index = said->index;
    sum->divides = said->divides;
    sum->n = said->n;
    sum->members = arena_array(&sum->arena, (size_t)sum->n, sizeof *sum->members);
    sum->from = arena_array(&sum->arena, (size_t)sum->n, sizeof(struct peer *));
    sum->parts = arena_array(&sum->arena, (size_t)sum->n, sizeof *sum->parts);
    for (int i = 0; i < sum->n; i++)
        sum->members[i] = arena_strdup(&sum->arena, said->members[i].via.str.ptr);
    return at;
}

static void drop_sum(struct held_sum **at)
{
    struct held_sum *sum = *at;
    *at = sum->next;
    for (int i = 0; i < sum->n; i++) {
        peer_release(sum->from[i]);
        tensor_release(&sum->parts[i]);
    }
    arena_release(&sum->arena);
    mem_free(sum);
}

static int receive_part(struct sum_server *server, struct peer *peer, const struct sum_part *said,
                        struct error *err)
{
    enum collective_kind kind = said->divides ? COLLECTIVE_MEAN : COLLECTIVE_SUM;
    int64_t bytes = (int64_t)tensor_bytes(said->block), waiting = 0; /* waiting parts of the peer */
    struct tensor result;
    if (!collective_can_add(kind, said->block->type))
        return error_set(err, ERR_PROTOCOL, "wants to add %s of '%.200s'",
                         dtype_name(said->block->type), said->call.key.name);
    for (const struct held_sum *held = server->sums; held; held = held->next)
        for (int i = 0; i < held->n; i++)
            if (held->from[i] == peer)
                waiting += (int64_t)tensor_bytes(&held->parts[i]);
    if (waiting > SUM_SERVER_HELD_MAX - bytes)
        return error_set(err, ERR_PROTOCOL, "sends more parts than others do, '%.200s' last",
                         said->call.key.name);
    struct held_sum **at = get_sum(server, said), *sum = *at;
    bool fits = sum->n == said->n && sum->divides == said->divides;
    for (int i = 0; i < sum->n && fits; i++)
        fits = !strcmp(said->members[i].via.str.ptr, sum->members[i]) &&
               (!sum->from[i] || (sum->parts[i].type == said->block->type &&
                                  shape_equal(&sum->parts[i].shape, &said->block->shape)));
    if (!fits)
        return error_set(err, ERR_PROTOCOL, "sends another block of '%.200s' than others",
                         said->call.key.name);
    if (sum->from[said->place])
        return error_set(err, ERR_PROTOCOL, "sends a block of '%.200s' twice", said->call.key.name);
    tensor_share(&sum->parts[said->place], said->block);
    sum->from[said->place] = peer_retain(peer);
    if (++sum->n_here < sum->n)
        return 0;
    if (FAILPOINT("sum_server.add")) {
        error_set(err, ERR_UNAVAILABLE, "failpoint sum_server.add");
    } else if (!buffer_pool_alloc(server->memory, &result, said->block, (size_t)bytes, err)) {
        collective_sum_tensors(sum->parts, sum->n, sum->divides ? sum->n : 0, &result);
        for (int i = 0; i < sum->n; i++)
            send_chunk(sum->from[i], said, &result);
        tensor_release(&result);
    }
    drop_sum(at);
    return err->code;
}

/* ---- records ---- */

static int receive(struct conns_watcher *watcher, struct peer *peer, const struct record *record,
                   struct error *err)
{
    struct sum_server *server = CONTAINER_OF(watcher, struct sum_server, watcher);
    struct sum_part said = {.n = 0};
    int64_t what = -1;
    error_clear(err);
    if (!record_get_int(&record->header, "what", &what) ||
        (what != REDUCE_PART && what != REDUCE_RELAY && what != REDUCE_JOIN))
        error_set(err, ERR_PROTOCOL, "a reduce record that has no place here");
    else if (what == REDUCE_JOIN)
        reduce_send_to(NULL, peer, &(struct reduce){.what = REDUCE_REPLY});
    else if (!read_said(record, peer, &said, err) && what == REDUCE_PART)
        receive_part(server, peer, &said, err);
    for (int i = 0; what == REDUCE_RELAY && i < said.n && !err->code; i++) {
        const char *task = said.members[i].via.str.ptr;
        struct peer *to = i == said.place ? NULL : conns_peer(server->options.conns, task);
        if (to)
            send_chunk(to, &said, said.block);
        peer_release(to);
    }
    if (!err->code)
        return 0;
    struct error line = *err;
    error_prefix(&line, "%s: ", peer_text(peer));
    if (server->options.tell)
        server->options.tell(server->options.context, line.text);
    return err->code;
}

/* ---- links ---- */

/* Drops the sums that have a part of the peer, or, if no other peer has replaced it, want one. */
static void peer_lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    struct sum_server *server = CONTAINER_OF(watcher, struct sum_server, watcher);
    const char *task = peer_task(peer);
    struct peer *now = conns_peer(server->options.conns, task);
    struct held_sum **at = &server->sums;
    bool is_replaced = now && now != peer;
    (void)why;
    while (*at) {
        const struct held_sum *sum = *at;
        int i = 0;
        while (i < sum->n && sum->from[i] != peer &&
               (is_replaced || sum->from[i] || strcmp(sum->members[i], task) != 0))
            i++;
        if (i < sum->n)
            drop_sum(at);
        else
            at = &(*at)->next;
    }
    peer_release(now);
}

/* ---- the server ---- */

struct sum_server *sum_server_new(const struct sum_server_options *options)
{
    struct sum_server *server = mem_alloc(sizeof *server);
    server->options = *options;
    server->memory = buffer_pool_new(KEPT_BYTES);
    server->watcher = (struct conns_watcher){.lost = peer_lost, .reduce = receive};
    conns_watch(options->conns, &server->watcher);
    return server;
}

void sum_server_free(struct sum_server *server)
{
    if (!server)
        return;
    conns_unwatch(server->options.conns, &server->watcher);
    while (server->sums)
        drop_sum(&server->sums);
    buffer_pool_free(server->memory);
    mem_free(server);
}
