/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of types that no processor computes in, by kernels of wider types: floats of 16 bits by
 * way of float32, integers of 8 and 16 bits by way of int32, uint32 by way of int64. The kernel
 * sees a node of the wide type, its inputs widened, and memory of its own for outputs, which are
 * narrowed when it is done. Inputs of other types (axes, sizes, booleans) are passed on unchanged.
 * Element-wise kernels avoid copies of whole tensors: they convert a block at a time.
 *
 * Integers are narrowed by dropping their upper bits, which gives what a sum, difference or product
 * that wraps around has; `bounded` ones are clamped to their type's range (as the maximum of no
 * elements). References are not widened: a kernel updates a variable in place, a block at a time
 * (ops/train/apply_cpu.c, ops/math/accumulate_cpu.c).
 */
#include "ops/device/widened_cpu.h"

#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "ops/device/cpu.h"
#include "ops/math/parallel_cpu.h"
#include "tensor/narrow_private.h"

enum dtype widened_type(enum dtype type)
{
    switch (type) {
    case FLOAT16:
    case BFLOAT16:
        return FLOAT32;
    case INT8:
    case INT16:
    case UINT8:
    case UINT16:
        return INT32;
    case UINT32:
        return INT64;
    default:
        return type;
    }
}

static bool is_narrow(enum dtype type)
{
    return widened_type(type) != type;
}

/* ---- converting ---- */

#define CONVERT(name, from, to, ...)                                                               \
    static void name(const void *px, void *py, int64_t n)                                          \
    {                                                                                              \
        const from *xs = px;                                                                       \
        to *y = py;                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            from x = xs[i];                                                                        \
            y[i] = (to)(__VA_ARGS__);                                                              \
        }                                                                                          \
    }
