/* SPDX-License-Identifier: Apache-2.0
 *
 * Running regions. What an iteration writes to is made when its first region runs, and kept with it;
 * arenas come from the plan's pool and go back when the iteration is over.
 */
#include "base/memory.h"
#include "base/time.h"
#include "exec/run/dynamic.h"
#include "exec/step/trace.h"

/* ---- what is known of each position ---- */

static bool is_placed(const struct plan *plan, int v)
{
    return plan->values.items[v].offset >= 0;
}

/* A variable is what it is when it is read, whoever has written it. */
static bool is_of_region(const struct plan *plan, int v, int region)
{
    int from = plan->values.items[v].item;
    return from >= 0 && plan->values.items[v].kind != VALUE_VARIABLE &&
           plan->dynamic->items[from].region == region;
}

static bool is_constant(const struct value *value)
{
    return value->kind == VALUE_CONSTANT && value->item < 0;
}

static bool comes_from_elsewhere(const struct plan *plan, const struct item *item, int i, int region)
{
    bool is_ref = item->refs && item->refs[i];
    return !is_ref && !is_constant(&plan->values.items[item->in[i]]) &&
           !is_of_region(plan, item->in[i], region);
}

static void describe(struct plan *plan, struct region_item *at)
{
    const struct dynamic *d = plan->dynamic;
    const struct item *item = &plan->items.items[at->item];
    int index = d->items[at->item].region;
    for (int i = 0; i < item->n_in; i++)
        at->gathers |= comes_from_elsewhere(plan, item, i, index);
    at->leads = d->items[at->item].n_edges > 0;
}

/* By value: the position after which its region does not need it any more. */
static void find_last_uses(const struct plan *plan, const struct dynamic_frame *frame, int *last)
{
    const struct dynamic *d = plan->dynamic;
    for (size_t at = 0; at < frame->order.n; at++) {
        int id = frame->order.items[at].item;
        const struct item *item = &plan->items.items[id];
        for (int i = 0; i < item->n_out; i++)
            last[item->out[i]] = (int)at;
        for (int i = 0; i < item->n_in; i++)
            if (is_of_region(plan, item->in[i], d->items[id].region))
                last[item->in[i]] = (int)at;
    }
}

/* Calls `take` for each output that is not placed. */
static void for_each_counted(const struct plan *plan, const struct dynamic_frame *frame,
                             void (*take)(void *context, int value), void *context)
{
    for (size_t at = 0; at < frame->order.n; at++) {
        const struct item *item = &plan->items.items[frame->order.items[at].item];
        for (int i = 0; i < item->n_out; i++)
            if (!is_placed(plan, item->out[i]) && !plan->values.items[item->out[i]].is_ref)
                take(context, item->out[i]);
    }
}

struct dropping {
    struct dynamic *d;
    struct dynamic_frame *frame;
    const int *last;
};

static void count_drop(void *context, int value)
{
    const struct dropping *dropping = context;
    dropping->frame->order.items[dropping->last[value]].n_drops++;
}

static void add_drop(void *context, int value)
{
    const struct dropping *dropping = context;
    struct region_item *at = &dropping->frame->order.items[dropping->last[value]];
    dropping->d->drops[at->first_drop + at->n_drops++] = value;
}

static void find_drops(struct plan *plan, struct dynamic_frame *frame, int *last, int *n)
{
    struct dropping dropping = {plan->dynamic, frame, last};
    find_last_uses(plan, frame, last);
    for_each_counted(plan, frame, count_drop, &dropping);
    for (size_t at = 0; at < frame->order.n; at++) {
        frame->order.items[at].first_drop = *n;
        *n += frame->order.items[at].n_drops;
        frame->order.items[at].n_drops = 0;
    }
    for_each_counted(plan, frame, add_drop, &dropping);
}

