/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/prefetched.h"

#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/queue.h"

/* Pairs of a feed and a device that needs it; further ones are copied when their step begins. */
#define WANTS_MAX 64

struct want {
    struct edge edge;
    struct device *device;
};

/* A want's memory and contents. The stage's lock guards it, except during a copy into it. */
struct prefetched_slot {
    struct prefetched_feed feed;
    struct device *device; /* NULL: there is no memory */
    struct buffer *host;   /* pinned */
    size_t bytes;          /* size of both */
    const void *data;      /* of the feed that it contains; NULL: none */
    bool is_copied_to;     /* by the thread that fills the batch */
    bool is_asked;         /* by the running step, */
    bool is_taken;         /* which has enqueued all its uses */
};

struct prefetched_batch {
    struct stage *stage;
    struct prefetched_slot slots[WANTS_MAX];
    struct prefetched_feeds feeds; /* of the running step */
    int n_asked;
};

struct stage {
    bool is_traced;
    pthread_mutex_t lock; /* guards the members below; no allocation while it is held */
    pthread_cond_t changed;
    struct want wants[WANTS_MAX]; /* the first n_wants stay as they are */
    int n_wants;
    struct prefetched_batch batches[2];
    struct prefetched_batch *current; /* of the running step; NULL: none runs */
    struct mem_reclaimer reclaimer;
    bool is_short; /* memory was needed elsewhere: prefetching has ended */
    bool is_stopped;
};

/* ---- memory of a slot ---- */

/* Waits for the slot's copy, which is over unless its step did not take it. */
static void await_copy(struct prefetched_slot *slot)
{
    struct device *device = slot->device;
    struct device_event *ready = slot->feed.ready;
    struct error ignored = ERROR_INIT;
    slot->data = NULL;
    if (ready) {
        device->queue->block(device, ready, &ignored);
        device->queue->event_free(device, ready);
    }
    device_timer_drop(slot->feed.timing);
    slot->feed.timing = NULL;
    slot->feed.ready = NULL;
}

/* Freed memory goes to the compute queue, so that queue's own uses of it need no waiting. */
static void let_go(struct prefetched_slot *slot)
{
    await_copy(slot);
    if (slot->feed.memory) {
        queue_follow(slot->device, QUEUE_COMPUTE, QUEUE_IN);
        slot->feed.memory->free(slot->feed.memory);
    }
    if (slot->host)
        slot->host->free(slot->host);
    *slot = (struct prefetched_slot){0};
}

/* ---- the stage ---- */

static void let_go_of_all(struct prefetched_batch *prefetched)
{
    for (int i = 0; i < WANTS_MAX; i++)
        if (prefetched->slots[i].device)
            let_go(&prefetched->slots[i]);
}

static void release_prefetched(struct mem_reclaimer *reclaimer)
{
    struct stage *stage = CONTAINER_OF(reclaimer, struct stage, reclaimer);
    pthread_mutex_lock(&stage->lock);
    stage->is_short = true;
    for (int i = 0; i < 2 * WANTS_MAX; i++) {
        struct prefetched_batch *prefetched = &stage->batches[i / WANTS_MAX];
        struct prefetched_slot *slot = &prefetched->slots[i % WANTS_MAX];
        while (slot->is_copied_to) /* its thread allocates nothing meanwhile */
            pthread_cond_wait(&stage->changed, &stage->lock);
        bool is_used = prefetched == stage->current && slot->is_asked && !slot->is_taken;
        if (slot->device && !is_used)
            let_go(slot);
    }
    pthread_mutex_unlock(&stage->lock);
}

struct stage *stage_new(bool is_traced)
{
    struct stage *stage = mem_alloc(sizeof *stage);
    stage->is_traced = is_traced;
    stage->batches[0].stage = stage->batches[1].stage = stage;
    pthread_mutex_init(&stage->lock, NULL);
    pthread_cond_init(&stage->changed, NULL);
    stage->reclaimer.give_back = release_prefetched;
    mem_reclaimer_add(&stage->reclaimer);
    return stage;
}

void stage_free(struct stage *stage)
{
    if (!stage)
        return;
    mem_reclaimer_remove(&stage->reclaimer);
    let_go_of_all(&stage->batches[0]);
    let_go_of_all(&stage->batches[1]);
    pthread_mutex_destroy(&stage->lock);
    pthread_cond_destroy(&stage->changed);
    mem_free(stage);
}

struct prefetched_batch *stage_batch(struct stage *stage, int i)
{
    return &stage->batches[i];
}

bool stage_is_wanted(struct stage *stage)
{
    if (!stage)
        return false;
    pthread_mutex_lock(&stage->lock);
    bool is_wanted = stage->n_wants && !stage->is_short;
    pthread_mutex_unlock(&stage->lock);
    return is_wanted;
}

