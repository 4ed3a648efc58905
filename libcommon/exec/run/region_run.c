/* SPDX-License-Identifier: Apache-2.0
 *
 * Running regions.
 */
#include "exec/run/builtin.h"
#include "exec/run/dynamic.h"

/* ---- one item ---- */

/* What the region has made, in another shape. */
static void see(const struct plan *plan, struct iteration *it, int v, struct tensor *input)
{
    int from = plan->values.items[v].item;
    int slot = v - plan->items.items[from].out[0];
    const struct tensor *made = &it->outputs[plan->dynamic->items[from].first_output + slot];
    if (made->buffer)
        tensor_share(input, made);
    else
        *input = *made;
}

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
        if (!item->seen || !item->seen[i])
            continue;
        if (region_has_made(plan, item->in[i], plan->dynamic->items[at->item].region))
            see(plan, it, item->in[i], &inputs[i].tensor);
        inputs[i].tensor.shape = *item->seen[i];
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
    if (item_begin(item, &run->on_device, &launch->err))
        return launch->err.code;
    if (at->looks && gather(run, launch, at, it))
        return launch->err.code;
    kernel_bind(run, launch, it, &c->host, &c->call);
    struct item_start start = item_start(&c->call, run->step);
    return item_over(run->plan, item, &c->call, start, item_kernel(item)(&c->call));
}

static int run_plain(struct run *run, struct launch *launch, struct iteration *it, int position)
{
    struct region_call *c = &it->calls[position];
    kernel_bind(run, launch, it, &c->host, &c->call);
    int result = it->plain[position].run(&c->call);
    if (result <= 0)
        return 0;
    return item_over(run->plan, c->host.item, &c->call, (struct item_start){0}, result);
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

/* ---- a region ---- */

/* One with something around its kernel. KERNEL_PENDING: it was put aside. */
static int run_whole(struct run *run, struct launch *launch, const struct region_item *at,
                     struct region_call *c)
{
    struct activation *a = launch->activation;
    const struct dynamic_item *di = &run->plan->dynamic->items[at->item];
    if (at->locks && !kernel_take_locks(a, di))
        return KERNEL_PENDING;
    int code = run_item(run, launch, at, c);
    if (at->gathers)
        let_go_of_inputs(run->plan, at, a->iteration);
    if (at->locks)
        kernel_give_locks(a, di);
    return code;
}

static void tell_others(struct run *run, struct activation *a, const struct region *region,
                        const struct region_item *at, const struct region_calls *calls)
{
    bool tells = at->leads && !at->rest_is_cheap;
    if (tells)
        calls->tell(calls->context, run, a);
    if (at->n_drops) /* before: who is told may be the one holder then */
        drop(run->plan, a, region, at);
    if (tells)
        calls->give(calls->context, run);
}

int region_run(struct run *run, struct launch *launch, const struct region_calls *calls)
{
    struct activation *a = launch->activation;
    const struct region *region = a->region;
    const struct region_item *first = region->items;
    struct iteration *it = a->iteration;
    if (!a->at && region_open(run, it, &launch->err))
        return launch->err.code;
    while (a->at < region->n) {
        const struct region_item *at = &first[a->at];
        struct region_call *c = &it->calls[region->first + a->at];
        bool is_plain = it->plain[region->first + a->at].run && !run->step->trace;
        if (!is_plain && at->is_relieved)
            calls->relieve(calls->context, run, launch);
        int code = is_plain ? run_plain(run, launch, it, region->first + a->at)
                            : run_whole(run, launch, at, c);
        if (code == KERNEL_PENDING)
            return code;
        temporaries_free(&launch->temporaries);
        if (!code)
            code = step_stopped(run->step, &launch->err);
        if (code)
            return code;
        a->at++;
        if (at->leads || at->n_drops)
            tell_others(run, a, region, at, calls);
    }
    return 0;
}

void region_give_locks(const struct run *run, struct activation *a)
{
    int item = a->region->items[a->at].item;
    kernel_give_locks(a, &run->plan->dynamic->items[item]);
}

void region_release(struct run *run, struct activation *a)
{
    const struct plan *plan = run->plan;
    const struct dynamic *d = plan->dynamic;
    const struct region *region = a->region;
    const struct dynamic_frame *frame = &d->frames.items[region->frame];
    for (int at = 0; at < region->n; at++) {
        const struct region_item *step = &region->items[at];
        if (!step->leads && !(a->is_dead && step->gathers))
            continue;
        const struct item *item = &plan->items.items[step->item];
        int first = d->items[step->item].first_output;
        if (a->is_dead && step->gathers)
            let_go_of_inputs(plan, step, a->iteration);
        for (int i = 0; step->leads && i < item->n_out; i++)
            if (!frame->is_placed[first + i])
                tensor_release(&a->iteration->outputs[first + i]);
    }
}
