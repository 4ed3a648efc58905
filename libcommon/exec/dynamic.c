/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the items of a dynamic plan. Whoever finishes an item runs what became ready by it: cheap
 * items at once, one expensive item next; the other expensive ones go to the queue, from which the
 * thread that called and the process's helpers take.
 */
#include "exec/dynamic.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/trace.h"
#include "exec/workers.h"

static void execute(struct run *run, struct activation *a);

/* ---- variables ---- */

static void push(struct run *run, struct activation *a)
{
    a->next = run->queue;
    run->queue = a;
    pthread_cond_signal(&run->changed);
}

static void resume(struct variable_waiter *waiter)
{
    struct activation *a =
        (struct activation *)((char *)waiter - offsetof(struct activation, waiter));
    struct run *run = a->run;
    pthread_mutex_lock(&run->lock);
    a->n_held++;
    push(run, a);
    pthread_mutex_unlock(&run->lock);
}

/* False: the activation was put aside until a hold is free. */
static bool take_holds(struct run *run, struct activation *a)
{
    const struct dynamic_item *di = &run->plan->dynamic->items[a->item];
    while (a->n_held < di->n_holds) {
        const struct hold *hold = &di->holds[a->n_held];
        a->waiter.resume = resume;
        if (!variable_hold(hold->variable, hold->write, &a->waiter))
            return false;
        a->n_held++;
    }
    return true;
}

static void give_holds(struct run *run, struct activation *a)
{
    const struct dynamic_item *di = &run->plan->dynamic->items[a->item];
    while (a->n_held > 0) {
        const struct hold *hold = &di->holds[--a->n_held];
        variable_unhold(hold->variable, hold->write);
    }
}

/* ---- one kernel ---- */

/* A variable's own memory; a copy for kernels that may take long without computing. */
static int gather_variable(struct run *run, struct activation *a, int i, struct token *input)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[a->item];
    struct device *device = plan->options.device;
    const struct tensor *value = &plan->values.items[item->in[i]].variable->value;
    input->tensor = *value;
    input->tensor.buffer = NULL;
    if (!(item->flags & KERNEL_ASYNC) || !value->data)
        return 0;
    struct buffer *buffer = pool_alloc(plan->dynamic->pool, tensor_bytes(value));
    if (!buffer)
        return error_set(&a->err, ERR_OS, "no memory for %s",
                         shape_text_typed(value->type, &value->shape));
    input->tensor.buffer = buffer;
    input->tensor.data = buffer->data;
    return device->copy(device, buffer->data, value->data, tensor_bytes(value), &a->err);
}

/* Points to each input's value, wherever it is. */
static int gather(struct run *run, struct activation *a, struct tensor **in)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[a->item];
    const struct dynamic_item *di = &plan->dynamic->items[a->item];
    int code = 0;
    for (int i = 0; i < item->n_in; i++) {
        struct value *value = &plan->values.items[item->in[i]];
        struct token *input = &a->iteration->inputs[di->first_input + i];
        in[i] = &input->tensor;
        if (value->kind == VALUE_VARIABLE && item->refs && item->refs[i]) {
            in[i] = &value->variable->value;
        } else if (value->kind == VALUE_VARIABLE) {
            int failed = gather_variable(run, a, i, input);
            code = code ? code : failed;
        } else if (value->kind == VALUE_CONSTANT && value->item < 0) {
            in[i] = &value->constant;
        } else if (value->kind == VALUE_FEED) {
            input->tensor = run->feeds[value->feed];
            input->tensor.buffer = NULL;
        } else if (!input->is_live) {
            in[i] = NULL; /* the other inputs of a Merge */
        }
    }
    if (item->flags & KERNEL_ASYNC)
        give_holds(run, a);
    return code;
}

static void async_done(struct call_host *host, int result);

static int make_call(struct run *run, struct activation *a)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[a->item];
    const struct dynamic_item *di = &plan->dynamic->items[a->item];
    struct iteration *it = a->iteration;
    struct tensor **in = it->pointers + di->first_input + di->first_output;
    struct tensor **out = in + item->n_in;
    for (int i = 0; i < item->n_out; i++)
        out[i] = &it->outputs[di->first_output + i];
    int code = gather(run, a, in);
    a->host = (struct call_host){.plan = run->plan,
                                 .item = item,
                                 .fetches = run->fetches,
                                 .out_refs = it->out_refs + di->first_output,
                                 .pool = plan->dynamic->pool,
                                 .copies_reads = !plan->dynamic->keeps_reads,
                                 .done = async_done};
    a->host.temporaries = (void *)&a->temporaries;
    int threads = plan->dynamic->threads > 1 ? 1 : plan->options.device->threads;
    a->call = (struct kernel_call){.node = item->node,
                                   .state = item->state,
                                   .n_in = item->n_in,
                                   .n_out = item->n_out,
                                   .in = in,
                                   .out = out,
                                   .refs = item->refs,
                                   .device = plan->options.device,
                                   .step = run->step,
                                   .iteration = it->tag,
                                   .threads = threads,
                                   .err = &a->err,
                                   .executor = &a->host};
    return code;
}

