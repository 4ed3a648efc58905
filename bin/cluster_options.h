/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that make a program a task of a cluster, for every program that can be one; their
 * rows are in bin/cluster_rows.def.
 */
#ifndef TF_BIN_CLUSTER_OPTIONS_H
#define TF_BIN_CLUSTER_OPTIONS_H

#include "cli/tool.h"
#include "transport/session/serve.h"

extern struct cluster_options {
    const char *path, *task, *job, *key_file;
    bool no_key;
    double timeout, lease; /* seconds; 0: as the option says */
    int64_t lifeline;      /* a descriptor; -1: none */
} cluster_options;

struct member_options cluster_member(struct tool *tool);

/* For a program that serves. Until it is ready a signal ends it soon, also where it reads what it
 * is to go on from; from then on it ends in good order. */
int cluster_catch_signals(struct error *err);
/* Returns whether it is to: for waits. */
const atomic_bool *cluster_cancelled(void);
struct serve_options cluster_serving(struct tool *tool, int threads, bool deterministic);
/* Says so: what serve_options.ready is to do at least. */
void cluster_ready(const struct tool *tool, const char *task, const char *address);

/* Holds the lifeline, where --lifeline was given. */
int cluster_hold_lifeline(struct error *err);

#endif
