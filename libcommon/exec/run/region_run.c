/* SPDX-License-Identifier: Apache-2.0
 *
 * Running regions; a whole plan is one, and so is an async op.
 */

#include "base/memory.h"
#include "exec/run/dynamic.h"
#include "exec/run/item.h"
#include "graph/infer.h"

/* ---- locks ---- */

bool region_take_locks(struct activation *a, const variable_lock_vec *locks)
{
    a->locks = locks;
    while (a->n_locked < (int)locks->n) {
        const struct variable_lock *lock = &locks->items[a->n_locked];
        a->waiter.resume = run_resume;
        if ((a->run->plan->is_whole || !a->region) && !a->run->done)
            variable_lock_wait(lock->variable, lock->write);
        else if (!variable_lock(lock->variable, lock->write, &a->waiter))
            return false;
        a->n_locked++;
    }
    return true;
}

void region_give_locks(struct activation *a)
{
    while (a->n_locked > 0) {
        const struct variable_lock *lock = &a->locks->items[--a->n_locked];
        variable_unlock(lock->variable, lock->write);
    }
}

/* ---- inputs ---- */

/* Shares the variable's memory; if it is written in place, an asynchronous kernel gets a copy,
 * since it may take long without computing. */
static int gather_variable(struct run *run, const struct item *item, int i, struct tensor *input,
                           struct error *err)
{
    const struct plan *plan = run->plan;
    struct device *device = plan->options.device;
    const struct tensor *value = &plan->values.items[item->in[i]].variable->value;
    if (value->buffer && device->is_host) {
        tensor_share(input, value);
        return 0;
    }
    *input = *value;
    input->buffer = NULL;
    if (!(item->flags & KERNEL_ASYNC) || !value->data)
        return 0;
    struct pool *pool = plan->pools[!device->is_host];
    struct buffer *buffer = value_alloc(plan, item->in[i], pool, value->type, tensor_bytes(value));
    return value_copy(device, buffer, value, input, err);
}

static const struct item *maker_of(const struct plan *plan, int v)
{
    return &plan->items.items[plan->values.items[v].item];
}

/* Finds the shape in which a view that does not run shows a value; its other inputs are constants.
 */
static int find_view(const struct plan *plan, int v, const struct tensor *value,
                     struct shape *shape, struct error *err)
{
    const struct item *view = maker_of(plan, v);
    struct tensor viewed = {.type = value->type, .shape = value->shape};
    if (item_sees(view, 0) >= 0 && find_view(plan, view->seen[0], value, &viewed.shape, err))
        return err->code;
    struct tensor **in = mem_array((size_t)view->n_in, sizeof *in);
    in[0] = &viewed;
    for (int i = 1; i < view->n_in; i++)
        in[i] = &plan->values.items[view->in[i]].constant;
    const struct infer_inputs inputs = {in, view->n_in, 1, view->n_in};
    int code = infer_from_inputs(view->node, &inputs, shape, err);
    mem_free(in);
    return code ? item_fail(view, err) : 0;
}

/* A variable's value, and what aliases it, may have another shape than was planned: then the view
 * of it must still have its own. */
static int check_view(const struct plan *plan, int source, int v, const struct tensor *value,
                      struct error *err)
{
    const struct shape *planned = &plan->values.items[v].shape;
    struct shape shape;
    if (shape_equal(&plan->values.items[source].shape, &value->shape))
        return 0;
    if (find_view(plan, v, value, &shape, err))
        return err->code;
    if (shape_equal(planned, &shape))
        return 0;
    error_set(err, ERR_DATA, "output 0 was planned as %s, but is %s", shape_text(planned),
              shape_text(&shape));
    return item_fail(maker_of(plan, v), err);
}

