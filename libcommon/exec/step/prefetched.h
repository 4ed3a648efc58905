/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds that are in a device's memory, or on their way there, before their step begins. A thread
 * that runs steps one after the other has a stage and two batches, one for the step that runs and
 * one for the next. Executors ask the batch of a step for the feeds that their devices need; feeds
 * that an earlier step asked for are copied to pinned memory of the host, and from there to the
 * device, while another step runs. If no device has memory of its own, nobody asks, and nothing is
 * prefetched.
 *
 * Such memory counts as the device's. If there is none left, for this or for other allocations,
 * feeds are copied when their step begins, as without prefetching.
 */
#ifndef TF_EXEC_PREFETCHED_H
#define TF_EXEC_PREFETCHED_H

#include "exec/step/device_step.h"

struct stage;
struct prefetched_batch; /* a batch: the feeds of a step */

/* `is_traced`: batches measure their copies, for the trace of their step. */
struct stage *stage_new(bool is_traced);
/* Waits for the copies. The devices must still exist, and no step may use a batch. */
void stage_free(struct stage *stage);

/* Batch 0 or 1. */
struct prefetched_batch *stage_batch(struct stage *stage, int i);

/* Returns whether any device has asked for a feed. Any thread. NULL: none has. */
bool stage_is_wanted(struct stage *stage);

/* Ends all waiting in prefetched_fill, now and later. Any thread. */
void stage_stop(struct stage *stage);

/* The feeds of a step, borrowed. */
struct prefetched_feeds {
    const struct edge *edges;
    const struct tensor *values; /* in host memory */
    int n;
};

/* Allocates memory for feeds as large as these, if there is any. No step may run, and nobody may
 * fill the batch. */
void prefetched_reserve(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds);

/* Prefetches the feeds for which there is memory, once the running step has begun on all devices:
 * its own copies come first. The batch must belong to no step then. One thread at a time. */
void prefetched_fill(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds);

/* The batch becomes that of the next step (step->prefetched) with these feeds; and its step is
 * over. Between the two, no other batch is filled before devices have asked for all feeds. May be
 * called again before the step begins. */
void prefetched_begin(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds);
void prefetched_end(struct prefetched_batch *prefetched);

/* A feed that was prefetched. */
struct prefetched_feed {
    struct buffer *memory;       /* of the device: the feed's bytes */
    struct device_event *ready;  /* after which they are there */
    struct device_timer *timing; /* of the copy, for the consumer; NULL: not traced */
};

/* For executors: the feed in the device's memory, valid until prefetched_taken says that all its
 * uses are in the compute queue. NULL: it is not there, but may be from the next batch on. From any
 * thread that runs a part of the step, one of them for each feed of a device. `prefetched` may be
 * NULL. */
struct prefetched_feed *prefetched_find(struct prefetched_batch *prefetched,
                                        const struct tensor *feed, struct device *device);
void prefetched_taken(struct prefetched_batch *prefetched, struct prefetched_feed *feed);

#endif
