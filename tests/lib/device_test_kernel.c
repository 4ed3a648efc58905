/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the TEST device, and of others over its scheduler: each wraps one of the CPU's, which
 * gets tensors with plain addresses; its outputs then get device addresses again. If the outputs'
 * shapes are known before, the kernel is enqueued, also for updates of variables. A kernel that
 * fills outputs in host memory, or sets a variable's first value, is waited for.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/deferred.h"
#include "exec/device/fault.h"
#include "lib/device_test_call.h"

/* ---- preparing ---- */

static bool moves_only(const struct node *node)
{
    static const char *const ops[] = {"Identity", "StopGradient",   "Reshape",       "ExpandDims",
                                      "Squeeze",  "Switch",         "Merge",         "Enter",
                                      "Exit",     "LoopCond",       "NextIteration", "NoOp",
                                      "Stack",    "ControlTrigger", "Shape",         "Size",
                                      "Rank",     "StackPush",      "StackPop"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (node_is(node, ops[i]))
            return true;
    return false;
}

static void find_places(struct wrapped *w, const struct kernel_setup *setup)
{
    for (int i = 0; i < setup->n_in; i++)
        w->host_in[i] =
            kernel_on_host(setup->row->host_inputs, setup->node, setup->node->op->inputs, i);
    for (int i = 0; i < setup->n_out; i++)
        w->host_out[i] =
            kernel_on_host(setup->row->host_outputs, setup->node, setup->node->op->outputs, i);
    w->moves_only = moves_only(setup->node);
}

/* Returns whether the value may change its shape, and so get other memory. */
static bool may_move(const struct node *node)
{
    const struct attr_value *validates = node_attr(node, "validate_shape");
    return validates && !node_bool(node, "validate_shape");
}

static bool reads_host_memory(const struct wrapped *w, int n_in)
{
    for (int i = 0; i < n_in; i++)
        if (w->host_in[i])
            return true;
    return false;
}

/* A kernel that passes an input on can be enqueued only if it is the device's own (a check of
 * numbers), and reads nothing on the host: it would print. */
static bool can_be_enqueued(const struct wrapped *w, const struct kernel_setup *setup)
{
    const struct node *node = setup->node;
    if (!setup->shapes_known || !setup->n_out || w->moves_only || (node && may_move(node)))
        return false;
    for (int i = 0; i < setup->n_out; i++)
        if (w->host_out[i] ||
            (w->alias_of[i] >= 0 && (!w->is_own || reads_host_memory(w, setup->n_in))))
            return false;
    return true;
}

static void find_aliases(struct wrapped *w, const struct kernel_setup *setup)
{
    for (int i = 0; i < setup->n_out; i++) {
        bool is_ref = setup->node && setup->node->outputs[i].is_ref;
        bool is_alias = setup->out[i].forward == FORWARD_ALIAS && !is_ref;
        w->alias_of[i] = is_alias ? setup->out[i].from : -1;
    }
}

static int prepare(struct kernel_setup *setup, const struct kernel_code *code, bool is_own)
{
    struct test_context *context = test_context(setup->device);
    struct wrapped *w = mem_alloc(sizeof *w);
    struct kernel_setup inner = *setup;
    w->code = code;
    w->is_own = is_own;
    w->host_in = mem_alloc((size_t)(setup->n_in + setup->n_out) + 1);
    w->host_out = w->host_in + setup->n_in;
    w->alias_of = mem_array((size_t)setup->n_out + 1, sizeof *w->alias_of);
    w->out_shapes = mem_array((size_t)setup->n_out + 1, sizeof *w->out_shapes);
    setup->state = w;
    if (setup->node)
        find_places(w, setup);
    inner.form = code->form;
    inner.device = is_own ? &context->raw : context->cpu;
    int result = code->prepare ? code->prepare(&inner) : 0;
    w->state = inner.state;
    setup->scratch_bytes = inner.scratch_bytes;
    setup->name = inner.name;
    find_aliases(w, setup);
    w->enqueued = !result && can_be_enqueued(w, setup);
    for (int i = 0; w->enqueued && i < setup->n_out; i++)
        w->out_shapes[i] = setup->out_types[i].shape;
    return result;
}

static int wrap_prepare(struct kernel_setup *setup)
{
    struct test_context *context = test_context(setup->device);
    bool is_own;
    const struct kernel_code *code = test_inner_code(context, setup->name, &is_own);
    return prepare(setup, code, is_own);
}

static int relayout_prepare(struct kernel_setup *setup)
{
    struct test_context *context = test_context(setup->device);
    return prepare(setup, context->cpu->layout->relayout, false);
}

static void wrap_release(void *state)
{
    struct wrapped *w = state;
    if (w->state && w->code->release)
        w->code->release(w->state);
    else
        mem_free(w->state);
    mem_free(w->host_in);
    mem_free(w->alias_of);
    mem_free(w->out_shapes);
    mem_free(w);
}

/* Returns whether the step has failed, so that its values are garbage. */
static bool has_fault(const struct plain *p)
{
    return p->block && p->block->fault.code;
}

static int run_kernel(struct plain *p)
{
    thread_enter_device(p->call.device, p->call.threads);
    return p->wrapped->code->run(&p->call);
}

/* ---- waited for ---- */

/* Gives the variables of a call plain addresses for the kernel, or device addresses for others. */
static void plain_variables(struct kernel_call *call, bool plain)
{
    test_allocates_plain = plain;
    for (int i = 0; call->refs && i < call->n_in; i++) {
        struct variable *variable = call->refs[i];
        if (!variable)
            continue;
        variable->value.data =
            plain ? test_to_host(variable->value.data) : test_to_device(variable->value.data);
    }
}

/* Notes memory that the kernel wrote to, as far as it was not known before. */
static void give_outputs(struct kernel_call *call, struct plain *p)
{
    p->accesses.n = 0;
    for (int i = 0; i < call->n_out; i++) {
        struct tensor out = p->tensors[call->n_in + i];
        if (test_is_ref_output(call, i))
            continue;
        if (!p->wrapped->host_out[i]) {
            test_note(p, &out, false);
            out.data = test_to_device(out.data);
        }
        *call->out[i] = out;
    }
    for (int i = 0; call->refs && i < call->n_in; i++)
        if (call->refs[i])
            test_note(p, &call->refs[i]->value, false);
}

/* Returns whether the kernel reads memory. To move a tensor is to copy it if it is a variable's or
 * not reference-counted, as memory of the plan: a stack copies such elements in and out. */
static bool reads_memory(const struct kernel_call *call)
{
    const struct wrapped *w = call->state;
    const struct call_host *host = call_host(call);
    if (!w->moves_only)
        return true;
    if (host->planned)
        return node_is(call->node, "StackPush") || node_is(call->node, "StackPop");
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && !w->host_in[i] && !call->in[i]->buffer)
            return true;
    return false;
}