int region_gather(struct run *run, struct launch *launch, struct iteration *it, int id)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[id];
    struct token *inputs = it->inputs + item->first_input;
    for (int i = 0; i < item->n_in; i++) {
        int v = item->in[i], seen = item_sees(item, i);
        bool is_ref = item->refs && item->refs[i];
        if (it->frame->def->has_order) {
            const struct tensor *value = seen < 0 ? NULL : iteration_value(run, it, v);
            if (value && check_view(plan, v, seen, value, &launch->err))
                return launch->err.code;
            if (value)
                inputs[i].tensor = (struct tensor){.type = value->type,
                                                   .shape = plan->values.items[seen].shape,
                                                   .data = value->data};
            continue;
        }
        if (plan->values.items[v].kind == VALUE_VARIABLE && !is_ref &&
            gather_variable(run, item, i, &inputs[i].tensor, &launch->err))
            return item_fail(item, &launch->err);
        if (seen < 0)
            continue;
        if (region_has_made(plan, v, item->region))
            share_value(&inputs[i].tensor, iteration_output(plan, it, v));
        if (check_view(plan, v, seen, &inputs[i].tensor, &launch->err))
            return launch->err.code;
        inputs[i].tensor.shape = plan->values.items[seen].shape;
    }
    return 0;
}

/* Points to inputs that are alive, and to NULL instead of dead ones. False: all are dead. */
static bool bind_alive(struct run *run, struct iteration *it, const struct region_call *c)
{
    const struct item *item = c->host.item;
    int id = (int)(item - run->plan->items.items);
    struct tensor **in = it->pointers + (c->call.in - it->pointers);
    bool any = false;
    for (int i = 0; i < item->n_in; i++) {
        const struct token *token = &it->inputs[item->first_input + i];
        struct tensor *at = iteration_input(run, it, id, i);
        const struct value *value = &run->plan->values.items[item->in[i]];
        bool is_read = value->kind == VALUE_VARIABLE && value->item < 0;
        bool dead = it->frame->def->has_order ? run->dead[item->in[i]]
                                              : at == &token->tensor && !token->is_live && !is_read;
        in[i] = dead ? NULL : at;
        any |= !dead;
    }
    return any;
}

/* ---- dead items of a fixed order ---- */

/* Each item that may be dead marks itself and its outputs when its turn comes, so no mark is left
 * from the step before. */
static bool *dead_item(const struct run *run, const struct item *item)
{
    return run->dead + run->plan->values.n + (item - run->plan->items.items);
}

/* Returns false if the item is dead. */
static bool begin_branch(struct run *run, struct iteration *it, const struct region_call *c)
{
    const struct item *item = c->host.item;
    bool dead = item->flow == FLOW_MERGE && !bind_alive(run, it, c);
    for (int i = 0; i < item->n_in && item->flow != FLOW_MERGE && !dead; i++)
        dead = run->dead[item->in[i]];
    for (int i = 0; i < item->n_controls && item->flow != FLOW_MERGE && !dead; i++)
        dead = *dead_item(run, &run->plan->items.items[item->controls[i]]);
    *dead_item(run, item) = dead;
    for (int i = 0; i < item->n_out; i++)
        run->dead[item->out[i]] = dead;
    return !dead;
}

/* ---- one item ---- */

/* Ends an item whose kernel has ended with `code`. */
static int end_item(struct run *run, struct launch *launch, const struct region_item *at, int code)
{
    struct activation *a = launch->activation;
    if (at->gathers)
        iteration_drop_inputs(run->plan, a->iteration, at->item);
    if (at->locks && run->plan->is_whole) { /* those of which this is the last item */
        vec_each(lock, &run->plan->items.items[at->item].gives) {
            variable_unlock(lock->variable, lock->write);
        }
        a->n_locked = 0;
    } else if (at->locks) {
        region_give_locks(a);
    }
    temporaries_free(&launch->temporaries);
    return code ? code : step_stopped(run->step, &launch->err);
}

/* Runs an item that is more than its kernel. KERNEL_PENDING: it was put aside; or its kernel
 * continues by itself, or may be over by now, and the step with it. */
