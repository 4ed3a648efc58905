/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"

struct trace_event {
    enum { EVENT_RUN, EVENT_PEER, EVENT_DEVICE } kind;
    int thread;
    int64_t step;
    union {
        struct trace_run run; /* of a whole step: no node */
        struct trace_peer peer;
        struct trace_device device;
    };
};

struct trace {
    pthread_mutex_t lock;
    VEC(struct trace_event) events;
    struct arena tasks;               /* for names of tasks */
    VEC(struct trace_device) devices; /* since the beginning */
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
    arena_release(&trace->tasks);
    vec_release(&trace->devices);
    pthread_mutex_destroy(&trace->lock);
    mem_free(trace);
}

/* Threads get small numbers, in the order in which they first trace something. */
void trace_kernel(struct trace *trace, int64_t step, const struct trace_run *run)
{
    static atomic_int last;
    static _Thread_local int number;
    if (!number)
        number = atomic_fetch_add(&last, 1) + 1;
    const struct trace_event event = {EVENT_RUN, number, step, .run = *run};
    pthread_mutex_lock(&trace->lock);
    vec_push(&trace->events, event);
    pthread_mutex_unlock(&trace->lock);
}

void trace_peer(struct trace *trace, int64_t step, const struct trace_peer *peer)
{
    struct trace_event event = {EVENT_PEER, .step = step, .peer = *peer};
    pthread_mutex_lock(&trace->lock);
    event.peer.task = arena_strdup(&trace->tasks, peer->task);
    vec_push(&trace->events, event);
    pthread_mutex_unlock(&trace->lock);
}

void trace_device(struct trace *trace, const struct trace_device *device)
{
    const struct trace_event event = {EVENT_DEVICE, .device = *device};
    size_t i = 0;
    pthread_mutex_lock(&trace->lock);
    while (i < trace->devices.n && (trace->devices.items[i].index != device->index ||
                                    strcmp(trace->devices.items[i].type, device->type) != 0))
        i++;
    if (i == trace->devices.n) {
        vec_push(&trace->devices, *device);
        vec_push(&trace->events, event);
    }
    pthread_mutex_unlock(&trace->lock);
}

static void pack_device(msgpack_packer *packer, const struct trace_event *e)
{
    msgpack_pack_map(packer, 3);
    pack_key_text(packer, "device", e->device.type);
    pack_key_int(packer, "index", e->device.index);
    pack_key_int(packer, "memory", e->device.memory);
}

static void pack_peer(msgpack_packer *packer, const struct trace_event *e)
{
    msgpack_pack_map(packer, 4);
    pack_key_int(packer, "step", e->step);
    pack_key_text(packer, "peer", e->peer.task);
    pack_key_uint(packer, "sent", e->peer.sent);
    pack_key_uint(packer, "got", e->peer.got);
}

static void pack_run(msgpack_packer *packer, const struct trace_event *e)
{
    const struct trace_run *run = &e->run;
    msgpack_pack_map(packer, run->node ? 7 : 4);
    pack_key_int(packer, "step", e->step);
    pack_key_int(packer, "start", run->start);
    pack_key_int(packer, "ns", run->end - run->start);
    pack_key(packer, run->queue ? "queue" : "thread");
    if (run->queue)
        pack_text(packer, run->queue);
    else
        msgpack_pack_int(packer, e->thread);
    if (!run->node)
        return;
    pack_key_text(packer, "node", run->node);
    pack_key_text(packer, "kernel", run->kernel);
    pack_key_text(packer, "op", run->op);
}

int trace_flush(struct trace *trace, struct stream_writer *writer, struct error *err)
{
    static void (*const packs[])(msgpack_packer * packer, const struct trace_event *e) = {
        [EVENT_RUN] = pack_run, [EVENT_PEER] = pack_peer, [EVENT_DEVICE] = pack_device};
    int code = 0;
    pthread_mutex_lock(&trace->lock);
    if (trace->events.n) {
        msgpack_packer *packer = stream_begin(writer, RECORD_TRACE, 1);
        pack_key_array(packer, "events", trace->events.n);
        for (size_t i = 0; i < trace->events.n; i++)
            packs[trace->events.items[i].kind](packer, &trace->events.items[i]);
        trace->events.n = 0;
        arena_release(&trace->tasks);
        code = stream_write(writer, NULL, 0, err);
    }
    pthread_mutex_unlock(&trace->lock);
    return code;
}
