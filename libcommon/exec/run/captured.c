/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/run/dynamic.h"
#include "exec/run/item.h"

enum state {
    CAPTURE_NEW,     /* has not run yet, or must run again */
    CAPTURE_DUE,     /* the next step captures it */
    CAPTURE_MADE,    /* can be launched */
    CAPTURE_REFUSED, /* the device cannot capture it */
};

struct captured_write { /* a variable that the segment uses */
    const void *data;   /* where its value was */
    uint64_t updates;   /* made in one step */
};

/* An input from outside, or an output for others, whose memory is in no arena. */
struct kept_value {
    struct tensor *at;   /* the call's tensor, or the fetch */
    struct tensor *kept; /* its memory in all steps */
    const struct value *value;
    bool is_fetch;
    bool is_token; /* dropped when everything has been enqueued */
    bool is_fed;   /* a feed's copy, enqueued before each launch */
};
typedef VEC(struct kept_value) kept_vec;

struct segment_capture {
    enum state state;
    bool by_item; /* its items are enqueued one by one in this step */
    struct device_graph *graph;
    struct captured_write *writes; /* by lock of the segment */
    kept_vec inputs, outputs;
};

/* A segment that is about to run. */
struct capture_call {
    struct run *run;
    struct launch *launch;
    struct iteration *it;
    const struct plan_segment *segment;
    struct segment_capture *captured;
};

static struct region_call *call_of(const struct capture_call *c, int at)
{
    return &c->it->calls[c->segment->first + at];
}

static bool is_feed_copy(const struct capture_call *c, int at)
{
    return plan_is_feed_copy(c->run->plan, call_of(c, at)->host.item);
}

/* ---- memory that stays with the run ---- */

static void add_input(const struct capture_call *c, const struct item *item, int i)
{
    const struct plan *plan = c->run->plan;
    int v = item->in[i];
    const struct value *value = v < 0 ? NULL : &plan->values.items[v];
    if (!value || value->kind != VALUE_COMPUTED || value->item < 0)
        return;
    const struct item *maker = &plan->items.items[value->item];
    bool is_of_region = maker->region == item->region;
    struct tensor *made = iteration_output(plan, c->it, v);
    struct kept_value kept = {.at = is_of_region ? made
                                                 : &c->it->inputs[item->first_input + i].tensor,
                              .kept = &c->it->kept[made - c->it->outputs],
                              .is_token = !is_of_region};
    if (!is_of_region || maker->position < c->segment->first)
        vec_push(&c->captured->inputs, kept);
}

static void add_output(const struct capture_call *c, int at, int i)
{
    struct region_call *call = call_of(c, at);
    int v = call->host.item->out[i];
    const struct value *value = &c->run->plan->values.items[v];
    struct kept_value kept = {.at = call->call.out[i],
                              .kept = &c->it->kept[call->call.out[i] - c->it->outputs],
                              .value = value,
                              .is_fed = is_feed_copy(c, at)};
    if (value->kind == VALUE_COMPUTED && value->offset < 0)
        vec_push(&c->captured->outputs, kept);
}

/* Runs once. In a fixed order everything but fetches has a place. */
static void find_kept(const struct capture_call *c)
{
    if (c->captured->writes)
        return;
    c->captured->writes = mem_array(c->segment->locks.n + 1, sizeof *c->captured->writes);
    for (int at = 0; at < c->segment->n; at++) {
        const struct item *item = call_of(c, at)->host.item;
        for (int i = 0; c->it->kept && i < item->n_in; i++)
            add_input(c, item, i);
        for (int i = 0; c->it->kept && i < item->n_out; i++)
            add_output(c, at, i);
        if (item->builtin != BUILTIN_FETCH)
            continue;
        int fetch = *(const int *)item->state;
        struct kept_value kept = {.at = &c->run->fetches[fetch],
                                  .kept = &c->run->kept_fetches[fetch],
                                  .value = &c->run->plan->values.items[item->in[0]],
                                  .is_fetch = true};
        vec_push(&c->captured->outputs, kept);
    }
}

static bool is_free(const struct tensor *kept)
{
    return !kept->buffer || buffer_is_sole(kept->buffer);
}

static bool is_elsewhere(const struct kept_value *k)
{
    return k->kept->data && k->kept->data != k->at->data;
}

/* Returns whether the kept memory may be overwritten where that is needed. */
static bool may_write(const struct segment_capture *captured)
{
    bool may = true;
    vec_each(k, &captured->inputs) {
        may &= !is_elsewhere(k) || (k->kept->buffer && is_free(k->kept));
    }
    vec_each(k, &captured->outputs) {
        may &= is_free(k->kept);
    }
    return may;
}