static void mark_placed(struct plan *plan, struct dynamic_frame *frame)
{
    frame->is_placed = arena_alloc(&plan->memory, (size_t)frame->n_outputs + 1);
    for (size_t at = 0; at < frame->order.n; at++) {
        int id = frame->order.items[at].item;
        const struct item *item = &plan->items.items[id];
        for (int i = 0; i < item->n_out; i++)
            frame->is_placed[plan->dynamic->items[id].first_output + i] =
                is_placed(plan, item->out[i]);
    }
}

void region_prepare(struct plan *plan)
{
    struct dynamic *d = plan->dynamic;
    int *last = mem_array(plan->values.n + 1, sizeof *last), n_drops = 0;
    d->drops = arena_array(&plan->memory, plan->values.n + 1, sizeof *d->drops);
    for (size_t i = 0; i < d->frames.n; i++) {
        find_drops(plan, &d->frames.items[i], last, &n_drops);
        mark_placed(plan, &d->frames.items[i]);
    }
    for (size_t i = 0; i < d->regions.n; i++) {
        const struct region *region = &d->regions.items[i];
        struct region_item *first = d->frames.items[region->frame].order.items + region->first;
        bool is_cheap = true;
        for (int k = region->n; k-- > 0;) {
            describe(plan, &first[k]);
            first[k].rest_is_cheap = is_cheap;
            is_cheap = is_cheap && d->items[first[k].item].is_cheap;
        }
    }
    mem_free(last);
}

/* ---- an iteration's memory ---- */

static struct pool *pool_of(const struct plan *plan, bool on_device)
{
    bool is_host = plan->options.device->is_host;
    return on_device || is_host ? plan->dynamic->pool : plan->dynamic->host_pool;
}

static int take_arenas(const struct plan *plan, struct iteration *it, struct error *err)
{
    for (int i = 0; i < 2; i++) {
        size_t bytes = it->frame->def->arena_bytes[i];
        if (bytes && !it->arenas[i])
            it->arenas[i] = pool_alloc(pool_of(plan, i), bytes);
        if (bytes && !it->arenas[i])
            return error_set(err, ERR_OS, "no memory for the plan's %zu bytes%s", bytes,
                             mem_limit_text());
    }
    return 0;
}

/* An arena of no bytes is none. */
static void *at_offset(const struct iteration *it, bool on_device, int64_t offset)
{
    const struct buffer *arena = it->arenas[on_device];
    return arena ? (char *)arena->data + offset : NULL;
}

static void place_outputs(const struct plan *plan, struct iteration *it, int id)
{
    const struct item *item = &plan->items.items[id];
    struct tensor *out = it->outputs + plan->dynamic->items[id].first_output;
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        if (value->offset >= 0)
            out[i] = (struct tensor){.type = value->type,
                                     .shape = value->shape,
                                     .layout = value->layout,
                                     .data = at_offset(it, value->on_device, value->offset)};
    }
}

static struct tensor *input_of(const struct plan *plan, struct iteration *it, int id, int i)
{
    const struct dynamic *d = plan->dynamic;
    const struct item *item = &plan->items.items[id];
    struct value *value = &plan->values.items[item->in[i]];
    if (item->refs && item->refs[i])
        return &value->variable->value;
    if (is_constant(value))
        return &value->constant;
    if (!is_of_region(plan, item->in[i], d->items[id].region))
        return &it->inputs[d->items[id].first_input + i].tensor;
    int slot = item->in[i] - plan->items.items[value->item].out[0];
    return &it->outputs[d->items[value->item].first_output + slot];
}

