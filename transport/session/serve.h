/* SPDX-License-Identifier: Apache-2.0
 *
 * A serving process: it listens at its task's address and runs what drivers register with it, until
 * it is told to end. `tf-ps serve` and `tf-exec serve` use it.
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
    struct device_options device; /* its threads are those for all computation */
    bool parallel; /* kernels that are ready run in parallel, with one thread each: for many small
                    * steps of many workers. Else they run in sequence, with all threads */
    int stop_fd;   /* when it is readable (a signal), the process ends; -1: none */

    /* Called when the server listens. */
    void (*ready)(void *context, const char *task, const char *address);
    /* Adds verbs besides those of sessions; may be NULL. `closing` undoes it, before anything else
     * ends. */
    int (*opening)(void *context, struct conns *conns, struct variable_store *variables,
                   struct error *err);
    void (*closing)(void *context);
    void *context;
};

/* Returns 0 after it was told to end. Errors as of member_open, member_listen, device_open. */
int serve(const struct serve_options *options, struct error *err);

#endif