/* Moves inputs to where they were at the time of the capture. */
static int take_inputs(const struct capture_call *c)
{
    struct device *device = c->run->plan->options.device;
    int code = 0;
    if (c->captured->inputs.n) /* an input may be another region's copy to the device */
        device_step_await_copies(&c->run->on_device);
    for (size_t i = 0; i < c->captured->inputs.n && !code; i++) {
        struct kept_value *k = &c->captured->inputs.items[i];
        if (!k->kept->data)
            share_value(k->kept, k->at);
        if (!is_elsewhere(k))
            continue;
        code = queue_copy(device, QUEUE_COMPUTE, k->kept->data, k->at, &c->launch->err);
        tensor_release(k->at);
        tensor_share(k->at, k->kept);
    }
    return code;
}

/* Sets outputs to their kept memory: before a capture, fetches and copies of feeds; at a launch,
 * the values that the segment makes. */
static void exchange_values(const struct capture_call *c, bool captures)
{
    vec_each(k, &c->captured->outputs) {
        if (captures ? k->is_fetch || k->is_fed : !k->is_fed)
            tensor_share(k->at, k->kept);
    }
}

/* ---- capturing ---- */

/* An alias is made during the capture; other work of the kernel itself cannot be repeated. */
static bool only_aliases(const struct plan *plan, const struct item *item)
{
    bool only = item->n_out || !item->n_in;
    for (int i = 0; i < item->n_out && only; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        only = value->alias_of >= 0 || value->alias_input >= 0;
    }
    return only;
}

static int run_kernel(const struct capture_call *c, int at)
{
    struct region_call *call = call_of(c, at);
    call->host.is_captured = true;
    int result = call->run(&call->call);
    call->host.is_captured = false;
    return result;
}

/* Feeds are copied before the launch. The compute queue waits at the end for copies to the host. */
static int enqueue(void *context)
{
    const struct capture_call *c = context;
    const struct plan *plan = c->run->plan;
    bool fetches = false;
    for (int at = 0; at < c->segment->n; at++) {
        const struct item *item = call_of(c, at)->host.item;
        if (is_feed_copy(c, at))
            continue;
        fetches |= item->builtin == BUILTIN_FETCH;
        if (c->segment->items[at].looks &&
            region_gather(c->run, c->launch, c->it, c->segment->items[at].item))
            return c->launch->err.code;
        int result = run_kernel(c, at);
        if (result > 0)
            return result;
        if (result != KERNEL_ENQUEUED && (result != KERNEL_DONE || !only_aliases(plan, item)))
            return error_set(&c->launch->err, ERR_INTERNAL, "kernel '%s' cannot be captured",
                             item->kernel);
    }
    if (fetches)
        queue_follow(plan->options.device, QUEUE_COMPUTE, QUEUE_OUT);
    return 0;
}

/* Kernels count updates of variables when they enqueue them; a capture's own must not count. */
static void note_writes(const struct capture_call *c, bool is_over)
{
    for (size_t i = 0; i < c->segment->locks.n; i++) {
        struct variable *variable = c->segment->locks.items[i].variable;
        struct captured_write *write = &c->captured->writes[i];
        uint64_t before = write->updates;
        *write = (struct captured_write){variable->value.data, variable->updates};
        if (!is_over)
            continue;
        write->updates -= before;
        if (write->updates)
            variable->updates = before;
    }
}

static void drop_inputs(const struct capture_call *c)
{
    for (int at = 0; at < c->segment->n; at++)
        if (c->segment->items[at].gathers)
            iteration_drop_inputs(c->run->plan, c->it, c->segment->items[at].item);
}

/* If the capture fails, nothing of the step has run yet. drop_inputs drops tokens along with inputs
 * that are seen in another shape, so tokens are restored. */
static bool capture(const struct capture_call *c)
{
    const struct plan *plan = c->run->plan;
    struct device *device = plan->options.device;
    struct segment_capture *captured = c->captured;
    struct error err = ERROR_INIT;
    vec_each(k, &captured->outputs) { /* memory cannot be allocated during a capture */
        const struct value *value = k->value;
        struct pool *pool = plan->pools[!k->is_fetch];
        size_t bytes = (size_t)shape_bytes(&value->shape, value->type);
        if (!k->kept->buffer &&
            tensor_in_buffer(k->kept, value->type, &value->shape, pool_alloc(pool, bytes), &err))
            return false;
    }
    exchange_values(c, true);
    note_writes(c, false);
    int code = device->capture->capture(device, enqueue, (void *)c, &captured->graph, &err);
    note_writes(c, true);
    temporaries_free(&c->launch->temporaries);
    c->launch->err.code = 0;
    drop_inputs(c);
    bool is_made = !code;
    vec_each(k, &captured->outputs) { /* unless an output was made elsewhere, or others hold it */
        is_made &= k->at->data == k->kept->data;
        tensor_release(k->at);
        is_made &= is_free(k->kept);
    }
    captured->state = is_made ? CAPTURE_MADE : CAPTURE_REFUSED;
    for (size_t i = 0; i < captured->inputs.n && !is_made; i++)
        if (captured->inputs.items[i].is_token)
            share_value(captured->inputs.items[i].at, captured->inputs.items[i].kept);
    return is_made;
}

