/* SPDX-License-Identifier: Apache-2.0
 *
 * Running regions, of which a whole plan is one.
 */
#include "exec/run/builtin.h"
#include "exec/run/dynamic.h"

/* ---- one item ---- */

static int run_item(struct run *run, struct launch *launch, const struct region_item *at,
                    struct region_call *c)
{
    const struct item *item = c->host.item;
    if (at->looks && region_gather(run, launch, launch->activation->iteration, at->item))
        return launch->err.code;
    if (item_begin(item, &run->on_device, &launch->err))
        return launch->err.code;
    struct item_start start = item_start(&c->call, run->step);
    return item_over(run->plan, item, &c->call, start, item_kernel(item)(&c->call));
}

/* One that may be dead. */
static int run_of_branch(struct run *run, struct launch *launch, const struct region_item *at,
                         struct region_call *c)
{
    const struct item *item = c->host.item;
    struct iteration *it = launch->activation->iteration;
    int code = 0;
    if (!branch_begin(run, it, c))
        return item->builtin == BUILTIN_FETCH ? item_fail_dead(&launch->err) : 0;
    if (item->builtin != BUILTIN_CONSTANT) /* which is there */
        code = run_item(run, launch, at, c);
    if (!code)
        branch_end(run, it, c);
    return code;
}

/* In a whole plan, gives back the locks whose last item it is. */
static void give_locks(const struct run *run, struct activation *a, const struct item *item)
{
    if (!run->plan->is_whole) {
        kernel_give_locks(a);
        return;
    }
    for (size_t i = 0; i < item->gives.n; i++)
        variable_unlock(item->gives.items[i].variable, item->gives.items[i].write);
    a->n_locked = 0;
}

/* One with something around its kernel. KERNEL_PENDING: it was put aside. */
static int run_with_more(struct run *run, struct launch *launch, const struct region_item *at,
                         struct region_call *c)
{
    struct activation *a = launch->activation;
    const struct item *item = c->host.item;
    if (at->locks && !kernel_take_locks(a, &item->locks))
        return KERNEL_PENDING;
    int code = item->flow == FLOW_ALWAYS ? run_item(run, launch, at, c)
                                         : run_of_branch(run, launch, at, c);
    if (at->gathers)
        iteration_drop_inputs(run->plan, a->iteration, at->item);
    if (at->locks)
        give_locks(run, a, item);
    temporaries_free(&launch->temporaries);
    return code ? code : step_stopped(run->step, &launch->err);
}

/* An output for which others wait who have not been told stays until they have. */
void region_drop(const struct plan *plan, const struct activation *a, const struct region_item *at)
{
    for (int v = at->first_drop; v >= 0; v = plan->next_drop[v]) {
        const struct item *from = &plan->items.items[plan->values.items[v].item];
        bool waits = from->n_edges && from->position - a->region->first >= a->told;
        if (!waits)
            tensor_release(iteration_output(plan, a->iteration, v));
    }
}

/* ---- a region ---- */

/* The values that an order is told are often the same as before, and the same for all of it. */
void region_bind(struct run *run, struct launch *launch, int at)
{
    const struct region *region = launch->activation->region;
    struct iteration *it = launch->activation->iteration;
    int end = region->first + region->n;
    at += region->first;
    if (it->frame->def->has_order) {
        if (it->bound_step == run->step && it->bound_tag == it->tag)
            return;
        it->bound_step = run->step;
        it->bound_tag = it->tag;
        at = 0;
        end = (int)it->frame->def->order.n;
    }
    for (; at < end; at++)
        kernel_bind(run, launch, it, &it->calls[at].host, &it->calls[at].call);
}

/* Plain items one after the other, up to one that others wait for: long plans of short kernels run
 * as fast as memory brings what is looked at here. */
static int run_plain(struct run *run, struct launch *launch, const struct region *region,
                     const struct plain_call *plain)
{
    struct activation *a = launch->activation;
    struct step *step = run->step;
    int at = a->at, code = 0;
    for (bool goes_on = true; goes_on;) {
        int result = plain[at].run(plain[at].call);
        if (result > 0)
            code = item_over(run->plan, call_host(plain[at].call)->item, plain[at].call,
                             (struct item_start){0}, result);
        temporaries_free(&launch->temporaries);
        if (code || (code = step_stopped(step, &launch->err)))
            break;
        goes_on =
            ++at < region->n && plain[at].run && !(region->leads && region->items[at - 1].leads);
    }
    a->at = at;
    return code;
}

/* Runs the next captured or plain items; else one item. */
static int run_next(struct run *run, struct launch *launch, const struct region_calls *calls)
{
    struct activation *a = launch->activation;
    struct iteration *it = a->iteration;
    const struct region_item *at = &a->region->items[a->at];
    int first = a->region->first, code;
    if (at->segment && captured_run(run, launch, &code))
        return code;
    if (it->plain[first + a->at].run && !run->step->trace)
        return run_plain(run, launch, a->region, it->plain + first);
    if (at->is_relieved)
        calls->relieve(calls->context, run, launch);
    code = run_with_more(run, launch, at, &it->calls[first + a->at]);
    if (!code) /* else it is put aside, perhaps, and another thread's by now */
        a->at++;
    return code;
}

static void tell_others(struct run *run, struct activation *a, const struct region_item *at,
                        const struct region_calls *calls)
{
    bool tells = region_tells(at);
    if (tells)
        calls->tell(calls->context, run, a);
    if (at->drops) /* before: who is told may be the one holder then */
        region_drop(run->plan, a, at);
    if (tells)
        calls->give(calls->context, run);
}

/* Gives back the locks of a whole plan that were taken and not yet given. */
static void abandon_locks(const struct run *run, const struct activation *a)
{
    const struct plan *plan = run->plan;
    for (int at = 0; at <= a->at; at++) {
        vec_each(lock, &plan->items.items[plan->order[at]].locks) {
            if (lock->until > a->at)
                variable_unlock(lock->variable, lock->write);
        }
    }
}

int region_run(struct run *run, struct launch *launch, const struct region_calls *calls)
{
    struct activation *a = launch->activation;
    const struct region *region = a->region;
    struct iteration *it = a->iteration;
    if (!a->at && region_open(run, it, &launch->err))
        return launch->err.code;
    region_bind(run, launch, a->at);
    while (a->at < region->n) {
        int code = run_next(run, launch, calls);
        if (code > 0 && run->plan->is_whole && region->frame == FRAME_ROOT)
            abandon_locks(run, a);
        if (code)
            return code;
        const struct region_item *at = &region->items[a->at - 1];
        if (at->leads || at->drops)
            tell_others(run, a, at, calls);
    }
    return 0;
}

void region_release(struct run *run, struct activation *a)
{
    const struct plan *plan = run->plan;
    const struct region *region = a->region;
    for (int at = 0; at < region->n; at++) {
        const struct region_item *step = &region->items[at];
        if (a->is_dead && step->gathers)
            iteration_drop_inputs(plan, a->iteration, step->item);
        if (step->leads)
            iteration_drop_outputs(plan, a->iteration, step->item);
    }
}
