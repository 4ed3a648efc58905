/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that serves: it listens at its task's address and runs what drivers register with it,
 * until it is told to end. `tf-ps serve` and `tf-exec serve` are this.
 */
#ifndef TF_TRANSPORT_SERVE_H
#define TF_TRANSPORT_SERVE_H

#include "exec/device/device.h"
#include "transport/job/member.h"
#include "transport/session/server.h"

struct serve_options {
    struct member_options member;
    const struct registry *registry;
    const struct kernel_table *kernels;
    int threads;   /* to compute with; 0: cores */
    bool parallel; /* what is ready at once runs side by side, with a thread each: for many small
                    * steps of many workers. Else one after the other, with all threads */
    bool deterministic, exact; /* as of struct device_options, as these: */
    size_t device_memory;
    bool tf32, fast;
    int stop_fd; /* readable: end (a signal); -1: none */

    /* The server listens. */
    void (*ready)(void *context, const char *task, const char *address);
    /* Adds what the process answers besides sessions; may be NULL. Undone by `closing`, before
     * anything else ends. */
    int (*opening)(void *context, struct conns *conns, struct variable_store *variables,
                   struct error *err);
    void (*closing)(void *context);
    void *context;
};

/* 0 when it was told to end, and has. Else as member_open, member_listen, device_open. */
int serve(const struct serve_options *options, struct error *err);

#endif