static void make_call(struct plan *plan, struct iteration *it, int id, struct region_call *c)
{
    const struct dynamic *d = plan->dynamic;
    const struct item *item = &plan->items.items[id];
    const struct dynamic_item *di = &d->items[id];
    struct tensor **in = it->pointers + di->first_input + di->first_output;
    struct tensor **out = in + item->n_in;
    for (int i = 0; i < item->n_in; i++)
        in[i] = input_of(plan, it, id, i);
    for (int i = 0; i < item->n_out; i++)
        out[i] = &it->outputs[di->first_output + i];
    c->host = (struct call_host){.plan = plan,
                                 .item = item,
                                 .out_refs = it->out_refs + di->first_output,
                                 .pool = d->pool,
                                 .host_pool = d->host_pool,
                                 .copies_reads = !d->keeps_reads,
                                 .done = run_async_done};
    c->call = (struct kernel_call){.node = item->node,
                                   .state = item->state,
                                   .n_in = item->n_in,
                                   .n_out = item->n_out,
                                   .in = in,
                                   .out = out,
                                   .refs = item->refs,
                                   .device = plan->options.device,
                                   .threads = plan_team(plan),
                                   .executor = &c->host};
}

static void make_calls(struct plan *plan, struct iteration *it)
{
    const struct dynamic_frame *def = it->frame->def;
    it->calls = mem_array(def->order.n + 1, sizeof *it->calls);
    for (size_t at = 0; at < def->order.n; at++)
        make_call(plan, it, def->order.items[at].item, &it->calls[at]);
}

/* What depends on where the arenas are. */
static void place(const struct plan *plan, struct iteration *it)
{
    const struct dynamic_frame *def = it->frame->def;
    bool on_device = !plan->options.device->is_host;
    for (size_t at = 0; at < def->order.n; at++) {
        int id = def->order.items[at].item;
        const struct item *item = &plan->items.items[id];
        place_outputs(plan, it, id);
        if (item->scratch_bytes)
            it->calls[at].call.scratch = at_offset(it, on_device, item->scratch_offset);
    }
    for (int i = 0; i < 2; i++)
        it->placed[i] = it->arenas[i] ? it->arenas[i]->data : NULL;
}

static bool has_moved(const struct iteration *it)
{
    for (int i = 0; i < 2; i++)
        if (it->placed[i] != (it->arenas[i] ? it->arenas[i]->data : NULL))
            return true;
    return false;
}

/* Before a region of the iteration runs. */
static int open_iteration(struct run *run, struct iteration *it, struct error *err)
{
    int code = 0;
    pthread_mutex_lock(&run->lock);
    if (!it->is_open && !(code = take_arenas(run->plan, it, err))) {
        bool is_new = !it->calls;
        if (is_new)
            make_calls(run->plan, it);
        if (is_new || has_moved(it))
            place(run->plan, it);
        it->is_open = true;
    }
    pthread_mutex_unlock(&run->lock);
    return code;
}

void region_close(struct iteration *it)
{
    for (int i = 0; i < 2; i++) {
        if (it->arenas[i])
            it->arenas[i]->free(it->arenas[i]);
        it->arenas[i] = NULL;
    }
    it->is_open = false;
}

void region_free(struct iteration *it)
{
    region_close(it);
    mem_free(it->calls);
}

/* ---- one item ---- */

static int gather(struct run *run, struct launch *launch, const struct region_item *at,
                  struct iteration *it)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[at->item];
    struct token *inputs = it->inputs + plan->dynamic->items[at->item].first_input;
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = &plan->values.items[item->in[i]];
        bool is_ref = item->refs && item->refs[i];
        if (value->kind == VALUE_FEED) {
            inputs[i].tensor = run->feeds[value->feed];
            inputs[i].tensor.buffer = NULL;
        } else if (value->kind == VALUE_VARIABLE && !is_ref &&
                   kernel_gather_variable(run, item, i, &inputs[i], &launch->err)) {
            return item_fail(item, &launch->err);
        }
    }
    return 0;
}

static void let_go_of_inputs(const struct plan *plan, const struct region_item *at,
                             struct iteration *it)
{
    const struct item *item = &plan->items.items[at->item];
    struct token *inputs = it->inputs + plan->dynamic->items[at->item].first_input;
    for (int i = 0; i < item->n_in; i++) {
        if (inputs[i].tensor.buffer)
            tensor_release(&inputs[i].tensor);
        inputs[i].is_live = false;
    }
}