/* Runs a kernel while nothing is enqueued: the memory that it gets may have been freed by those who
 * enqueued work on it, and that work is over then. */
static int run_alone(struct test_context *context, struct kernel_call *call, struct plain *p)
{
    struct test_scheduler *s = context->scheduler;
    int line = context->compute_line(context);
    struct error failure = ERROR_INIT;
    int code = test_begin_alone(s, line, p->accesses.items, (int)p->accesses.n, call->err);
    if (!code && has_fault(p))
        code = error_set(call->err, ERR_DATA, "its inputs are garbage");
    plain_variables(call, true);
    if (!code)
        code = run_kernel(p);
    plain_variables(call, false);
    give_outputs(call, p);
    if (test_end_alone(s, line, p->accesses.items, (int)p->accesses.n, &failure) && code <= 0) {
        *call->err = failure;
        code = failure.code;
    }
    return code;
}

static int run_now(struct kernel_call *call)
{
    struct test_context *context = test_context(call->device);
    struct plain *p;
    int code = plain_new(call, false, &p);
    if (!code && reads_memory(call)) {
        code = test_as_device(context, run_alone(context, call, p), call->err);
    } else if (!code) {
        code = run_kernel(p);
        give_outputs(call, p);
    }
    plain_free(p);
    return code;
}