/* ---- running ---- */

static void forget_capture(struct run *run, struct segment_capture *captured)
{
    struct device *device = run->plan->options.device;
    if (captured->graph)
        device->capture->free(device, captured->graph);
    mem_free(captured->writes);
    vec_release(&captured->inputs);
    vec_release(&captured->outputs);
    *captured = (struct segment_capture){0};
}

static int launch_capture(const struct capture_call *c)
{
    struct device *device = c->run->plan->options.device;
    int result = 0;
    exchange_values(c, false);
    for (int at = 0; at < c->segment->n && result <= 0; at++)
        if (is_feed_copy(c, at))
            result = run_kernel(c, at);
    if (result > 0)
        return result;
    device_step_await_copies(&c->run->on_device);
    for (size_t i = 0; i < c->segment->locks.n; i++)
        if (c->captured->writes[i].updates)
            c->segment->locks.items[i].variable->updates += c->captured->writes[i].updates;
    return device->capture->launch(device, c->captured->graph, &c->launch->err);
}

/* Called with all locks held. Returns false if memory has moved, or is not free again yet. */
static bool try_launch(const struct capture_call *c, int *code)
{
    bool are_there = true; /* as in the first step, or when captured */
    for (size_t i = 0; i < c->segment->locks.n && are_there; i++) {
        const struct variable *variable = c->segment->locks.items[i].variable;
        are_there = variable->initialized &&
                    (!c->captured->graph || variable->value.data == c->captured->writes[i].data);
    }
    if (!are_there) {
        forget_capture(c->run, c->captured);
        return false;
    }
    find_kept(c);
    pthread_mutex_lock(&c->run->lock); /* others may read their inputs in the same place */
    bool may = may_write(c->captured);
    *code = may ? take_inputs(c) : 0;
    pthread_mutex_unlock(&c->run->lock);
    if (!may || (!*code && c->captured->state == CAPTURE_DUE && !capture(c)))
        return false;
    *code = *code ? *code : launch_capture(c);
    drop_inputs(c);
    for (int at = 0; at < c->segment->n - 1; at++)
        if (c->segment->items[at].drops)
            region_drop(c->run->plan, c->launch->activation, &c->segment->items[at]);
    return true;
}

bool captured_run(struct run *run, struct launch *launch, int *code)
{
    struct activation *a = launch->activation;
    int number = a->region->items[a->at].segment - 1;
    const struct plan_segment *segment = &run->plan->segments.items[number];
    struct segment_capture *captured = &run->captured[number];
    struct capture_call c = {run, launch, a->iteration, segment, captured};
    captured->by_item |=
        captured->state == CAPTURE_NEW || captured->state == CAPTURE_REFUSED || run->step->trace;
    *code = KERNEL_PENDING;
    if (captured->by_item)
        return false;
    if (!region_take_locks(a, &segment->locks))
        return true; /* put aside: another thread may use the run's data by now */
    *code = 0;
    captured->by_item = !try_launch(&c, code);
    region_give_locks(a);
    if (captured->by_item)
        return false;
    *code = *code ? *code : step_stopped(run->step, &launch->err);
    a->at += segment->n - (*code > 0);
    return true;
}

/* ---- of a whole run ---- */

void captured_open(struct run *run)
{
    run->captured = arena_array(&run->memory, run->plan->segments.n, sizeof *run->captured);
    run->kept_fetches =
        arena_array(&run->memory, (size_t)run->plan->n_fetches, sizeof *run->kept_fetches);
}

void captured_over(struct run *run, bool is_good)
{
    for (size_t i = 0; i < run->plan->segments.n; i++) {
        struct segment_capture *captured = &run->captured[i];
        if (captured->by_item && is_good && captured->state == CAPTURE_NEW)
            captured->state = CAPTURE_DUE;
        captured->by_item = false;
    }
}

void captured_forget(struct run *run)
{
    for (size_t i = 0; i < run->plan->segments.n; i++)
        forget_capture(run, &run->captured[i]);
}

void captured_release(struct run *run)
{
    captured_forget(run);
    for (int i = 0; i < run->plan->n_fetches; i++)
        tensor_release(&run->kept_fetches[i]);
}