static int run_item(struct run *run, struct launch *launch, const struct region_item *at,
                    struct region_call *c)
{
    struct activation *a = launch->activation;
    struct iteration *it = a->iteration;
    const struct item *item = c->host.item;
    if (at->locks && !region_take_locks(a, &item->locks))
        return KERNEL_PENDING;
    if (item->flow != FLOW_ALWAYS && !begin_branch(run, it, c))
        return end_item(run, launch, at,
                        item->builtin == BUILTIN_FETCH ? item_fail_dead(&launch->err) : 0);
    if ((item->is_prepared && item_begin(&c->call)) ||
        (at->looks && region_gather(run, launch, it, at->item)))
        return end_item(run, launch, at, launch->err.code);
    struct item_start start = {0};
    if (run->step->trace)
        start = item_start(&c->call);
    if (a->region->is_point) {
        bind_alive(run, it, c);
        if (item->flags & KERNEL_ASYNC)
            region_give_locks(a);
        launch->start = start;
    }
    int result = c->run(&c->call);
    if (result == KERNEL_PENDING)
        return result;
    int code = item_over(&c->call, start, result);
    if (!code && item->flow == FLOW_SWITCH) {
        int left = item->out[!*(const bool *)c->call.in[1]->data];
        run->dead[left] = true;
        iteration_output(run->plan, it, left)->data = NULL; /* nobody reads it */
    }
    return end_item(run, launch, at, code);
}

int region_end_async(struct run *run, struct launch *launch)
{
    const struct activation *a = launch->activation;
    const struct region_call *c = &a->iteration->calls[a->region->first];
    int code = item_over(&c->call, launch->start, launch->result);
    return end_item(run, launch, a->region->items, code);
}

/* Keeps outputs whose consumers in other regions have not been told yet. */
void region_drop(const struct plan *plan, const struct activation *a, const struct region_item *at)
{
    for (int v = at->first_drop; v >= 0; v = plan->next_drop[v]) {
        const struct item *from = &plan->items.items[plan->values.items[v].item];
        bool waits = from->edges.n && from->position - a->region->first >= a->told;
        if (!waits)
            tensor_release(iteration_output(plan, a->iteration, v));
    }
}

/* ---- a region ---- */

/* The members that depend on the step are often as before, and equal for all calls of an order. */
static void bind_calls(struct run *run, struct launch *launch, int at)
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
    for (; at < end; at++) {
        it->calls[at].host.temporaries = &launch->temporaries;
        it->calls[at].call.step = run->step;
        it->calls[at].call.iteration = it->tag;
        it->calls[at].call.err = &launch->err;
    }
}

/* Runs consecutive plain items, up to one that others wait for: long plans of short kernels run as
 * fast as memory delivers the data that are read here. */
static int run_plain(struct run *run, struct launch *launch, const struct region *region,
                     const struct plain_call *plain)
{
    struct activation *a = launch->activation;
    struct step *step = run->step;
    int at = a->at, code = 0;
    for (bool goes_on = true; goes_on;) {
        int result = plain[at].run(plain[at].call);
        if (result > 0)
            code = item_over(plain[at].call, (struct item_start){0}, result);
        temporaries_free(&launch->temporaries);
        if (code || (code = step_stopped(step, &launch->err)))
            break;
        goes_on =
            ++at < region->n && plain[at].run && !(region->leads && region->items[at - 1].leads);
    }
    a->at = at;
    return code;
}

/* Releases locks of a whole plan that were taken and not yet released. */
static void abandon_locks(const struct run *run, const struct activation *a)
{
    const struct plan *plan = run->plan;
    for (int at = 0; at <= a->at; at++) {
        vec_each(lock, &plan->items.items[plan->order[at]].locks) {
            if (lock->to > a->at)
                variable_unlock(lock->variable, lock->write);
        }
    }
}

/* Runs the next captured or plain items; else one item. */
static int run_next(struct run *run, struct launch *launch, struct activation **mine)
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
        run_reclaim(run, launch, mine);
    code = run_item(run, launch, at, &it->calls[first + a->at]);
    if (!code) /* else another thread may have it by now */
        a->at++;
    return code;
}

int region_run(struct run *run, struct launch *launch, struct activation **mine)
{
    struct activation *a = launch->activation;
    const struct region *region = a->region;
    if (!a->at && region_open(run, a->iteration, &launch->err))
        return launch->err.code;
    bind_calls(run, launch, a->at);
    while (a->at < region->n) {
        int code = run_next(run, launch, mine);
        if (code > 0 && run->plan->is_whole && region->frame == FRAME_ROOT)
            abandon_locks(run, a);
        if (code)
            return code;
        const struct region_item *at = &region->items[a->at - 1];
        bool tells = region_tells(at);
        if (tells)
            run_tell(run, a, mine);
        if (at->drops) /* first, so that a consumer may be the sole holder */
            region_drop(run->plan, a, at);
        if (tells)
            run_give(run, mine);
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
