/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that a driver registers, to run them again and again.
 */
#include <limits.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "transport/session/server_private.h"

typedef VEC(struct edge) edge_vec;

static int read_names(const struct graph *graph, const struct query *query, const char *field,
                      edge_vec *edges, struct error *err)
{
    const msgpack_object *names = record_field(&query->record->header, field);
    struct arena arena = ARENA_INIT;
    int code = 0;
    if (!names || names->type != MSGPACK_OBJECT_ARRAY)
        return error_set(err, ERR_PROTOCOL, "register: there are no %s", field);
    for (uint32_t i = 0; !code && i < names->via.array.size; i++) {
        const msgpack_object *name = &names->via.array.ptr[i];
        struct edge edge;
        if (name->type != MSGPACK_OBJECT_STR)
            code = error_set(err, ERR_PROTOCOL, "register: %s are texts", field);
        else
            code = graph_parse_edge(
                graph, arena_strndup(&arena, name->via.str.ptr, name->via.str.size), &edge, err);
        if (!code)
            vec_push(edges, edge);
    }
    arena_release(&arena);
    return code;
}

static bool read_number(const msgpack_object *object, int *number)
{
    *number = object->type == MSGPACK_OBJECT_POSITIVE_INTEGER && object->via.u64 < INT_MAX
                  ? (int)object->via.u64
                  : -1;
    return *number >= 0;
}

static int read_place(const struct graph *graph, const msgpack_object *fields, plan_order *order,
                      struct error *err)
{
    struct plan_place place = {.node = -1};
    struct str name = STR_INIT;
    bool is_right = fields[0].type == MSGPACK_OBJECT_STR && read_number(&fields[1], &place.input) &&
                    read_number(&fields[2], &place.depth) &&
                    read_number(&fields[3], &place.place) &&
                    read_number(&fields[4], &place.is_copied);
    if (is_right && fields[0].via.str.size) {
        str_append_bytes(&name, fields[0].via.str.ptr, fields[0].via.str.size);
        const struct node *node = graph_find(graph, str_text(&name));
        place.node = node ? node->id : -1;
        is_right = node != NULL;
    }
    str_release(&name);
    if (!is_right)
        return error_set(err, ERR_PROTOCOL, "register: the order of reads and writes is damaged");
    vec_push(order, place);
    return 0;
}

/* Reads the order of reads and writes that the driver gives, if it gives one. */
static int read_order(const struct graph *graph, const struct query *query, plan_order *order,
                      struct error *err)
{
    const msgpack_object *all = record_field(&query->record->header, "order");
    uint32_t n = all && all->type == MSGPACK_OBJECT_ARRAY ? all->via.array.size : 0;
    for (uint32_t i = 0; i + 4 < n; i += 5)
        if (read_place(graph, all->via.array.ptr + i, order, err))
            return err->code;
    plan_order_sort(order);
    return 0;
}

/* Feeds and fetches are tensors, targets are nodes. */
static int check_slots(const struct graph *graph, const edge_vec *edges, struct error *err)
{
    for (size_t i = 0; i < edges->n; i++)
        if (edges->items[i].slot == CONTROL_SLOT)
            return error_set(err, ERR_PROTOCOL, "register: '%s' is no tensor",
                             graph_node(graph, edges->items[i].node)->name);
    return 0;
}

void server_verb_register(void *context, const struct query *query)
{
    struct served_session *served = server_find(context, query, SERVED_ASKED);
    struct error err = ERROR_INIT;
    edge_vec targets = VEC_INIT;
    if (!served)
        return;
    struct handle *handle = mem_alloc(sizeof *handle);
    edge_vec *feeds = (edge_vec *)&handle->feeds, *fetches = (edge_vec *)&handle->fetches;
    int code =
        FAILPOINT("server.register") ? error_set(&err, ERR_RETRY, "failpoint server.register") : 0;
    if (!code && served->handles.n >= SERVER_HANDLES_MAX)
        code = error_set(&err, ERR_PROTOCOL, "register: there are %zu handles already",
                         served->handles.n);
    if (!code)
        code = read_names(served->graph, query, "feeds", feeds, &err);
    if (!code)
        code = read_names(served->graph, query, "fetches", fetches, &err);
    if (!code)
        code = read_names(served->graph, query, "targets", &targets, &err);
    if (!code)
        code = read_order(served->graph, query, &handle->order, &err);
    if (!code)
        code = check_slots(served->graph, feeds, &err);
    if (!code)
        code = check_slots(served->graph, fetches, &err);
    for (size_t i = 0; i < targets.n; i++)
        vec_push(&handle->targets, targets.items[i].node);
    vec_release(&targets);
    if (code) {
        handle_free(handle);
        reply_error(query->peer, query->id, &err);
        return;
    }
    vec_push(&served->handles, handle);
    msgpack_packer *packer = reply_begin(query->peer, query->id, 1);
    if (!packer)
        return;
    pack_key_uint(packer, "handle", served->handles.n - 1);
    reply_end(query->peer, NULL, 0);
}