static void set_constant(struct run *run, struct activation *a)
{
    const struct item *item = &run->plan->items.items[a->item];
    struct tensor *out = &a->iteration->outputs[run->plan->dynamic->items[a->item].first_output];
    *out = run->plan->values.items[item->out[0]].constant;
}

/* KERNEL_PENDING, 0 or an error code. */
static int run_kernel(struct run *run, struct activation *a)
{
    const struct item *item = &run->plan->items.items[a->item];
    if (!item->code) {
        set_constant(run, a);
        return 0;
    }
    if (make_call(run, a))
        return item_fail(item, &a->err);
    if (item_check_variables(run->plan, item, &a->err))
        return a->err.code;
    struct buffer *scratch = NULL;
    if (item->scratch_bytes) {
        scratch = pool_alloc(run->plan->dynamic->pool, item->scratch_bytes);
        if (!scratch)
            return error_set(&a->err, ERR_OS, "no memory for %zu bytes of scratch",
                             item->scratch_bytes);
        a->call.scratch = scratch->data;
    }
    int64_t start = run->step->trace ? trace_now() : 0;
    int result = item->code->run(&a->call);
    if (scratch && result != KERNEL_PENDING)
        scratch->free(scratch);
    item_trace(item, run->step, start);
    if (result > 0)
        return item_fail(item, &a->err);
    if (result == KERNEL_PENDING)
        return result;
    return run->plan->options.check_numerics ? item_check_numerics(item, &a->call, &a->err) : 0;
}

/* Lets go of inputs, temporary memory and holds. */
static void release_inputs(struct run *run, struct activation *a)
{
    const struct plan *plan = run->plan;
    const struct item *item = &plan->items.items[a->item];
    const struct dynamic_item *di = &plan->dynamic->items[a->item];
    for (int i = 0; i < item->n_in; i++) {
        struct token *input = &a->iteration->inputs[di->first_input + i];
        tensor_release(&input->tensor);
        input->is_live = false;
    }
    give_holds(run, a);
    for (size_t i = 0; i < a->temporaries.n; i++)
        mem_free(a->temporaries.items[i]);
    a->temporaries.n = 0;
}

/* ---- the queue ---- */

static void help(void *argument);

/* With the lock held: asks for helpers, up to one per activation in the queue. */
static void call_helpers(struct run *run, int wanted)
{
    int limit = run->plan->dynamic->threads - 1;
    while (wanted-- > 0 && run->helpers < limit) {
        run->helpers++;
        if (!workers_submit(limit, help, run)) {
            run->helpers--;
            return;
        }
    }
}

/* Distributes what became ready: all cheap or dead ones and one expensive one stay (in *mine). */
static void distribute(struct run *run, struct activation *ready, struct activation **mine)
{
    struct activation *kept = NULL;
    int queued = 0;
    while (ready) {
        struct activation *a = ready;
        ready = a->next;
        if (a->is_dead || run->plan->dynamic->items[a->item].is_cheap) {
            a->next = *mine;
            *mine = a;
        } else {
            if (kept) {
                push(run, kept);
                queued++;
            }
            kept = a;
        }
    }
    if (kept && *mine) { /* whoever is free takes it while we run the cheap ones */
        push(run, kept);
        queued++;
    } else if (kept) {
        kept->next = NULL;
        *mine = kept;
    }
    call_helpers(run, queued);
}

/* An activation is over. With the lock held. */
static void finish(struct run *run, struct activation *a, int code, struct activation **mine)
{
    struct activation *ready = NULL;
    if (code && !run->failed) {
        run->failed = true;
        run->err = a->err;
    }
    if (!run->failed)
        frame_propagate(run, a, &ready);
    distribute(run, ready, mine);
    if (--run->active == 0)
        pthread_cond_broadcast(&run->changed);
}

static int dead_fetch(struct activation *a)
{
    const struct item *item = &a->run->plan->items.items[a->item];
    if (!a->is_dead || item->code != &plan_fetch_code)
        return 0;
    return error_set(&a->err, ERR_DATA,
                     "a fetched value is dead: it is in a branch that was not taken");
}

/* Runs an activation and whatever of its consequences stays with this thread. */
static void execute(struct run *run, struct activation *a)
{
    struct activation *mine = a;
    a->next = NULL;
    while (mine) {
        a = mine;
        mine = a->next;
        int code = 0;
        bool skip = run->failed || a->is_dead;
        if (!run->failed && a->is_dead)
            code = dead_fetch(a);
        if (!skip && !take_holds(run, a))
            continue;
        if (!skip)
            code = run_kernel(run, a);
        if (code == KERNEL_PENDING)
            continue;
        if (!code && atomic_load_explicit(&run->step->cancelled, memory_order_relaxed))
            code = error_set(&a->err, ERR_CANCELLED, "the step was cancelled");
        release_inputs(run, a);
        pthread_mutex_lock(&run->lock);
        finish(run, a, code, &mine);
        pthread_mutex_unlock(&run->lock);
    }
}