/* ---- later ---- */

/* Reads the step block: the kernel can read nothing else of its step. */
static void read_block(struct plain *p)
{
    p->step = (struct step){0};
    if (!p->block)
        return;
    p->step.number = p->block->number;
    p->step.seed = p->block->seed;
    p->step.replica = p->block->replica;
}

/* Returns whether `a` stays if both faults were left. */
static bool fault_goes_first(const struct fault *a, const struct fault *b)
{
    if (!a->code || !b->code)
        return a->code != 0;
    return a->item != b->item ? a->item < b->item : a->at < b->at;
}

/* Leaves a fault. Errors that a real device's kernel could not find are the TEST device's own. */
static void leave_fault(struct plain *p)
{
    if (!p->fault.code)
        p->fault = test_own_fault(p->context, p->call.item, &p->err);
    if (fault_goes_first(&p->fault, &p->block->fault))
        p->block->fault = p->fault;
}

static void run_job(struct test_job *job)
{
    struct plain *p = (struct plain *)job;
    if (has_fault(p))
        return;
    read_block(p);
    p->fault = (struct fault){0};
    if (run_kernel(p) > 0)
        leave_fault(p);
    temporaries_free(&p->temporaries);
}

static void free_job(struct test_job *job)
{
    plain_free((struct plain *)job);
}

static bool has_values(const struct kernel_call *call)
{
    for (int i = 0; call->refs && i < call->n_in; i++)
        if (call->refs[i] && !call->refs[i]->value.data)
            return false;
    return true;
}

static int alias_reference(struct kernel_call *call, int output)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->refs[i])
            return kernel_alias_output(call, output, i, NULL) ? 0 : call->err->code;
    return error_set(call->err, ERR_INTERNAL, "output %d is the variable of no input", output);
}

static int make_outputs(struct kernel_call *call)
{
    const struct wrapped *w = call->state;
    int code = 0;
    for (int i = 0; i < call->n_out && !code; i++) {
        if (test_is_ref_output(call, i))
            code = alias_reference(call, i);
        else if (w->alias_of[i] >= 0)
            code = kernel_alias_output(call, i, w->alias_of[i], &w->out_shapes[i])
                       ? 0
                       : call->err->code;
        else if (!kernel_alloc_output(call, i, &w->out_shapes[i]))
            code = call->err->code;
    }
    return code;
}

static void count_updates(struct test_context *context, const struct kernel_call *call)
{
    for (int i = 0; call->refs && i < call->n_in; i++)
        if (call->refs[i] && !node_has(call->node, OP_READS_REF)) {
            variable_written(call->refs[i]);
            atomic_fetch_add(&context->updates, 1);
        }
}

static int enqueue(struct kernel_call *call)
{
    struct test_context *context = test_context(call->device);
    struct plain *p;
    if (make_outputs(call))
        return call->err->code;
    if (plain_new(call, true, &p)) {
        plain_free(p);
        return call->err->code;
    }
    p->job = (struct test_job){.run = run_job, .free = free_job};
    p->host.planned = true; /* its outputs exist */
    p->host.temporaries = &p->temporaries;
    p->call.err = &p->err;
    p->call.step = &p->step;
    atomic_fetch_add(&context->enqueued, 1);
    count_updates(context, call);
    int code =
        test_enqueue_kernel(context, &p->job, p->accesses.items, (int)p->accesses.n, call->err);
    return code ? code : KERNEL_ENQUEUED;
}

static int wrap_run(struct kernel_call *call)
{
    struct test_context *context = test_context(call->device);
    atomic_fetch_add(&context->kernels, 1);
    bool enqueued = ((const struct wrapped *)call->state)->enqueued && has_values(call);
    return enqueued ? enqueue(call) : run_now(call);
}

const struct kernel_code test_kernel = {
    .prepare = wrap_prepare, .run = wrap_run, .release = wrap_release};
const struct kernel_code test_relayout = {
    .prepare = relayout_prepare, .run = wrap_run, .release = wrap_release};
