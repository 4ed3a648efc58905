/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/staged.h"

#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/queue.h"

/* Feeds, each on each device that wants it; what is above is copied when its step begins. */
#define WANTS_MAX 64

struct want {
    struct edge edge;
    struct device *device;
};

struct stage {
    bool is_traced;
    pthread_mutex_t lock; /* guards what follows; nothing is allocated while it is held */
    pthread_cond_t changed;
    struct want wants[WANTS_MAX];
    int n_wants;
    struct staged_batch *current; /* of the step that runs; NULL: none does */
    struct staged_batch *batches;
    struct mem_keeper keeper;
    bool is_short; /* memory was wanted elsewhere: nothing is staged any more */
    bool is_stopped;
};

/* A want's memory, and what is in it. The lock guards it, but while it is copied to. */
struct staged_slot {
    struct staged_feed feed;
    struct device *device; /* NULL: there is no memory */
    struct buffer *host;   /* pinned */
    size_t bytes;          /* that both have */
    const void *data;      /* of the feed that is there; NULL: none is */
    bool is_copied_to;     /* by the thread that fills the batch */
    bool is_asked;         /* by the step that runs, */
    bool is_taken;         /* which has enqueued all that uses it */
};

struct staged_batch {
    struct stage *stage;
    struct staged_batch *next;
    struct staged_slot slots[WANTS_MAX];
    struct staged_feeds feeds; /* of the step that runs */
    int n_asked;
};

/* ---- memory of a slot ---- */

/* When its copy is over, which it is unless a step did not take it. */
static void await_copy(struct staged_slot *slot)
{
    struct device *device = slot->device;
    struct device_event *ready = slot->feed.ready;
    struct error ignored = ERROR_INIT;
    slot->data = NULL;
    if (ready && !device->queue->query(device, ready))
        device->queue->block(device, ready, &ignored);
    device_timer_drop(slot->feed.timing);
    slot->feed.timing = NULL;
    if (ready)
        device->queue->event_free(device, ready);
    slot->feed.ready = NULL;
}

/* The compute queue's own use of it does not matter: what goes back is that queue's. */
static void let_go(struct staged_slot *slot)
{
    await_copy(slot);
    if (slot->feed.memory) {
        queue_follow(slot->device, QUEUE_COMPUTE, QUEUE_IN);
        slot->feed.memory->free(slot->feed.memory);
    }
    if (slot->host)
        slot->host->free(slot->host);
    *slot = (struct staged_slot){0};
}

/* ---- the stage ---- */

static void let_go_of_all(struct staged_batch *staged)
{
    for (int i = 0; i < WANTS_MAX; i++)
        if (staged->slots[i].device)
            let_go(&staged->slots[i]);
}

static void release_staged(struct mem_keeper *keeper)
{
    struct stage *stage = CONTAINER_OF(keeper, struct stage, keeper);
    pthread_mutex_lock(&stage->lock);
    stage->is_short = true;
    for (struct staged_batch *staged = stage->batches; staged; staged = staged->next)
        for (int i = 0; i < WANTS_MAX; i++) {
            struct staged_slot *slot = &staged->slots[i];
            while (slot->is_copied_to) /* by who allocates nothing meanwhile */
                pthread_cond_wait(&stage->changed, &stage->lock);
            bool is_used = staged == stage->current && slot->is_asked && !slot->is_taken;
            if (slot->device && !is_used)
                let_go(slot);
        }
    pthread_mutex_unlock(&stage->lock);
}

struct stage *stage_new(bool is_traced)
{
    struct stage *stage = mem_alloc(sizeof *stage);
    stage->is_traced = is_traced;
    pthread_mutex_init(&stage->lock, NULL);
    pthread_cond_init(&stage->changed, NULL);
    stage->keeper.give_back = release_staged;
    mem_keeper_add(&stage->keeper);
    return stage;
}

