/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the TEST device: each wraps one of the CPU's. It gets the tensors with plain addresses
 * and its outputs are marked as the device's again, or, where their shapes are known before,
 * it is enqueued. What has to do with variables, or fills outputs in host memory, is waited for.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan_internal.h"
#include "lib/device_test_internal.h"

struct wrapped {
    const struct kernel_code *code;
    void *state;
    bool enqueued;   /* runs later */
    bool moves_only; /* looks at no element of device memory */
    bool *host_in, *host_out;
    struct shape *out_shapes; /* of what is enqueued */
};

/* ---- preparing ---- */

static bool moves_only(const struct node *node)
{
    static const char *const ops[] = {
        "Identity", "StopGradient",   "Reshape", "ExpandDims", "Squeeze",       "Switch",
        "Merge",    "Enter",          "Exit",    "LoopCond",   "NextIteration", "NoOp",
        "Stack",    "ControlTrigger", "Shape",   "Size",       "Rank"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (node_is(node, ops[i]))
            return true;
    return false;
}

static void find_places(struct wrapped *w, const struct kernel_setup *setup)
{
    const struct kernel_row *row =
        kernel_find(setup->device->kernels, setup->node, setup->device->type);
    for (int i = 0; i < setup->n_in; i++)
        w->host_in[i] = kernel_input_on_host(row, setup->node, i);
    for (int i = 0; i < setup->n_out; i++)
        w->host_out[i] = kernel_output_on_host(row, setup->node, i);
    w->moves_only = moves_only(setup->node);
}

static bool has_reference(const struct op_arg *args, int n)
{
    for (int i = 0; i < n; i++)
        if (args[i].is_ref)
            return true;
    return false;
}

static bool can_be_enqueued(const struct wrapped *w, const struct kernel_setup *setup)
{
    const struct op *op = setup->node ? setup->node->op : NULL;
    if (!setup->shapes_known || !setup->n_out || w->moves_only ||
        (op &&
         (has_reference(op->inputs, op->n_inputs) || has_reference(op->outputs, op->n_outputs))))
        return false;
    for (int i = 0; i < setup->n_out; i++)
        if (w->host_out[i] || setup->out[i].forward == FORWARD_ALIAS)
            return false;
    return true;
}

static int prepare(struct kernel_setup *setup, const struct kernel_code *code)
{
    struct test_context *context = setup->device->context;
    struct wrapped *w = mem_alloc(sizeof *w);
    struct kernel_setup inner = *setup;
    w->code = code;
    w->host_in = mem_alloc((size_t)(setup->n_in + setup->n_out) + 1);
    w->host_out = w->host_in + setup->n_in;
    w->out_shapes = mem_array((size_t)setup->n_out + 1, sizeof *w->out_shapes);
    setup->state = w;
    if (setup->node)
        find_places(w, setup);
    inner.device = context->cpu;
    int result = code->prepare ? code->prepare(&inner) : 0;
    w->state = inner.state;
    setup->scratch_bytes = inner.scratch_bytes;
    setup->name = inner.name;
    w->enqueued = !result && can_be_enqueued(w, setup);
    for (int i = 0; w->enqueued && i < setup->n_out; i++)
        w->out_shapes[i] = setup->out_types[i].shape;
    return result;
}

static int wrap_prepare(struct kernel_setup *setup)
{
    struct test_context *context = setup->device->context;
    return prepare(setup, context->cpu->code(context->cpu, setup->name));
}

static int relayout_prepare(struct kernel_setup *setup)
{
    struct test_context *context = setup->device->context;
    return prepare(setup, context->cpu->relayout);
}

static void wrap_release(void *state)
{
    struct wrapped *w = state;
    if (w->state && w->code->release)
        w->code->release(w->state);
    else
        mem_free(w->state);
    mem_free(w->host_in);
    mem_free(w->out_shapes);
    mem_free(w);
}

/* ---- a call with plain addresses ---- */

struct plain {
    struct test_job job; /* first */
    struct kernel_call call;
    struct call_host host;
    struct error err;
    const struct wrapped *wrapped;
    struct tensor *tensors; /* inputs, outputs */
    struct tensor **pointers;
    VEC(void *) temporaries; /* of what is enqueued */
};

static int misplaced(struct kernel_call *call, const char *what, int i)
{
    return error_set(call->err, ERR_INTERNAL, "%s %d is in the wrong memory", what, i);
}

static bool is_at(const struct tensor *t, bool on_host)
{
    return !t->data || !tensor_bytes(t) || test_is_device(t->data) != on_host;
}

/* A host input of what is enqueued is read now. */
static int plain_input(struct plain *p, const struct kernel_call *call, int i)
{
    const struct tensor *in = call->in[i];
    struct tensor *t = &p->tensors[i];
    bool only_shape = call->node && node_has(call->node, OP_SHAPE_ONLY);
    p->pointers[i] = in ? t : NULL;
    if (call->refs && call->refs[i])
        p->pointers[i] = &call->refs[i]->value;
    else if (in && !only_shape && !is_at(in, p->wrapped->host_in[i]))
        return misplaced((struct kernel_call *)(uintptr_t)call, "input", i);
    else if (in && p->wrapped->enqueued && p->wrapped->host_in[i])
        return tensor_copy(t, in, call->err);
    else if (in) {
        *t = *in;
        t->data = test_to_host(in->data);
    }
    return 0;
}

static bool is_ref_output(const struct kernel_call *call, int i)
{
    return call->node && call->node->outputs[i].is_ref;
}

static int plain_new(struct kernel_call *call, struct plain **result)
{
    struct test_context *context = call->device->context;
    const struct wrapped *w = call->state;
    size_t n = (size_t)(call->n_in + call->n_out) + 1;
    struct plain *p = *result = mem_alloc(sizeof *p);
    p->wrapped = w;
    p->tensors = mem_array(n, sizeof *p->tensors);
    p->pointers = mem_array(n, sizeof *p->pointers);
    p->host = *(const struct call_host *)call->executor;
    if (p->host.pool)
        p->host.pool = context->pool;
    p->call = *call;
    p->call.state = w->state;
    p->call.scratch = test_to_host(call->scratch);
    p->call.in = p->pointers;
    p->call.out = p->pointers + call->n_in;
    p->call.device = context->cpu;
    p->call.executor = &p->host;
    for (int i = 0; i < call->n_in; i++)
        if (plain_input(p, call, i))
            return call->err->code;
    for (int i = 0; i < call->n_out; i++) {
        struct tensor *out = &p->tensors[call->n_in + i];
        p->pointers[call->n_in + i] = out;
        if (is_ref_output(call, i))
            continue;
        if (!is_at(call->out[i], w->host_out[i]))
            return misplaced(call, "output", i);
        *out = *call->out[i];
        out->data = test_to_host(out->data);
    }
    return 0;
}

static void plain_free(struct plain *p)
{
    for (int i = 0; p->wrapped->enqueued && i < p->call.n_in; i++)
        if (p->wrapped->host_in[i])
            tensor_release(&p->tensors[i]);
    for (size_t i = 0; i < p->temporaries.n; i++)
        mem_free(p->temporaries.items[i]);
    vec_release(&p->temporaries);
    mem_free(p->tensors);
    mem_free(p->pointers);
    mem_free(p);
}

/* ---- waited for ---- */

/* The variables of a call, as the kernel is to see them, and as all others do. */
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

static void give_outputs(struct kernel_call *call, const struct plain *p)
{
    for (int i = 0; i < call->n_out; i++) {
        struct tensor out = p->tensors[call->n_in + i];
        if (is_ref_output(call, i))
            continue;
        if (!p->wrapped->host_out[i])
            out.data = test_to_device(out.data);
        *call->out[i] = out;
    }
}

/* Moving a tensor is copying it when it is a variable's, or nobody counts its holders. */
static bool reads_memory(const struct kernel_call *call)
{
    const struct wrapped *w = call->state;
    const struct call_host *host = call->executor;
    if (!w->moves_only)
        return true;
    for (int i = 0; !host->planned && i < call->n_in; i++)
        if (call->in[i] && !w->host_in[i] && !call->in[i]->buffer)
            return true;
    return false;
}

/* Nothing is enqueued meanwhile: memory that the kernel is given may have been given back by
 * whoever enqueued something that uses it, which is over then. */
static int run_alone(struct test_context *context, struct plain *p, struct error *err)
{
    int code = test_drain_alone(&context->queue, err);
    if (!code)
        code = p->wrapped->code->run(&p->call);
    test_end_alone(&context->queue);
    return code;
}

static int run_now(struct kernel_call *call)
{
    struct test_context *context = call->device->context;
    struct plain *p;
    int code = plain_new(call, &p);
    plain_variables(call, true);
    if (!code)
        code =
            reads_memory(call) ? run_alone(context, p, call->err) : p->wrapped->code->run(&p->call);
    plain_variables(call, false);
    give_outputs(call, p);
    plain_free(p);
    return code;
}

/* ---- later ---- */

static void run_job(struct test_job *job, struct error *err)
{
    struct plain *p = (struct plain *)job;
    const struct node *node = p->call.node;
    if (p->wrapped->code->run(&p->call) <= 0)
        return;
    *err = p->err;
    if (node)
        error_prefix(err, "%s: %s: ", node_text(node), node->op->def->name);
}

static void free_job(struct test_job *job)
{
    plain_free((struct plain *)job);
}

static int enqueue(struct kernel_call *call)
{
    struct test_context *context = call->device->context;
    const struct wrapped *w = call->state;
    struct plain *p;
    for (int i = 0; i < call->n_out; i++)
        if (!kernel_alloc_output(call, i, &w->out_shapes[i]))
            return call->err->code;
    if (plain_new(call, &p)) {
        plain_free(p);
        return call->err->code;
    }
    p->job = (struct test_job){.run = run_job, .free = free_job};
    p->host.planned = true; /* its outputs are there */
    p->host.temporaries = (void *)&p->temporaries;
    p->call.err = &p->err;
    atomic_fetch_add(&context->enqueued, 1);
    test_enqueue(&context->queue, &p->job);
    return KERNEL_ENQUEUED;
}

static int wrap_run(struct kernel_call *call)
{
    struct test_context *context = call->device->context;
    atomic_fetch_add(&context->kernels, 1);
    return ((const struct wrapped *)call->state)->enqueued ? enqueue(call) : run_now(call);
}

const struct kernel_code test_kernel = {wrap_prepare, wrap_run, wrap_release};
const struct kernel_code test_relayout = {relayout_prepare, wrap_run, wrap_release};
