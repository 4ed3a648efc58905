/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs: a request, divided among the tasks once and kept.
 */
#include <string.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "exec/run/divide.h"
#include "transport/session/driver_private.h"

void program_free(struct program *program, size_t n_tasks)
{
    for (size_t i = 0; i < n_tasks; i++)
        share_release(&program->shares[i]);
    str_release(&program->key);
    vec_release(&program->feeds);
    vec_release(&program->fetches);
    vec_release(&program->targets);
    vec_release(&program->order);
    vec_release(&program->own_order);
    mem_free(program->shares);
    mem_free(program->handles);
    mem_free(program);
}

/* ---- the order of reads and writes, as far as a task has it ---- */

static plan_order order_of(const struct driver_session *session, const struct program *program,
                           int task)
{
    plan_order all = VEC_INIT;
    size_t n = 0;
    share_take_order(&program->shares[task], &program->order, &all);
    for (size_t i = 0; i < all.n; i++)
        if (all.items[i].node < 0 || session->table.of_node[all.items[i].node] == task)
            all.items[n++] = all.items[i];
    all.n = n;
    return all;
}

/* ---- what runs here ---- */

/* A node of the whole graph in the graph of what runs here. */
static int own_node(const struct driver_session *session, int node)
{
    return graph_find(session->own_graph, graph_node(session->options.graph, node)->name)->id;
}

/* ---- what runs elsewhere ---- */

static void pack_edges(msgpack_packer *packer, const struct graph *graph, const struct edge *edges,
                       const int *which, size_t n)
{
    msgpack_pack_array(packer, n);
    for (size_t i = 0; i < n; i++) {
        struct str text = STR_INIT;
        graph_print_edge(&text, graph, edges[which[i]]);
        pack_text(packer, str_text(&text));
        str_release(&text);
    }
}

static void take_handle(void *context, const struct record *record)
{
    if (!record_get_uint(&record->header, "handle", context))
        *(uint64_t *)context = UINT64_MAX; /* the task will refuse it */
}

static int register_all(struct driver_session *session, const struct session_call *call,
                        struct program *program, struct error *err)
{
    struct task_calls all = {.session = session};
    struct task_call *asked = mem_array(session->tasks.n + 1, sizeof *asked);
    for (size_t i = 0; i < session->tasks.n; i++)
        if (!share_is_idle(&program->shares[session->tasks.items[i].task])) {
            const struct remote_task *task = &session->tasks.items[i];
            const struct share *share = &program->shares[task->task];
            const struct graph *graph = session->options.graph;
            asked[i] = (struct task_call){.reply = take_handle, .context = &program->handles[i]};
            msgpack_packer *packer = asked_begin(&asked[i], &all, task, "register", 4);
            if (packer) {
                pack_key(packer, "feeds");
                pack_edges(packer, graph, call->feeds, share->feeds.items, share->feeds.n);
                pack_key(packer, "fetches");
                pack_edges(packer, graph, call->fetches, share->fetches.items, share->fetches.n);
                pack_key_array(packer, "targets", share->targets.n);
                for (size_t k = 0; k < share->targets.n; k++) {
                    struct str text = STR_INIT;
                    graph_print_edge(&text, graph,
                                     (struct edge){share->targets.items[k], CONTROL_SLOT});
                    pack_text(packer, str_text(&text));
                    str_release(&text);
                }
                pack_key(packer, "order");
                /* Five fields each, one after the other. */
                plan_order order = order_of(session, program, task->task);
                msgpack_pack_array(packer, 5 * order.n);
                for (size_t k = 0; k < order.n; k++) {
                    const struct plan_place *place = &order.items[k];
                    pack_text(packer, place->node < 0
                                          ? ""
                                          : graph_node(session->options.graph, place->node)->name);
                    msgpack_pack_int(packer, place->input);
                    msgpack_pack_int(packer, place->depth);
                    msgpack_pack_int(packer, place->place);
                    msgpack_pack_int(packer, place->is_copied);
                }
                vec_release(&order);
                asked_send(&asked[i], NULL, 0);
            }
        }
    bool fails = FAILPOINT("driver.register");
    int code = asking_wait(&all, err);
    if (fails && !code)
        code = error_set(err, ERR_UNAVAILABLE, "failpoint driver.register");
    mem_free(asked);
    return code;
}

/* ---- all of it ---- */

static struct program *make(struct driver_session *session, const struct session_call *call,
                            struct error *err)
{
    struct program *program = mem_alloc(sizeof *program);
    size_t n = session->table.names.n;
    struct plan_feed *feeds = mem_array((size_t)call->n_feeds + 1, sizeof *feeds);
    for (int i = 0; i < call->n_feeds; i++)
        feeds[i].edge = call->feeds[i];
    struct plan_request request = session_request(call, feeds);
    program->shares = mem_array(n + 1, sizeof *program->shares);
    program->handles = mem_array(session->tasks.n + 1, sizeof *program->handles);
    request_divide(session->options.graph, &request, session->table.of_node, program->shares);
    struct uncut *uncut = uncut_new(session->options.graph, &request);
    int code = uncut_order(uncut, &program->order, err);
    uncut_free(uncut);
    mem_free(feeds);
    if (session->own >= 0) {
        const struct share *share = &program->shares[session->own];
        for (size_t i = 0; i < share->feeds.n; i++) {
            struct edge edge = call->feeds[share->feeds.items[i]];
            vec_push(&program->feeds, ((struct edge){own_node(session, edge.node), edge.slot}));
        }
        for (size_t i = 0; i < share->fetches.n; i++) {
            struct edge edge = call->fetches[share->fetches.items[i]];
            vec_push(&program->fetches, ((struct edge){own_node(session, edge.node), edge.slot}));
        }
        for (size_t i = 0; i < share->targets.n; i++)
            vec_push(&program->targets, own_node(session, share->targets.items[i]));
        program->own_order = order_of(session, program, session->own);
        for (size_t i = 0; i < program->own_order.n; i++)
            if (program->own_order.items[i].node >= 0)
                program->own_order.items[i].node =
                    own_node(session, program->own_order.items[i].node);
        plan_order_sort(&program->own_order);
    }
    if (!code && !register_all(session, call, program, err))
        return program;
    program_free(program, n);
    return NULL;
}

struct program *driver_program(struct driver_session *session, const struct session_call *call,
                               struct error *err)
{
    struct str *key = &session->key;
    int counts[] = {call->n_feeds, call->n_fetches, call->n_targets};
    str_clear(key);
    str_append_bytes(key, counts, sizeof counts);
    str_append_bytes(key, call->feeds, (size_t)call->n_feeds * sizeof *call->feeds);
    str_append_bytes(key, call->fetches, (size_t)call->n_fetches * sizeof *call->fetches);
    str_append_bytes(key, call->targets, (size_t)call->n_targets * sizeof *call->targets);
    for (size_t i = 0; i < session->programs.n; i++) {
        struct program *program = session->programs.items[i];
        if (program->key.n == key->n && !memcmp(program->key.data, key->data, key->n))
            return program;
    }
    struct program *program = make(session, call, err);
    if (program) {
        str_append_bytes(&program->key, key->data, key->n);
        vec_push(&session->programs, program);
    }
    return program;
}
