/* SPDX-License-Identifier: Apache-2.0
 *
 * What running a kernel needs, whichever executor runs it.
 */
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "exec/plan_internal.h"
#include "exec/pool.h"
#include "exec/trace.h"

struct tensor *kernel_alloc_output(struct kernel_call *call, int i, const struct shape *shape)
{
    struct call_host *host = call->executor;
    struct tensor *out = call->out[i];
    if (host->planned) {
        if (shape_equal(&out->shape, shape))
            return out;
        error_set(call->err, ERR_INTERNAL, "output %d was planned as %s, but is %s", i,
                  shape_text(&out->shape), shape_text(shape));
        return NULL;
    }
    enum dtype type = call->node->outputs[i].type;
    int64_t bytes = shape_bytes(shape, type);
    struct buffer *buffer = bytes < 0 ? NULL : pool_alloc(host->pool, (size_t)bytes);
    if (!buffer) {
        error_set(call->err, ERR_OS, "no memory for %s", shape_text_typed(type, shape));
        return NULL;
    }
    *out = (struct tensor){.type = type, .shape = *shape, .data = buffer->data, .buffer = buffer};
    return out;
}

/* Whether the input is the memory of a variable that others may write as soon as the call is over.
 */
static bool is_read(const struct call_host *host, int from)
{
    return host->copies_reads &&
           host->plan->values.items[host->item->in[from]].kind == VALUE_VARIABLE;
}

static int copy_read(struct kernel_call *call, struct tensor *out, const struct tensor *in)
{
    struct call_host *host = call->executor;
    struct buffer *buffer = pool_alloc(host->pool, tensor_bytes(in));
    if (!buffer)
        return error_set(call->err, ERR_OS, "no memory for %s",
                         shape_text_typed(in->type, &in->shape));
    *out = *in;
    out->buffer = buffer;
    out->data = buffer->data;
    return call->device->copy(call->device, out->data, in->data, tensor_bytes(in), call->err);
}

struct tensor *kernel_alias_output(struct kernel_call *call, int i, int from,
                                   const struct shape *shape)
{
    struct call_host *host = call->executor;
    struct tensor *out = call->out[i];
    const struct tensor *in = call->in[from];
    if (call->node && call->node->outputs[i].is_ref) {
        if (host->out_refs)
            host->out_refs[i] = call->refs[from];
        return out;
    }
    if (host->planned) {
        if (shape && !shape_equal(shape, &out->shape)) {
            error_set(call->err, ERR_INTERNAL, "output %d was planned as %s, but is %s", i,
                      shape_text(&out->shape), shape_text(shape));
            return NULL;
        }
        out->data = in->data;
        return out;
    }
    if (in->buffer)
        tensor_share(out, in);
    else if (!is_read(host, from))
        *out = *in;
    else if (copy_read(call, out, in))
        return NULL;
    if (shape)
        out->shape = *shape;
    return out;
}

struct tensor *kernel_share_output(struct kernel_call *call, int i, const struct tensor *value)
{
    struct call_host *host = call->executor;
    if (host->planned) {
        error_set(call->err, ERR_INTERNAL, "output %d has memory of the plan", i);
        return NULL;
    }
    tensor_share(call->out[i], value);
    return call->out[i];
}

void *kernel_temporary(struct kernel_call *call, size_t bytes)
{
    struct call_host *host = call->executor;
    void *memory = mem_try(bytes);
    if (!memory) {
        error_set(call->err, ERR_OS, "no memory for %zu bytes of scratch", bytes);
        return NULL;
    }
    vec_push(host->temporaries, memory);
    return memory;
}

void kernel_done(struct kernel_call *call, int result)
{
    struct call_host *host = call->executor;
    host->done(host, result);
}

int item_fail(const struct item *item, struct error *err)
{
    if (!item->node)
        return err->code;
    return error_prefix(err, "%s: %s: ", node_text(item->node), item->node->op->def->name);
}

void item_trace(const struct item *item, const struct step *step, int64_t start)
{
    if (!step->trace)
        return;
    trace_kernel(step->trace, step->number,
                 &(struct trace_run){.node = item->name,
                                     .kernel = item->kernel,
                                     .op = item->node ? item->node->op->def->name : item->kernel,
                                     .start = start,
                                     .end = trace_now()});
}

int item_check_variables(const struct plan *plan, const struct item *item, struct error *err)
{
    for (int i = 0; i < item->n_in; i++) {
        bool may_lack = !item->needs_initialized && item->refs && item->refs[i];
        if (item->in[i] < 0 || may_lack)
            continue;
        const struct value *root = &plan->values.items[plan_root_value(plan, item->in[i])];
        if (root->variable && !root->variable->initialized) {
            error_set(err, ERR_DATA, "variable '%s' is not initialized", root->variable->name);
            return item_fail(item, err);
        }
    }
    return 0;
}

static int fail_not_finite(const struct item *item, int output, const struct tensor *t, int64_t bad,
                           struct error *err)
{
    struct str what = STR_INIT;
    tensor_print_not_finite(&what, t, bad);
    if (item->n_out > 1)
        error_set(err, ERR_DATA, "output %d is %s", output, str_text(&what));
    else
        error_set(err, ERR_DATA, "result is %s", str_text(&what));
    str_release(&what);
    return item_fail(item, err);
}

int item_check_numerics(const struct item *item, const struct kernel_call *call, struct error *err)
{
    for (int i = 0; item->node && i < item->n_out; i++) {
        const struct tensor *t = call->out[i];
        if (item->node->outputs[i].is_ref && call->refs)
            for (int k = 0; k < item->n_in; k++)
                if (call->refs[k])
                    t = &call->refs[k]->value;
        int64_t bad = t && t->data && !t->layout ? tensor_find_not_finite(t) : -1;
        if (bad >= 0)
            return fail_not_finite(item, i, t, bad, err);
    }
    return 0;
}

/* ---- the planner's own kernels ---- */

static int fetch_run(struct kernel_call *call)
{
    struct call_host *host = call->executor;
    const struct tensor *in = call->in[0];
    struct tensor *fetch = &host->fetches[*(const int *)call->state];
    if (call->device->is_host)
        return tensor_copy(fetch, in, call->err);
    int code = tensor_alloc(fetch, in->type, &in->shape, call->err);
    return code ? code
                : call->device->copy_out(call->device, fetch->data, in->data, tensor_bytes(in),
                                         true, call->err);
}

const struct kernel_code plan_fetch_code = {.run = fetch_run};

/* Static plans only. */
static int copy_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = call->out[0];
    return call->device->copy(call->device, out->data, in->data, tensor_bytes(in), call->err);
}

const struct kernel_code plan_copy_code = {.run = copy_run};
