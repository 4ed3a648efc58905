/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds that are in a device's memory, or on their way there, before the step begins that they are
 * for. Whoever runs steps one after the other has a stage and two batches, one of the step that
 * runs and one of the next. Executors ask the batch of a step for the feeds that their devices
 * want; what was asked for in a step before is copied to pinned memory of the host, and from there
 * to the device, while the other step runs. Where no device has memory of its own nobody asks, and
 * nothing is prefetched.
 *
 * Such memory counts as the device's. Where there is none, or somebody else finds none, feeds are
 * copied when their step begins, as without all this.
 */
#ifndef TF_EXEC_PREFETCHED_H
#define TF_EXEC_PREFETCHED_H

#include "exec/step/device_step.h"

struct stage;
struct prefetched_batch; /* a batch: the feeds of a step */

/* Traced: batches say when their copies were made, for the trace of their step. */
struct stage *stage_new(bool is_traced);
/* Frees the stage after its batches. */
void stage_free(struct stage *stage);

/* Returns whether any device has asked for a feed. Any thread. `stage` NULL: none has. */
bool stage_is_wanted(struct stage *stage);

/* Nobody waits any more in prefetched_fill, now and later. Any thread. */
void stage_stop(struct stage *stage);

struct prefetched_batch *prefetched_new(struct stage *stage);
/* Waits for its copies. The devices are there still, and no step uses it. */
void prefetched_free(struct prefetched_batch *prefetched);

/* The feeds of a step, borrowed. */
struct prefetched_feeds {
    const struct edge *edges;
    const struct tensor *values; /* in host memory */
    int n;
};

/* Takes memory for feeds that are as large as these, if there is any. No step runs, and nobody
 * fills the batch. */
void prefetched_reserve(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds);

/* Stages the feeds, those for which there is memory, once the step that runs has begun on all
 * devices: its own copies come first. The batch is of no step at that time. One thread at a time.
 */
void prefetched_fill(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds);

/* The batch is that of the next step, step->prefetched, which is given these feeds; and that is
 * over. In between no other batch is prefetched before devices have asked for all. May be said
 * again before the step begins. */
void prefetched_begin(struct prefetched_batch *prefetched, const struct prefetched_feeds *feeds);
void prefetched_end(struct prefetched_batch *prefetched);

/* A feed that was prefetched. */
struct prefetched_feed {
    struct buffer *memory;       /* of the device: the feed's bytes */
    struct device_event *ready;  /* after which they are there */
    struct device_timer *timing; /* of the copy, for who takes it; NULL: it is not traced */
};

/* For executors: the feed in the device's memory, until prefetched_taken says that the compute
 * queue has been given all that uses it; NULL: it is not there, and from the next batch on it may
 * be. From any thread that runs a part of the step; a feed of a device by one of them. `prefetched`
 * NULL: it is not. */
struct prefetched_feed *prefetched_find(struct prefetched_batch *prefetched,
                                        const struct tensor *feed, struct device *device);
void prefetched_taken(struct prefetched_batch *prefetched, struct prefetched_feed *feed);

#endif
