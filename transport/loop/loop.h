/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop under links: sockets, timers, and calls from other threads.
 *
 * One thread at a time runs a loop: a server by loop_run, a driver by loop_run_until while it waits
 * for something. Waking a sleeping thread costs some 30 us, so a loop polls for up to 50 us before
 * it sleeps, unless polling found nothing lately or all cores are busy. While polling it reads from
 * links, if they are few, and checks other events now and then.
 *
 * Calls made by the loop must not take longer with more data: such work is for other threads.
 *
 * A second thread, the loop's heartbeat, starts with the first link. It only sends pings, so that
 * peers do not take a process for dead that computes between two runs of its loop, or within a
 * call. Pings say for how long the loop has been stalled.
 */
#ifndef TF_TRANSPORT_LOOP_H
#define TF_TRANSPORT_LOOP_H

#include <stdbool.h>

#include "base/error.h"
#include "base/time.h"

struct loop;
struct loop_event;

/* ERR_OS. */
struct loop *loop_new(struct error *err);

/* All links, listeners, timers and sets of peers of the loop must be freed before. Posted calls
 * that did not run are dropped. */
void loop_free(struct loop *loop);

/* Runs until loop_stop. ERR_OS: the system's event mechanism failed. */
int loop_run(struct loop *loop, struct error *err);

/* Ends the current or the next loop_run or loop_run_until. Any thread, and signal handlers. The
 * loop must not be freed before it returns. */
void loop_stop(struct loop *loop);

/* Runs in the calling thread until the condition, which is checked after each event, holds. Returns
 * false if the timeout (seconds; < 0: none) passed, or loop_stop was called, before. Without a
 * condition, NULL, only these end it. Must not be called by the loop. */
bool loop_run_until(struct loop *loop, bool (*until)(void *context), void *context, double timeout);

/* From any thread: `call` runs in the thread that runs the loop, in the order of the posts. */
void loop_post(struct loop *loop, void (*call)(void *argument), void *argument);

/* Returns whether the calling thread is running the loop. */
bool loop_is_current(const struct loop *loop);
/* Returns whether another thread runs it. If not, the next thread that runs it checks all
 * conditions first. */
bool loop_is_elsewhere(const struct loop *loop);

/* A loop that does not wait for events is handling the last ones, or is stalled. Return for how
 * many seconds now (0: it waits, or is not running), and the longest ever. Any thread. */
double loop_stillness(const struct loop *loop);
double loop_longest_stillness(const struct loop *loop);

/* ---- events: in the loop's thread, or while the loop does not run ---- */

struct loop_event *loop_timer_new(struct loop *loop, void (*call)(void *context), void *context);
void loop_timer_set(struct loop_event *timer, double seconds); /* once, from now; < 0: off */

/* For descriptors other than links (standard input, a signal, a pipe): calls `call` whenever `fd`
 * is readable. The caller keeps owning the descriptor. */
struct loop_event *loop_watch_new(struct loop *loop, int fd, void (*call)(void *context),
                                  void *context);
void loop_event_free(struct loop_event *event);

#endif
