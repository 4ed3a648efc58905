/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop that is one item: condition and body in turns, on the thread that runs the item. All
 * iterations use the same memory, the scratch of the loop's item; values for the next iteration are
 * passed on, not copied.
 */
#include "base/memory.h"
#include "exec/run/dynamic.h"
#include "exec/run/item.h"

struct loop_run {
    struct frame *frame;
    struct launch launch;
    struct buffer arena;
    struct tensor *next;      /* by input */
    struct tensor carried[1]; /* by input, counted where they have buffers */
};

static struct loop_run *loop_run_new(struct run *run, const struct plan_frame *loop)
{
    size_t n = (size_t)loop->n_entered;
    pthread_mutex_lock(&run->lock);
    struct loop_run *l = arena_alloc(&run->memory, sizeof *l + 2 * n * sizeof *l->carried);
    l->next = l->carried + loop->n_entered;
    l->frame = frame_new(run, (int)(loop - run->plan->frames.items), NULL);
    iteration_new(run, l->frame, 0)->carried = l->carried;
    pthread_mutex_unlock(&run->lock);
    return l;
}

void loop_run_free(struct run *run, struct loop_run *l)
{
    if (!l)
        return;
    vec_release(&l->launch.temporaries);
    frame_drop(run, l->frame);
}

enum { CONDITION, BODY }; /* the frame's regions */

static int run_body_part(struct loop_run *l, int part, struct error *err)
{
    struct activation *a = &l->frame->oldest->activations[part];
    l->launch.activation = a;
    a->at = a->n_locked = 0;
    int code = region_run(a->run, &l->launch, NULL);
    if (code) {
        *err = l->launch.err;
        l->launch.err.code = 0;
    }
    return code;
}

/* Returns the buffer that holds the input's memory, even if the input is a view of a variable. */
static struct buffer *holder_of(const struct kernel_call *call, int i)
{
    const struct call_host *host = call_host(call);
    const struct plan *plan = host->plan;
    const struct value *root = &plan->values.items[plan_root_value(plan, host->item->in[i])];
    const struct tensor *in = call->in[i];
    bool is_variable = root->kind == VALUE_VARIABLE && root->variable->value.data == in->data;
    return is_variable && !in->buffer ? root->variable->value.buffer : in->buffer;
}

int while_run(struct kernel_call *call)
{
    struct run *run = call_host(call)->iteration->activations->run;
    const struct plan *plan = run->plan;
    const struct plan_frame *loop = call->state;
    struct loop_run **own = &run->idle[loop - plan->frames.items].loop, *l = *own;
    int code = 0;
    if (!l)
        l = *own = loop_run_new(run, loop);
    struct iteration *it = l->frame->oldest;
    it->is_open = it->is_open && call->scratch == l->arena.data;
    l->arena.data = call->scratch;
    it->arenas[0] = call->scratch ? &l->arena : NULL;
    for (int i = 0; i < loop->n_entered; i++) {
        struct tensor in = *call->in[i];
        in.buffer = holder_of(call, i);
        share_value(&l->carried[i], &in);
    }
    for (int64_t number = 0; !code; number++) {
        it->tag = while_iteration(call->iteration, loop->key, number);
        code = run_body_part(l, CONDITION, call->err);
        if (code || !*(const bool *)iteration_output(plan, it, loop->goes_on)->data)
            break;
        code = run_body_part(l, BODY, call->err);
        for (int i = 0; i < loop->n_entered && !code; i++) { /* two may be swapped */
            if (loop->next[i] < 0)
                continue;
            struct tensor *made = iteration_output(plan, it, loop->next[i]);
            l->next[i] = *made;
            made->buffer = NULL;
        }
        for (int i = 0; i < loop->n_entered && !code; i++)
            if (loop->next[i] >= 0) {
                tensor_release(&l->carried[i]);
                l->carried[i] = l->next[i];
            }
        iteration_clear(plan, it);
        code = code ? code : step_stopped(call->step, call->err);
    }
    iteration_clear(plan, it);
    for (int i = 0; i < loop->n_entered && !code; i++)
        if (loop->outputs[i] >= 0 && !kernel_share_output(call, loop->outputs[i], &l->carried[i]))
            code = call->err->code;
    for (int i = 0; i < loop->n_entered; i++)
        tensor_release(&l->carried[i]);
    return code;
}
