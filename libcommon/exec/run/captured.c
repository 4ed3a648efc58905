/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run/captured.h"

#include <string.h>

#include "base/memory.h"
#include "exec/device/queue.h"
#include "exec/run/builtin.h"
#include "exec/run/dynamic.h"

bool captured_may_run(const struct run *run)
{
    return run->captured.has_run && !run->step->trace &&
           atomic_load_explicit(&run->plan->is_captured, memory_order_relaxed);
}

/* ---- memory of the host ---- */

static int make_host(struct device *device, enum dtype type, const struct shape *shape,
                     struct tensor *t, struct error *err)
{
    struct buffer *buffer = device_alloc_host(device, (size_t)shape_bytes(shape, type));
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for %s%s", shape_text_typed(type, shape),
                         mem_limit_text());
    *t = (struct tensor){.type = type, .shape = *shape, .data = buffer->data, .buffer = buffer};
    return 0;
}

static int make_ways(struct run *run, struct error *err)
{
    struct captured *captured = &run->captured;
    struct plan *plan = run->plan;
    int code = 0;
    captured->feeds = mem_array((size_t)plan->n_feeds + 1, sizeof *captured->feeds);
    captured->fetches = mem_array((size_t)plan->n_fetches + 1, sizeof *captured->fetches);
    for (int i = 0; i < plan->n_feeds && !code; i++)
        if (plan->feed_nodes[i] >= 0)
            code = make_host(plan->options.device, plan->feeds[i].type, &plan->feeds[i].shape,
                             &captured->feeds[i], err);
    for (int i = 0; i < plan->n_fetches && !code; i++) {
        const struct value *value = &plan->values.items[plan->fetch_values[i]];
        code =
            make_host(plan->options.device, value->type, &value->shape, &captured->fetches[i], err);
    }
    return code;
}

static void bind(struct run *run)
{
    for (int i = 0; i < run->plan->n_feeds; i++)
        run->feeds[i].data = run->captured.feeds[i].data;
    run->fetches = run->captured.fetches;
}

/* ---- capturing ---- */

/* An alias is made when it is captured; what else a kernel does itself cannot be done again. */
static bool only_aliases(const struct plan *plan, const struct item *item)
{
    for (int i = 0; i < item->n_out; i++)
        if (plan->values.items[item->out[i]].alias_of < 0)
            return false;
    return item->n_out || !item->n_in;
}

static int enqueue_item(struct run *run, struct region_call *c)
{
    const struct item *item = c->host.item;
    int result = item_kernel(item)(&c->call);
    if (result > 0 || result == KERNEL_ENQUEUED)
        return result > 0 ? result : 0;
    if (result == KERNEL_DONE && only_aliases(run->plan, item))
        return 0;
    return error_set(&run->own.err, ERR_INTERNAL, "kernel '%s' cannot be captured", item->kernel);
}

/* Feeds are copied before the launch (plan_schedule.c). The compute queue waits in the end for what
 * copies to the host. */
static int enqueue(void *context)
{
    struct run *run = context;
    struct region_call *calls = run->root->oldest->calls;
    const struct plan *plan = run->plan;
    bool fetches = false;
    int code = 0;
    for (int at = 0; at < plan->n_order && !code; at++) {
        const struct item *item = calls[at].host.item;
        if (plan_is_feed_copy(plan, item))
            continue;
        fetches |= plan_is_copied(plan, item);
        code = enqueue_item(run, &calls[at]);
    }
    if (fetches && !code)
        queue_follow(plan->options.device, QUEUE_COMPUTE, QUEUE_OUT);
    return code;
}

/* Kernels count the updates of variables when they enqueue them. */
static void note_writes(struct run *run, bool is_over)
{
    const struct plan *plan = run->plan;
    for (size_t i = 0; i < plan->locks.n; i++) {
        struct variable *variable = plan->locks.items[i].variable;
        struct captured_write *write = &run->captured.writes[i];
        uint64_t before = write->updates;
        *write = (struct captured_write){variable->value.data, variable->updates};
        if (!is_over)
            continue;
        write->updates -= before;
        if (write->updates)
            variable->updates = before;
    }
}