#define INTEGER(type, narrow, wide, low, high)                                                     \
    CONVERT(widen_##type, narrow, wide, x)                                                         \
    CONVERT(wrap_##type, wide, narrow, x)                                                          \
    CONVERT(bound_##type, wide, narrow, x<low ? low : x> high ? high : x)
#define FLOAT(type)                                                                                \
    static void widen_##type(const void *x, void *y, int64_t n)                                    \
    {                                                                                              \
        widen_array(type, x, y, n);                                                                \
    }                                                                                              \
    static void narrow_##type(const void *x, void *y, int64_t n)                                   \
    {                                                                                              \
        narrow_array(type, x, y, n);                                                               \
    }

FLOAT(FLOAT16)
FLOAT(BFLOAT16)
INTEGER(INT8, int8_t, int32_t, INT8_MIN, INT8_MAX)
INTEGER(INT16, int16_t, int32_t, INT16_MIN, INT16_MAX)
INTEGER(UINT8, uint8_t, int32_t, 0, UINT8_MAX)
INTEGER(UINT16, uint16_t, int32_t, 0, UINT16_MAX)
INTEGER(UINT32, uint32_t, int64_t, 0, UINT32_MAX)

const struct widened_conversion widened_conversions[32] = {
    [FLOAT16] = {widen_FLOAT16, narrow_FLOAT16, narrow_FLOAT16},
    [BFLOAT16] = {widen_BFLOAT16, narrow_BFLOAT16, narrow_BFLOAT16},
    [INT8] = {widen_INT8, wrap_INT8, bound_INT8},
    [INT16] = {widen_INT16, wrap_INT16, bound_INT16},
    [UINT8] = {widen_UINT8, wrap_UINT8, bound_UINT8},
    [UINT16] = {widen_UINT16, wrap_UINT16, bound_UINT16},
    [UINT32] = {widen_UINT32, wrap_UINT32, bound_UINT32},
};

struct widening_call {
    widened_loop *loop;
    const char *from;
    char *to;
    size_t from_bytes, to_bytes; /* of an element */
};

static int convert_part(void *context, int64_t begin, int64_t end)
{
    const struct widening_call *part = context;
    part->loop(part->from + (size_t)begin * part->from_bytes,
               part->to + (size_t)begin * part->to_bytes, end - begin);
    return 0;
}

static void convert(widened_loop *loop, const struct tensor *from, const struct tensor *to,
                    int threads)
{
    struct widening_call part = {loop, from->data, to->data, dtype_bytes(from->type),
                                 dtype_bytes(to->type)};
    parallel_for(threads, tensor_count(from), PARALLEL_GRAIN_MOVE, convert_part, &part);
}

/* ---- preparing ---- */

enum { FORM_WIDENED, FORM_BOUNDED };

struct widened_kernel {
    const struct kernel_code *code;
    void *state;
    struct node node;     /* as the kernel sees it */
    bool planned;         /* wide tensors lie in scratch, which begins with the kernel's own */
    size_t scratch_bytes; /* of the kernel's own */
};

static void release(void *pointer)
{
    struct widened_kernel *w = pointer;
    if (w->code && w->code->release)
        w->code->release(w->state);
    else
        mem_free(w->state);
    mem_free(w->node.attrs);
    mem_free(w->node.outputs);
    mem_free(w);
}

static void widen_types(struct node_output *to, const struct node_output *from, int n)
{
    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].type = widened_type(from[i].type);
    }
}

static size_t wide_bytes(const struct node_output *types, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (is_narrow(types[i].type))
            bytes += ALIGN_UP((size_t)shape_bytes(&types[i].shape, widened_type(types[i].type)));
    return bytes;
}

static size_t header_bytes(int n_in, int n_out)
{
    return ALIGN_UP((size_t)(n_in + n_out) * (sizeof(struct tensor) + sizeof(struct tensor *)));
}

static int prepare_inner(struct kernel_setup *setup, struct widened_kernel *w)
{
    struct arena arena = ARENA_INIT;
    struct kernel_setup inner = *setup;
    size_t n_in = (size_t)setup->n_in + 1;
    struct node_output *in_types = arena_array(&arena, n_in, sizeof *in_types);
    const struct tensor **in_values = arena_array(&arena, n_in, sizeof *in_values);
    widen_types(in_types, setup->in_types, setup->n_in);
    for (int i = 0; i < setup->n_in; i++)
        in_values[i] = is_narrow(setup->in_types[i].type) ? NULL : setup->in_values[i];
    inner.node = &w->node;
    inner.form = w->code->form;
    inner.in_types = in_types;
    inner.out_types = w->node.outputs;
    inner.in_values = in_values;
    inner.layouts = false;
    inner.state = NULL;
    int code = w->code->prepare ? w->code->prepare(&inner) : 0;
    w->state = inner.state;
    w->scratch_bytes = ALIGN_UP(inner.scratch_bytes);
    setup->name = inner.name;
    arena_release(&arena);
    return code;
}

static int prepare(struct kernel_setup *setup)
{
    const char *name =
        setup->name + strlen(setup->form == FORM_BOUNDED ? CPU_BOUNDED : CPU_WIDENED);
    struct widened_kernel *w = setup->state = mem_alloc(sizeof *w);
    w->code = setup->device->code(setup->device, name);
    w->planned = setup->shapes_known;
    const struct node *from = setup->node;
    w->node = *from;
    w->node.attrs = mem_array((size_t)from->n_attrs + 1, sizeof *w->node.attrs);
    w->node.outputs = mem_array((size_t)from->n_outputs + 1, sizeof *w->node.outputs);
    widen_types(w->node.outputs, from->outputs, from->n_outputs);
    for (int i = 0; i < from->n_attrs; i++) {
        w->node.attrs[i] = from->attrs[i];
        if (from->attrs[i].value.kind == ATTR_TYPE)
            w->node.attrs[i].value = attr_type(widened_type(from->attrs[i].value.type));
    }
    setup->name = name;
    int code = prepare_inner(setup, w);
    if (code)
        return code;
    /* An output may be, or overwrite, its input if they have one type: then the input is read
     * before anything is written. */
    for (int i = 0; i < setup->n_out; i++) {
        struct kernel_output *out = &setup->out[i];
        if (out->forward && setup->out_types[i].type != setup->in_types[out->from].type)
            *out = (struct kernel_output){FORWARD_NONE, 0, NULL};
    }
    setup->scratch_bytes = w->scratch_bytes + header_bytes(setup->n_in, setup->n_out);
    if (w->planned)
        setup->scratch_bytes +=
            wide_bytes(setup->in_types, setup->n_in) + wide_bytes(setup->out_types, setup->n_out);
    return 0;
}

/* ---- running ---- */

struct wide_call {
    struct kernel_call call; /* as the kernel sees it */
    struct kernel_call *outer;
    const struct widened_kernel *w;
    struct tensor *in, *out; /* the wide tensors */
    char *next;              /* free scratch memory, if the plan knows the shapes */
};

/* Allocates memory for a wide tensor. */
static int make_wide(struct wide_call *wide, struct tensor *t, enum dtype narrow,
                     const struct shape *shape)
{
    *t = tensor_borrow(widened_type(narrow), shape, wide->next);
    if (!wide->w->planned)
        return tensor_alloc(t, widened_type(narrow), shape, wide->call.err);
    wide->next += ALIGN_UP(tensor_bytes(t));
    return 0;
}

static struct tensor *alloc_output(struct kernel_call *call, int i, const struct shape *shape)
{
    struct wide_call *wide = CONTAINER_OF(call, struct wide_call, call);
    struct tensor *out = kernel_alloc_output(wide->outer, i, shape);
    if (!out || !is_narrow(out->type))
        return out;
    return make_wide(wide, &wide->out[i], out->type, shape) ? NULL : &wide->out[i];
}

static struct tensor *alias_output(struct kernel_call *call, int i, int from,
                                   const struct shape *shape)
{
    const struct wide_call *wide = CONTAINER_OF(call, struct wide_call, call);
    return kernel_alias_output(wide->outer, i, from, shape);
}

static const struct kernel_outputs outputs = {alloc_output, alias_output};

static void open_call(struct wide_call *wide, struct kernel_call *outer)
{
    const struct widened_kernel *w = outer->state;
    char *scratch = (char *)outer->scratch + w->scratch_bytes;
    int n = outer->n_in + outer->n_out;
    *wide = (struct wide_call){.call = *outer, .outer = outer, .w = w};
    wide->in = memset(scratch, 0, (size_t)n * sizeof *wide->in);
    wide->out = wide->in + outer->n_in;
    wide->next = scratch + header_bytes(outer->n_in, outer->n_out);
    struct tensor **in = (struct tensor **)(void *)(wide->in + n), **out = in + outer->n_in;
    for (int i = 0; i < outer->n_in; i++)
        in[i] = is_narrow(outer->in[i]->type) ? &wide->in[i] : outer->in[i];
    for (int i = 0; i < outer->n_out; i++)
        out[i] = is_narrow(outer->node->outputs[i].type) ? &wide->out[i] : outer->out[i];
    wide->call.node = &w->node;
    wide->call.state = w->state;
    wide->call.form = w->code->form;
    wide->call.scratch_bytes = w->scratch_bytes;
    wide->call.in = in;
    wide->call.out = out;
    wide->call.outputs = &outputs;
}

static int run(struct kernel_call *call)
{
    struct wide_call wide;
    open_call(&wide, call);
    int result = 0;
    for (int i = 0; i < call->n_in && !result; i++) {
        const struct tensor *in = call->in[i];
        if (!is_narrow(in->type))
            continue;
        if (make_wide(&wide, &wide.in[i], in->type, &in->shape))
            result = call->err->code;
        else
            convert(widened_conversions[in->type].widen, in, &wide.in[i], call->threads);
    }
    if (!result)
        result = wide.w->code->run(&wide.call);
    if (result == KERNEL_DONE) {
        /* Narrows outputs that the kernel has made, not those that are an input's memory. */
        for (int i = 0; i < call->n_out; i++) {
            const struct tensor *from = &wide.out[i], *to = call->out[i];
            const struct widened_conversion *c = &widened_conversions[to->type];
            if (from->data)
                convert(call->form == FORM_BOUNDED ? c->bound : c->narrow, from, to, call->threads);
        }
    }
    for (int i = 0; i < call->n_in + call->n_out; i++)
        tensor_release(&wide.in[i]);
    return result;
}

const struct kernel_code kernel_widened = {
    .prepare = prepare, .run = run, .release = release, .form = FORM_WIDENED};
const struct kernel_code kernel_bounded = {
    .prepare = prepare, .run = run, .release = release, .form = FORM_BOUNDED};