static int run_item(struct run *run, struct launch *launch, const struct region_item *at,
                    struct region_call *c)
{
    const struct item *item = c->host.item;
    struct iteration *it = launch->activation->iteration;
    if (item->n_checked && item_check_variables(item, &launch->err))
        return launch->err.code;
    if (at->gathers && gather(run, launch, at, it))
        return launch->err.code;
    c->host.fetches = run->fetches;
    c->host.temporaries = (void *)&launch->temporaries;
    c->call.step = run->step;
    c->call.iteration = it->tag;
    c->call.err = &launch->err;
    int64_t start = run->step->trace ? time_now_ns() : 0;
    int result = item->code->run(&c->call);
    item_trace(item, run->step, start);
    if (result > 0)
        return item_fail(item, &launch->err);
    return run->plan->options.check_numerics
               ? item_check_numerics(run->plan, item, &c->call, &launch->err)
               : 0;
}

/* An output for which others wait who have not been told stays until they have. */
static void drop(const struct plan *plan, const struct activation *a, const struct region *region,
                 const struct region_item *at)
{
    const struct dynamic *d = plan->dynamic;
    for (int i = 0; i < at->n_drops; i++) {
        int v = d->drops[at->first_drop + i], from = plan->values.items[v].item;
        int position = d->items[from].position;
        bool waits = d->items[from].n_edges && position - region->first >= a->told;
        int slot = v - plan->items.items[from].out[0];
        if (!waits)
            tensor_release(&a->iteration->outputs[d->items[from].first_output + slot]);
    }
}

static void free_temporaries(struct launch *launch)
{
    for (size_t i = 0; i < launch->temporaries.n; i++)
        mem_free(launch->temporaries.items[i]);
    launch->temporaries.n = 0;
}

/* ---- a region ---- */

int region_run(struct run *run, struct launch *launch,
               void (*tell)(void *context, struct run *run, struct activation *a), void *context)
{
    struct activation *a = launch->activation;
    const struct dynamic *d = run->plan->dynamic;
    const struct region *region = &d->regions.items[d->items[a->item].region];
    const struct region_item *first = d->frames.items[region->frame].order.items + region->first;
    struct iteration *it = a->iteration;
    if (!a->at && open_iteration(run, it, &launch->err))
        return launch->err.code;
    while (a->at < region->n) {
        const struct region_item *at = &first[a->at];
        const struct dynamic_item *di = &d->items[at->item];
        if (di->n_holds && !kernel_take_holds(a, di))
            return KERNEL_PENDING;
        int code = run_item(run, launch, at, &it->calls[region->first + a->at]);
        if (at->gathers)
            let_go_of_inputs(run->plan, at, it);
        if (di->n_holds)
            kernel_give_holds(a, di);
        if (launch->temporaries.n)
            free_temporaries(launch);
        if (!code)
            code = step_stopped(run->step, &launch->err);
        if (code)
            return code;
        a->at++;
        if (at->leads && !at->rest_is_cheap)
            tell(context, run, a);
        if (at->n_drops)
            drop(run->plan, a, region, at);
    }
    return 0;
}

void region_release(struct run *run, struct activation *a)
{
    const struct plan *plan = run->plan;
    const struct dynamic *d = plan->dynamic;
    const struct region *region = &d->regions.items[d->items[a->item].region];
    const struct dynamic_frame *frame = &d->frames.items[region->frame];
    for (int at = region->first; at < region->first + region->n; at++) {
        const struct region_item *step = &frame->order.items[at];
        const struct item *item = &plan->items.items[step->item];
        int first = d->items[step->item].first_output;
        if (a->is_dead && step->gathers)
            let_go_of_inputs(plan, step, a->iteration);
        for (int i = 0; step->leads && i < item->n_out; i++)
            if (!frame->is_placed[first + i])
                tensor_release(&a->iteration->outputs[first + i]);
    }
}
