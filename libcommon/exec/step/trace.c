/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "base/vec.h"

struct trace_event {
    int64_t step, start, end;
    const char *node, *kernel, *op; /* NULL for a whole step */
    const char *queue;              /* NULL: the thread's */
    int thread;
};

struct peer_event {
    int64_t step;
    struct trace_peer peer;
};

struct traced_device {
    struct trace_device device;
    bool is_written;
};

struct trace {
    pthread_mutex_t lock;
    VEC(struct trace_event) events;
    VEC(struct peer_event) peers;
    struct arena tasks;                /* of the peers' names */
    VEC(struct traced_device) devices; /* since the beginning */
    struct arena types;                /* of their types' names */
};

struct trace *trace_new(void)
{
    struct trace *trace = mem_alloc(sizeof *trace);
    pthread_mutex_init(&trace->lock, NULL);
    return trace;
}

void trace_free(struct trace *trace)
{
    if (!trace)
        return;
    vec_release(&trace->events);
    vec_release(&trace->peers);
    arena_release(&trace->tasks);
    vec_release(&trace->devices);
    arena_release(&trace->types);
    pthread_mutex_destroy(&trace->lock);
    mem_free(trace);
}

/* Threads have small numbers, in the order in which they first trace something. */
static void add(struct trace *trace, struct trace_event event)
{
    static atomic_int last;
    static _Thread_local int number;
    if (!number)
        number = atomic_fetch_add(&last, 1) + 1;
    event.thread = number;
    pthread_mutex_lock(&trace->lock);
    vec_push(&trace->events, event);
    pthread_mutex_unlock(&trace->lock);
}

void trace_kernel(struct trace *trace, int64_t step, const struct trace_run *run)
{
    add(trace, (struct trace_event){step, run->start, run->end, run->node, run->kernel, run->op,
                                    run->queue, 0});
}

void trace_step(struct trace *trace, int64_t step, int64_t start, int64_t end)
{
    add(trace, (struct trace_event){.step = step, .start = start, .end = end});
}

void trace_peer(struct trace *trace, int64_t step, const struct trace_peer *peer)
{
    struct peer_event event = {step, *peer};
    pthread_mutex_lock(&trace->lock);
    event.peer.task = arena_strdup(&trace->tasks, peer->task);
    vec_push(&trace->peers, event);
    pthread_mutex_unlock(&trace->lock);
}

void trace_device(struct trace *trace, const struct trace_device *device)
{
    struct traced_device event = {*device, false};
    bool is_known = false;
    pthread_mutex_lock(&trace->lock);
    for (size_t i = 0; i < trace->devices.n && !is_known; i++) {
        const struct trace_device *known = &trace->devices.items[i].device;
        is_known = known->index == device->index && !strcmp(known->type, device->type);
    }
    if (!is_known) {
        event.device.type = arena_strdup(&trace->types, device->type);
        vec_push(&trace->devices, event);
    }
    pthread_mutex_unlock(&trace->lock);
}

/* One event is a map; a step has no node. */
static void pack_event(msgpack_packer *packer, const struct trace_event *e)
{
    msgpack_pack_map(packer, e->node ? 7 : 4);
    pack_key_int(packer, "step", e->step);
    pack_key_int(packer, "start", e->start);
    pack_key_int(packer, "ns", e->end - e->start);
    pack_key(packer, e->queue ? "queue" : "thread");
    if (e->queue)
        pack_text(packer, e->queue);
    else
        msgpack_pack_int(packer, e->thread);
    if (!e->node)
        return;
    pack_key_text(packer, "node", e->node);
    pack_key_text(packer, "kernel", e->kernel);
    pack_key_text(packer, "op", e->op);
}

/* With the lock held. */
static int write_events(struct trace *trace, size_t n, struct stream_writer *writer,
                        struct error *err)
{
    msgpack_packer *packer = stream_begin(writer, RECORD_TRACE, 1);
    pack_key_array(packer, "events", n);
    for (size_t i = 0; i < trace->devices.n; i++) {
        struct traced_device *e = &trace->devices.items[i];
        if (e->is_written)
            continue;
        msgpack_pack_map(packer, 3);
        pack_key_text(packer, "device", e->device.type);
        pack_key_int(packer, "index", e->device.index);
        pack_key_int(packer, "memory", e->device.memory);
        e->is_written = true;
    }
    for (size_t i = 0; i < trace->events.n; i++)
        pack_event(packer, &trace->events.items[i]);
    for (size_t i = 0; i < trace->peers.n; i++) {
        const struct peer_event *e = &trace->peers.items[i];
        msgpack_pack_map(packer, 4);
        pack_key_int(packer, "step", e->step);
        pack_key_text(packer, "peer", e->peer.task);
        pack_key_uint(packer, "sent", e->peer.sent);
        pack_key_uint(packer, "got", e->peer.got);
    }
    trace->events.n = trace->peers.n = 0;
    arena_release(&trace->tasks);
    return stream_write(writer, NULL, 0, err);
}

int trace_flush(struct trace *trace, struct stream_writer *writer, struct error *err)
{
    pthread_mutex_lock(&trace->lock);
    size_t n = trace->events.n + trace->peers.n;
    for (size_t i = 0; i < trace->devices.n; i++)
        n += !trace->devices.items[i].is_written;
    int code = n ? write_events(trace, n, writer, err) : 0;
    pthread_mutex_unlock(&trace->lock);
    return code;
}