void stage_stop(struct stage *stage)
{
    pthread_mutex_lock(&stage->lock);
    stage->is_stopped = true;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

/* The value of a feed; NULL: the edge is not fed, or the value is empty. */
static const struct tensor *find_feed(const struct prefetched_feeds *feeds, struct edge edge)
{
    for (int i = 0; i < feeds->n; i++)
        if (edge_key(feeds->edges[i]) == edge_key(edge))
            return tensor_bytes(&feeds->values[i]) ? &feeds->values[i] : NULL;
    return NULL;
}

/* ---- memory of a batch ---- */

void prefetched_reserve(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds)
{
    struct stage *stage = prefetched->stage;
    for (int i = 0; stage_is_wanted(stage) && i < stage->n_wants; i++) {
        const struct tensor *value = find_feed(feeds, stage->wants[i].edge);
        struct device *device = stage->wants[i].device;
        struct prefetched_slot slot = {.device = device, .bytes = value ? tensor_bytes(value) : 0};
        if (slot.bytes <= prefetched->slots[i].bytes)
            continue;
        /* The device's own function is called, so that no one else has to give up memory for a
         * batch that can do without. */
        slot.feed.memory = device->memory->alloc(device, slot.bytes);
        slot.host = slot.feed.memory ? device_alloc_host(device, slot.bytes) : NULL;
        if (slot.host)
            queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
        pthread_mutex_lock(&stage->lock);
        if (slot.host && !stage->is_short) {
            struct prefetched_slot before = prefetched->slots[i];
            prefetched->slots[i] = slot;
            slot = before;
        }
        pthread_mutex_unlock(&stage->lock);
        if (slot.device)
            let_go(&slot);
    }
}

/* ---- filling ---- */

/* Errors are ignored: the step reports the failure of a device. */
static void fill(struct stage *stage, struct prefetched_slot *slot, const struct tensor *value)
{
    struct device *device = slot->device;
    struct error ignored = ERROR_INIT;
    pthread_mutex_lock(&stage->lock);
    if (slot->device)
        await_copy(slot);
    bool copies = value && slot->device && slot->bytes >= tensor_bytes(value) && !stage->is_short;
    slot->is_copied_to = copies;
    pthread_mutex_unlock(&stage->lock);
    if (!copies)
        return;
    memcpy(slot->host->data, value->data, tensor_bytes(value));
    if (stage->is_traced)
        slot->feed.timing = device_timer_begin(device, QUEUE_IN);
    int code = device->memory->copy(device, QUEUE_IN, slot->feed.memory->data, slot->host->data,
                                    tensor_bytes(value), &ignored);
    if (stage->is_traced)
        device_timer_stop(slot->feed.timing);
    slot->feed.ready = device->queue->record(device, QUEUE_IN, false);
    pthread_mutex_lock(&stage->lock);
    slot->is_copied_to = false;
    slot->data = code ? NULL : value->data;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

void prefetched_fill(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds)
{
    struct stage *stage = prefetched->stage;
    pthread_mutex_lock(&stage->lock);
    while (!stage->is_stopped && stage->current && stage->current->n_asked != stage->n_wants)
        pthread_cond_wait(&stage->changed, &stage->lock);
    int n = stage->is_stopped ? 0 : stage->n_wants;
    pthread_mutex_unlock(&stage->lock);
    for (int i = 0; i < n; i++)
        fill(stage, &prefetched->slots[i], find_feed(feeds, stage->wants[i].edge));
}

/* ---- a step ---- */

void prefetched_begin(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds)
{
    struct stage *stage = prefetched->stage;
    pthread_mutex_lock(&stage->lock);
    prefetched->feeds = *feeds;
    prefetched->n_asked = 0;
    for (int i = 0; i < stage->n_wants; i++)
        prefetched->slots[i].is_asked = prefetched->slots[i].is_taken = false;
    stage->current = prefetched;
    pthread_mutex_unlock(&stage->lock);
}

/* Later feeds may be at the same addresses. */
void prefetched_end(struct prefetched_batch *prefetched)
{
    struct stage *stage = prefetched->stage;
    pthread_mutex_lock(&stage->lock);
    for (int i = 0; i < stage->n_wants; i++)
        prefetched->slots[i].data = NULL;
    if (stage->is_short)
        let_go_of_all(prefetched);
    stage->current = NULL;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

struct prefetched_feed *prefetched_find(struct prefetched_batch *prefetched,
                                        const struct tensor *feed, struct device *device)
{
    int at = 0;
    if (!prefetched || !tensor_bytes(feed))
        return NULL;
    const struct prefetched_feeds *feeds = &prefetched->feeds;
    while (at < feeds->n && (feeds->values[at].data != feed->data ||
                             tensor_bytes(&feeds->values[at]) != tensor_bytes(feed)))
        at++;
    if (at == feeds->n)
        return NULL;
    struct stage *stage = prefetched->stage;
    pthread_mutex_lock(&stage->lock);
    const struct want want = {feeds->edges[at], device};
    int i = 0;
    while (i < stage->n_wants && (edge_key(stage->wants[i].edge) != edge_key(want.edge) ||
                                  stage->wants[i].device != device))
        i++;
    if (i == stage->n_wants && i < WANTS_MAX)
        stage->wants[stage->n_wants++] = want;
    struct prefetched_slot *slot = i < WANTS_MAX ? &prefetched->slots[i] : NULL;
    bool is_there = slot && slot->data == feed->data;
    if (slot && !slot->is_asked) {
        slot->is_asked = true;
        prefetched->n_asked++;
        pthread_cond_broadcast(&stage->changed);
    }
    pthread_mutex_unlock(&stage->lock);
    return is_there ? &slot->feed : NULL;
}

void prefetched_taken(struct prefetched_batch *prefetched, struct prefetched_feed *feed)
{
    struct prefetched_slot *slot = CONTAINER_OF(feed, struct prefetched_slot, feed);
    pthread_mutex_lock(&prefetched->stage->lock);
    slot->data = NULL; /* it is taken once */
    slot->is_taken = true;
    pthread_mutex_unlock(&prefetched->stage->lock);
}