void stage_free(struct stage *stage)
{
    if (!stage)
        return;
    mem_keeper_remove(&stage->keeper);
    pthread_mutex_destroy(&stage->lock);
    pthread_cond_destroy(&stage->changed);
    mem_free(stage);
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

struct staged_batch *staged_new(struct stage *stage)
{
    struct staged_batch *staged = mem_alloc(sizeof *staged);
    staged->stage = stage;
    pthread_mutex_lock(&stage->lock);
    staged->next = stage->batches;
    stage->batches = staged;
    pthread_mutex_unlock(&stage->lock);
    return staged;
}

void staged_free(struct staged_batch *staged)
{
    if (!staged)
        return;
    struct stage *stage = staged->stage;
    pthread_mutex_lock(&stage->lock);
    struct staged_batch **at = &stage->batches;
    while (*at != staged)
        at = &(*at)->next;
    *at = staged->next;
    pthread_mutex_unlock(&stage->lock);
    let_go_of_all(staged);
    mem_free(staged);
}

/* The value of a feed; NULL: it is none of these, or empty. */
static const struct tensor *find_feed(const struct staged_feeds *feeds, struct edge edge)
{
    for (int i = 0; i < feeds->n; i++)
        if (feeds->edges[i].node == edge.node && feeds->edges[i].slot == edge.slot)
            return tensor_bytes(&feeds->values[i]) ? &feeds->values[i] : NULL;
    return NULL;
}

/* ---- memory of a batch ---- */

void staged_reserve(struct staged_batch *staged, const struct staged_feeds *feeds)
{
    struct stage *stage = staged->stage;
    for (int i = 0; stage_is_wanted(stage) && i < stage->n_wants; i++) {
        const struct tensor *value = find_feed(feeds, stage->wants[i].edge);
        struct device *device = stage->wants[i].device;
        struct staged_slot slot = {.device = device, .bytes = value ? tensor_bytes(value) : 0};
        if (slot.bytes <= staged->slots[i].bytes)
            continue;
        /* The device's own function: others need not give back what they keep for a batch that can
         * do without. */
        slot.feed.memory = device->memory->alloc(device, slot.bytes);
        slot.host = slot.feed.memory ? device_alloc_host(device, slot.bytes) : NULL;
        if (slot.host)
            queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
        pthread_mutex_lock(&stage->lock);
        if (slot.host && !stage->is_short) {
            struct staged_slot before = staged->slots[i];
            staged->slots[i] = slot;
            slot = before;
        }
        pthread_mutex_unlock(&stage->lock);
        if (slot.device)
            let_go(&slot);
    }
}

/* ---- filling ---- */

/* The step tells what a device has failed at. */
static void fill(struct stage *stage, struct staged_slot *slot, const struct tensor *value)
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
    int code = device->memory->copy_in(device, slot->feed.memory->data, slot->host->data,
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

void staged_fill(struct staged_batch *staged, const struct staged_feeds *feeds)
{
    struct stage *stage = staged->stage;
    struct want wants[WANTS_MAX];
    pthread_mutex_lock(&stage->lock);
    while (!stage->is_stopped && stage->current && stage->current->n_asked != stage->n_wants)
        pthread_cond_wait(&stage->changed, &stage->lock);
    int n = stage->is_stopped ? 0 : stage->n_wants;
    memcpy(wants, stage->wants, (size_t)n * sizeof *wants);
    pthread_mutex_unlock(&stage->lock);
    for (int i = 0; i < n; i++)
        fill(stage, &staged->slots[i], find_feed(feeds, wants[i].edge));
}

/* ---- a step ---- */

void staged_begin(struct staged_batch *staged, const struct staged_feeds *feeds)
{
    struct stage *stage = staged->stage;
    pthread_mutex_lock(&stage->lock);
    staged->feeds = *feeds;
    staged->n_asked = 0;
    for (int i = 0; i < stage->n_wants; i++)
        staged->slots[i].is_asked = staged->slots[i].is_taken = false;
    stage->current = staged;
    pthread_mutex_unlock(&stage->lock);
}

/* Other feeds may be at the same addresses next. */
void staged_end(struct staged_batch *staged)
{
    struct stage *stage = staged->stage;
    pthread_mutex_lock(&stage->lock);
    for (int i = 0; i < stage->n_wants; i++)
        staged->slots[i].data = NULL;
    if (stage->is_short)
        let_go_of_all(staged);
    stage->current = NULL;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

/* With the lock: the number of the want, which may be new; -1: there are too many. */
static int add_want(struct stage *stage, struct edge edge, struct device *device)
{
    int i = 0;
    while (i < stage->n_wants &&
           (stage->wants[i].edge.node != edge.node || stage->wants[i].edge.slot != edge.slot ||
            stage->wants[i].device != device))
        i++;
    if (i == WANTS_MAX)
        return -1;
    if (i == stage->n_wants)
        stage->wants[stage->n_wants++] = (struct want){edge, device};
    return i;
}

struct staged_feed *staged_find(struct staged_batch *staged, const struct tensor *feed,
                                struct device *device)
{
    int at = 0;
    if (!staged || !tensor_bytes(feed))
        return NULL;
    const struct staged_feeds *feeds = &staged->feeds;
    while (at < feeds->n && (feeds->values[at].data != feed->data ||
                             tensor_bytes(&feeds->values[at]) != tensor_bytes(feed)))
        at++;
    if (at == feeds->n)
        return NULL;
    struct stage *stage = staged->stage;
    pthread_mutex_lock(&stage->lock);
    int i = add_want(stage, feeds->edges[at], device);
    struct staged_slot *slot = i < 0 ? NULL : &staged->slots[i];
    bool is_there = slot && slot->data == feed->data;
    if (slot && !slot->is_asked) {
        slot->is_asked = true;
        staged->n_asked++;
        pthread_cond_broadcast(&stage->changed);
    }
    pthread_mutex_unlock(&stage->lock);
    return is_there ? &slot->feed : NULL;
}

void staged_taken(struct staged_batch *staged, struct staged_feed *feed)
{
    struct staged_slot *slot = CONTAINER_OF(feed, struct staged_slot, feed);
    pthread_mutex_lock(&staged->stage->lock);
    slot->data = NULL; /* it is taken once */
    slot->is_taken = true;
    pthread_mutex_unlock(&staged->stage->lock);
}