/* A step that fails at it has done nothing yet. */
static bool capture(struct run *run)
{
    struct captured *captured = &run->captured;
    struct plan *plan = run->plan;
    struct device *device = plan->options.device;
    struct error err = ERROR_INIT;
    captured->writes = mem_array(plan->locks.n + 1, sizeof *captured->writes);
    int code = make_ways(run, &err);
    bind(run);
    note_writes(run, false);
    run->on_device.is_captured = true;
    if (!code)
        code = device->capture->capture(device, enqueue, run, &captured->graph, &err);
    run->on_device.is_captured = false;
    temporaries_free(&run->own.temporaries);
    note_writes(run, true);
    run->own.err.code = 0;
    run_bind(run);
    if (code)
        atomic_store(&plan->is_captured, false);
    return !code;
}

/* ---- running ---- */

/* They have been there since the first step, or since they were captured. */
static bool are_there(const struct run *run)
{
    const struct plan *plan = run->plan;
    for (size_t i = 0; i < plan->locks.n; i++) {
        const struct variable *variable = plan->locks.items[i].variable;
        bool moved = run->captured.graph && variable->value.data != run->captured.writes[i].data;
        if (!variable->initialized || moved)
            return false;
    }
    return true;
}

bool captured_prepare(struct run *run)
{
    region_bind(run, &run->own, 0);
    if (are_there(run) && (run->captured.graph || capture(run)))
        return true;
    captured_release(run);
    return false;
}

static void count_updates(const struct run *run)
{
    const struct plan *plan = run->plan;
    for (size_t i = 0; i < plan->locks.n; i++)
        if (run->captured.writes[i].updates)
            plan->locks.items[i].variable->updates += run->captured.writes[i].updates;
}

/* To where the captured work has it. What was not staged goes through pinned memory. */
static int bring_feed(struct run *run, struct region_call *c)
{
    int number = run->plan->values.items[c->host.item->in[0]].feed, code;
    const struct tensor *feed = &run->execution.feeds[number],
                        *pinned = &run->captured.feeds[number];
    if (item_take_staged(&c->call, feed, &code))
        return code;
    if (tensor_bytes(feed))
        memcpy(pinned->data, feed->data, tensor_bytes(feed));
    return item_copy_in(&c->call, 0, pinned);
}

static int bring_feeds(struct run *run)
{
    const struct plan *plan = run->plan;
    int code = 0;
    for (int at = 0; at < plan->n_order && !code; at++) {
        struct region_call *c = &run->root->oldest->calls[at];
        if (!plan_is_feed_copy(plan, c->host.item))
            break;
        code = bring_feed(run, c);
    }
    device_step_await_copies(&run->on_device);
    return code;
}

int captured_launch(struct run *run, struct error *err)
{
    struct captured *captured = &run->captured;
    struct device *device = run->plan->options.device;
    captured->is_current = true;
    int code = bring_feeds(run); /* whose errors are the run's, as *err is */
    if (code)
        return code;
    count_updates(run);
    return device->capture->launch(device, captured->graph, err);
}

int captured_fetch(struct run *run, struct error *err)
{
    int code = 0;
    for (int i = 0; i < run->plan->n_fetches && !code; i++)
        code = tensor_copy(&run->fetches[i], &run->captured.fetches[i], err);
    return code;
}

static void release_all(struct tensor *tensors, int n)
{
    for (int i = 0; tensors && i < n; i++)
        tensor_release(&tensors[i]);
    mem_free(tensors);
}

void captured_release(struct run *run)
{
    struct captured *captured = &run->captured;
    struct device *device = run->plan->options.device;
    if (captured->graph)
        device->capture->free(device, captured->graph);
    release_all(captured->feeds, run->plan->n_feeds);
    release_all(captured->fetches, run->plan->n_fetches);
    mem_free(captured->writes);
    *captured = (struct captured){0};
}
