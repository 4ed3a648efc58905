/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop under links: sockets, timers, and calls from other threads.
 *
 * One thread at a time runs a loop: a server by loop_run, a driver by loop_run_until while it waits
 * for something. Waking a sleeping thread costs some 30 us, so before it sleeps a loop asks for
 * events for up to 50 us; it stops doing so when that found nothing lately, or when all cores are
 * busy. While it asks it reads from links, if they are few, and looks for other events now and
 * then.
 *
 * Nothing that is called takes longer the more data there is: that is for other threads.
 *
 * A second thread, the loop's keeper, starts with the first link. It only sends pings, so that a
 * process that computes between two runs of its loop, or within a call, is not taken for dead. They
 * say for how long the loop has stood still.
 */
#ifndef TF_TRANSPORT_LOOP_H
#define TF_TRANSPORT_LOOP_H

#include <stdbool.h>

#include "base/error.h"
#include "base/time.h"

struct loop;
struct loop_timer;

/* ERR_OS. */
struct loop *loop_new(struct error *err);

/* Every link, listener, timer and set of peers of the loop was freed before. Posted calls that did
 * not run are dropped. */
void loop_free(struct loop *loop);

/* Runs until loop_stop. ERR_OS: the system's event mechanism failed. */
int loop_run(struct loop *loop, struct error *err);

/* Ends the loop_run or loop_run_until that runs, or the next one. Any thread; also a signal
 * handler. The loop must stay until it returns.
 */
void loop_stop(struct loop *loop);

/* Runs in the calling thread until the condition holds, which is asked after each event. False: the
 * timeout (seconds; < 0: none) passed, or loop_stop was called, before it held. Not within a call
 * of the loop. */
bool loop_run_until(struct loop *loop, bool (*until)(void *context), void *context, double timeout);

/* Any thread: `call` runs in the thread that runs the loop, in the order of the posts. */
void loop_post(struct loop *loop, void (*call)(void *argument), void *argument);

/* Returns whether the calling thread is running the loop. */
bool loop_is_current(const struct loop *loop);
/* Returns whether another thread runs it. If not, whoever is about to looks at all conditions
 * first. */
bool loop_is_elsewhere(const struct loop *loop);

/* A loop that does not wait for events works on what the last one brought, or stands still. For how
 * many seconds now (0: it waits, or nobody runs it), and the most that it ever was. Any thread. */
double loop_stillness(const struct loop *loop);
double loop_longest_stillness(const struct loop *loop);

/* How the loop waits: microseconds that it asks for events before it sleeps; 0: it sleeps at once;
 * < 0: the default, 50 where there are two cores or more. Before the loop runs. */
void loop_set_polling(struct loop *loop, double microseconds);

/* ---- timers: in the loop's thread, or while nobody runs the loop ---- */

struct loop_timer *loop_timer_new(struct loop *loop, void (*call)(void *context), void *context);
void loop_timer_set(struct loop_timer *timer, double seconds); /* from now, once; < 0: off */
void loop_timer_free(struct loop_timer *timer);

/* ---- file descriptors that are no links (standard input, a signal, a pipe): as timers ---- */

struct loop_watch;

/* Calls whenever `fd` can be read. The descriptor stays the caller's. */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*call)(void *context),
                                  void *context);
void loop_watch_free(struct loop_watch *watch);

#endif