static void async_done(struct call_host *host, int result)
{
    struct activation *a = (struct activation *)host, *mine = NULL;
    struct run *run = a->run;
    if (result > 0)
        item_fail(host->item, &a->err);
    release_inputs(run, a);
    pthread_mutex_lock(&run->lock);
    finish(run, a, result > 0 ? result : 0, &mine);
    while (mine) { /* the caller is somebody else's thread: it only queues */
        struct activation *next = mine->next;
        push(run, mine);
        mine = next;
    }
    call_helpers(run, 1);
    pthread_mutex_unlock(&run->lock);
}

static struct activation *pop(struct run *run)
{
    struct activation *a = run->queue;
    if (a)
        run->queue = a->next;
    return a;
}

static void help(void *argument)
{
    struct run *run = argument;
    struct device *device = run->plan->options.device;
    static _Thread_local struct device *entered;
    if (entered != device && device->enter_thread)
        device->enter_thread(device, 1);
    entered = device;
    pthread_mutex_lock(&run->lock);
    for (struct activation *a; (a = pop(run));) {
        pthread_mutex_unlock(&run->lock);
        execute(run, a);
        pthread_mutex_lock(&run->lock);
    }
    run->helpers--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

/* ---- a step ---- */

static struct run *run_new(struct plan *plan)
{
    struct run *run = mem_alloc(sizeof *run);
    size_t n = plan->dynamic->frames.n;
    run->plan = plan;
    run->idle_frames = mem_array(n, sizeof *run->idle_frames);
    run->idle_iterations = mem_array(n, sizeof *run->idle_iterations);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    return run;
}

static struct run *run_take(struct plan *plan)
{
    pthread_mutex_lock(&plan->lock);
    struct run *run = plan->dynamic->idle_runs;
    if (run)
        plan->dynamic->idle_runs = run->next;
    pthread_mutex_unlock(&plan->lock);
    return run ? run : run_new(plan);
}

static void run_give(struct run *run)
{
    struct plan *plan = run->plan;
    pthread_mutex_lock(&plan->lock);
    run->next = plan->dynamic->idle_runs;
    plan->dynamic->idle_runs = run;
    pthread_mutex_unlock(&plan->lock);
}

/* The thread that called works, too, until nothing is left and no helper touches the run. */
static void work(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    struct activation *mine = NULL, *ready = NULL;
    run->active = 1; /* the step is not over while its roots are being found */
    frame_start_root(run, &ready);
    distribute(run, ready, &mine);
    run->active--;
    while (mine) {
        struct activation *next = mine->next;
        push(run, mine);
        mine = next;
    }
    while (run->active > 0 || run->helpers > 0) {
        struct activation *a = pop(run);
        if (!a) {
            pthread_cond_wait(&run->changed, &run->lock);
            continue;
        }
        pthread_mutex_unlock(&run->lock);
        execute(run, a);
        pthread_mutex_lock(&run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

/* Reads that last as long as the step are begun in the order of all holds. */
static void keep_reads(const struct dynamic *d)
{
    for (size_t i = 0; i < d->kept.n; i++)
        variable_hold_wait(d->kept.items[i], false);
}

static void let_go_of_reads(const struct dynamic *d)
{
    for (size_t i = 0; i < d->kept.n; i++)
        variable_unhold(d->kept.items[i], false);
}

int dynamic_run(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct error *err)
{
    struct run *run = run_take(plan);
    run->step = step;
    run->feeds = feeds;
    run->fetches = fetches;
    run->queue = NULL;
    run->failed = false;
    keep_reads(plan->dynamic);
    work(run);
    let_go_of_reads(plan->dynamic);
    int code = run->failed ? run->err.code : 0;
    if (code)
        *err = run->err;
    frame_clear(run);
    struct error sync_error = ERROR_INIT;
    int synced = plan->options.device->sync(plan->options.device, &sync_error);
    if (!code && synced) {
        *err = sync_error;
        code = synced;
    }
    for (int i = 0; code && i < plan->n_fetches; i++)
        tensor_release(&fetches[i]);
    run_give(run);
    return code;
}

void dynamic_free(struct plan *plan)
{
    struct dynamic *d = plan->dynamic;
    if (!d)
        return;
    for (struct run *run = d->idle_runs, *next; run; run = next) {
        next = run->next;
        frame_free_idle(run);
        mem_free(run->idle_frames);
        mem_free(run->idle_iterations);
        pthread_mutex_destroy(&run->lock);
        pthread_cond_destroy(&run->changed);
        mem_free(run);
    }
    for (size_t i = 0; i < d->frames.n; i++) {
        vec_release(&d->frames.items[i].items);
        vec_release(&d->frames.items[i].exits);
        vec_release(&d->frames.items[i].over);
    }
    vec_release(&d->frames);
    vec_release(&d->kept);
    pool_free(d->pool);
    mem_free(d);
}
