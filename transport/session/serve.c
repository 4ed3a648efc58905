/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/serve.h"

#include "base/cores.h"
#include "base/failpoint.h"
#include "exec/device/device_set.h"
#include "exec/state/variable.h"

struct service {
    const struct serve_options *options;
    struct member member;
    struct device_set devices;
    struct variable_store *variables;
    struct server *server;
    struct loop_event *stop;
};

static void told_to_end(void *context)
{
    const struct service *s = context;
    loop_stop(conns_loop(s->member.conns));
}

static int threads_of(const struct service *s)
{
    return s->options->device.threads > 0 ? s->options->device.threads : cores_usable();
}

static int open_devices(struct service *s, struct error *err)
{
    const struct cluster *cluster = &s->member.cluster;
    const struct cluster_task *self = cluster_find(cluster, s->member.job_name, s->member.index);
    struct device_options options = s->options->device;
    options.threads = threads_of(s) / self->n_devices;
    if (options.threads < 1)
        options.threads = 1;
    for (int i = 0; i < self->n_devices; i++) {
        const struct device_name *name = &cluster->devices.items[self->first_device + i];
        struct device *device = device_open(name->type, name->index, &options, err);
        if (!device)
            return err->code;
        vec_push(&s->devices.devices, device);
    }
    return 0;
}

static int open_all(struct service *s, struct address *bound, struct error *err)
{
    const struct serve_options *options = s->options;
    int code = member_open(&s->member, &options->member, err);
    if (!code)
        code = open_devices(s, err);
    if (code)
        return code;
    struct server_options server = {.conns = s->member.conns,
                                    .task = s->member.task,
                                    .registry = options->registry,
                                    .kernels = options->kernels,
                                    .devices = s->devices.devices.items,
                                    .n_devices = (int)s->devices.devices.n,
                                    .threads = options->parallel ? threads_of(s) : 1,
                                    .variables = s->variables,
                                    .timeout = s->member.options.timeout};
    s->server = server_new(&server);
    struct loop *loop = conns_loop(s->member.conns);
    if (options->stop_fd >= 0)
        s->stop = loop_watch_new(loop, options->stop_fd, told_to_end, s);
    if (options->opening)
        code = options->opening(options->context, s->member.conns, s->variables, err);
    return code ? code : member_listen(&s->member, bound, err);
}

/* Requests are refused while the loop still runs for steps to end. */
static void close_all(struct service *s)
{
    struct error why = ERROR_INIT;
    error_set(&why, ERR_UNAVAILABLE, "%s ends", s->member.task);
    if (s->member.conns)
        conns_refuse(s->member.conns, &why);
    if (s->options->closing)
        s->options->closing(s->options->context);
    loop_event_free(s->stop);
    server_free(s->server);
    member_close(&s->member);
    device_set_release(&s->devices);
}

int serve(const struct serve_options *options, struct error *err)
{
    struct service s = {.options = options, .variables = variable_store_new()};
    struct address bound;
    int code = open_all(&s, &bound, err);
    if (!code) {
        options->ready(options->context, s.member.task, bound.text);
        code = loop_run(conns_loop(s.member.conns), err);
        if (!code && FAILPOINT("serve.end"))
            code = error_set(err, ERR_UNAVAILABLE, "failpoint serve.end");
    }
    close_all(&s);
    variable_store_free(s.variables);
    return code;
}
