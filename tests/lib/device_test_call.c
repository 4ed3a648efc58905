/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/device_test_call.h"

#include "base/memory.h"

static int misplaced(struct kernel_call *call, const char *what, int i)
{
    return error_set(call->err, ERR_INTERNAL, "%s %d is in the wrong memory", what, i);
}

static bool is_at(const struct tensor *t, bool on_host)
{
    return !t->data || !tensor_bytes(t) || test_is_device(t->data) != on_host;
}

static size_t bytes_of(const struct kernel_call *call, const struct tensor *t)
{
    return t->layout ? call->device->layout->bytes(t->layout) : tensor_bytes(t);
}

void test_note(struct plain *p, const struct tensor *t, bool write)
{
    struct test_access access = {test_to_host(t->data), bytes_of(&p->call, t), write};
    if (t->data)
        vec_push(&p->accesses, access);
}

/* A variable's memory does not move, but its other fields may change before the kernel runs. */
static void plain_variable(struct plain *p, const struct kernel_call *call, int i)
{
    struct variable *variable = call->refs[i];
    bool writes = !node_has(call->node, OP_READS_REF);
    test_note(p, &variable->value, writes);
    p->pointers[i] = &variable->value;
    if (!p->refs)
        return;
    p->variables[i] = *variable;
    p->variables[i].value.data = test_to_host(variable->value.data);
    p->refs[i] = &p->variables[i];
    p->pointers[i] = &p->variables[i].value;
}

/* Copies an input. A host input of an enqueued kernel is read now. */
static int plain_input(struct plain *p, const struct kernel_call *call, int i)
{
    const struct tensor *in = call->in[i];
    struct tensor *t = &p->tensors[i];
    bool only_shape = call->node && node_has(call->node, OP_SHAPE_ONLY);
    p->pointers[i] = in ? t : NULL;
    if (call->refs && call->refs[i]) {
        plain_variable(p, call, i);
    } else if (in && !only_shape && !is_at(in, p->wrapped->host_in[i])) {
        return misplaced((struct kernel_call *)(uintptr_t)call, "input", i);
    } else if (in && p->wrapped->enqueued && p->wrapped->host_in[i]) {
        return tensor_copy(t, in, call->err);
    } else if (in) {
        *t = *in;
        t->data = test_to_host(in->data);
        if (!only_shape && !p->wrapped->host_in[i])
            test_note(p, in, false);
    }
    return 0;
}

bool test_is_ref_output(const struct kernel_call *call, int i)
{
    return call->node && call->node->outputs[i].is_ref;
}

static int plain_output(struct plain *p, struct kernel_call *call, int i)
{
    struct tensor *out = &p->tensors[call->n_in + i];
    bool on_host = p->wrapped->host_out[i];
    p->pointers[call->n_in + i] = out;
    if (test_is_ref_output(call, i))
        return 0;
    if (!is_at(call->out[i], on_host))
        return misplaced(call, "output", i);
    *out = *call->out[i];
    out->data = test_to_host(out->data);
    if (!on_host && p->wrapped->alias_of[i] < 0)
        test_note(p, out, true);
    return 0;
}

static void make_variables(struct plain *p, const struct kernel_call *call)
{
    size_t n = (size_t)call->n_in + 1;
    p->variables = mem_array(n, sizeof *p->variables);
    p->refs = mem_array(n, sizeof *p->refs);
    p->call.refs = p->refs;
}

int plain_new(struct kernel_call *call, bool enqueued, struct plain **result)
{
    struct test_context *context = test_context(call->device);
    const struct wrapped *w = call->state;
    size_t n = (size_t)(call->n_in + call->n_out) + 1;
    struct plain *p = *result = mem_alloc(sizeof *p);
    p->wrapped = w;
    p->context = context;
    p->tensors = mem_array(n, sizeof *p->tensors);
    p->pointers = mem_array(n, sizeof *p->pointers);
    p->host = *call_host(call);
    if (p->host.pool)
        p->host.pool = context->pool;
    p->host.kept = NULL; /* whose addresses are the device's */
    p->call = *call;
    p->call.state = w->state;
    p->call.form = w->code->form;
    p->call.scratch = test_to_host(call->scratch);
    p->call.in = p->pointers;
    p->call.out = p->pointers + call->n_in;
    p->call.device = w->is_own ? &context->raw : context->cpu;
    p->call.executor = &p->host.executor;
    p->on_device.found = &p->fault;
    p->host.on_device = &p->on_device;
    p->block = test_to_host(call->step_block);
    p->call.step_block = w->is_own ? p->block : call->step_block;
    if (enqueued && call->refs)
        make_variables(p, call);
    for (int i = 0; i < call->n_in; i++)
        if (plain_input(p, call, i))
            return call->err->code;
    for (int i = 0; i < call->n_out; i++)
        if (plain_output(p, call, i))
            return call->err->code;
    struct test_access scratch = {p->call.scratch, p->host.item->scratch_bytes, true};
    struct test_access block = {p->block, sizeof *p->block, true};
    if (scratch.data)
        vec_push(&p->accesses, scratch);
    if (block.data)
        vec_push(&p->accesses, block);
    return 0;
}

void plain_free(struct plain *p)
{
    for (int i = 0; p->wrapped->enqueued && i < p->call.n_in; i++)
        if (p->wrapped->host_in[i])
            tensor_release(&p->tensors[i]);
    temporaries_free(&p->temporaries);
    vec_release(&p->temporaries);
    vec_release(&p->accesses);
    mem_free(p->variables);
    mem_free(p->refs);
    mem_free(p->tensors);
    mem_free(p->pointers);
    mem_free(p);
}
