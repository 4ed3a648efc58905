/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches a running job: which processes run, reply, are silent, have died or left, and how far
 * training is. It reports by calls, or as lines for a shell; docs/job.md lists them:
 *
 *     up ps:0 pid=4120 incarnation=1
 *     ready ps:0 pid=4120 incarnation=1
 *     waiting worker:1 why=not started
 *     step 211 loss=0.0187 rate=2350 workers=2/2 late=0 stale=0
 *     silent worker:1 3.0s pid=4188 incarnation=2 step=402
 *     died worker:1 pid=4123 incarnation=1 step=211
 *     left ps:0 step=460
 *
 * A process runs as long as it holds the lock of its pid file. A shard is responsive if it replies
 * on our link, a worker if it has a link to a shard.
 */
#ifndef TF_PS_WATCH_H
#define TF_PS_WATCH_H

#include "supervise/watch.h"
#include "transport/job/job.h"
#include "transport/value/conns.h"

/* Runs until every process that was seen has ended well, or `ends` says so: returns 0. ERR_NOINPUT:
 * there is no job. */
int watch_job(const struct watch_options *options, struct error *err);

/* Returns the incarnation of a job's task that runs, or last ran; 0: none. */
uint64_t watch_incarnation(const char *job_folder, const char *task);

#endif
