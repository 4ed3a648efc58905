/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations: loops over one or two arrays. Those that map 0 to 0 (and, given two arrays, a
 * gradient of 0 to 0) keep the layout that they are given, and run over the padding of its blocks,
 * too.
 */
#include "ops/nn/activation_cpu.h"

#include <math.h>
#include <string.h>

#include "ops/device/chain_cpu.h"
#include "ops/device/form_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/activation.h"
#include "ops/nn/activation_math.h"

#define LOOP(name, type, ...)                                                                      \
    static void name(int64_t n, const void *px, const void *py, void *pout)                        \
    {                                                                                              \
        const type *xs = px, *ys = py;                                                             \
        type *out = pout;                                                                          \
        (void)ys;                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                        \
        {                                                                                          \
            type x = xs[i];                                                                        \
            out[i] = __VA_ARGS__;                                                                  \
        }                                                                                          \
    }

#define LOOPS(type)                                                                                \
    LOOP(relu_##type, type, x < 0 ? 0 : x)                                                         \
    LOOP(relu_grad_##type, type, ys[i] > 0 ? x : 0)                                                \
    LOOP(relu6_##type, type, x<0 ? 0 : x> 6 ? 6 : x)                                               \
    LOOP(relu6_grad_##type, type, ys[i] > 0 && ys[i] < 6 ? x : 0)

LOOPS(float)
LOOPS(double)
LOOPS(int32_t)
LOOPS(int64_t)
LOOP(relu_uint64_t, uint64_t, x)
LOOP(relu6_uint64_t, uint64_t, x > 6 ? 6 : x)
LOOP(relu_grad_uint64_t, uint64_t, ys[i] > 0 ? x : 0)
LOOP(relu6_grad_uint64_t, uint64_t, ys[i] > 0 && ys[i] < 6 ? x : 0)

LOOP(elu_float, float, x < 0.0f ? activation_expm1(x) : x)
LOOP(elu_double, double, x < 0 ? expm1(x) : x)
LOOP(elu_grad_float, float, ys[i] < 0.0f ? x * (ys[i] + 1.0f) : x)
LOOP(elu_grad_double, double, ys[i] < 0 ? x * (ys[i] + 1) : x)
LOOP(softplus_loop_float, float, activation_softplus(x))
LOOP(softplus_loop_double, double, activation_softplus64(x))
LOOP(softplus_grad_float, float, activation_softplus_grad(x, ys[i]))
LOOP(softplus_grad_double, double, activation_softplus_grad64(x, ys[i]))

struct activation_row {
    const char *op;
    bool layouts;
    int64_t grain;
    activation_loop *float32, *float64, *int32, *int64, *uint64;
};

#define ALL(name) name##_float, name##_double, name##_int32_t, name##_int64_t, name##_uint64_t

#define FLOATS(name) name##_float, name##_double, NULL, NULL, NULL

static const struct activation_row activations[] = {
    {"Relu", true, PARALLEL_GRAIN_MOVE, ALL(relu)},
    {"ReluGrad", true, PARALLEL_GRAIN_MOVE, ALL(relu_grad)},
    {"Relu6", true, PARALLEL_GRAIN_MOVE, ALL(relu6)},
    {"Relu6Grad", true, PARALLEL_GRAIN_MOVE, ALL(relu6_grad)},
    {"Elu", false, PARALLEL_GRAIN_COMPUTE, FLOATS(elu)},
    {"EluGrad", false, PARALLEL_GRAIN_MOVE, FLOATS(elu_grad)},
    {"Softplus", false, PARALLEL_GRAIN_COMPUTE, FLOATS(softplus_loop)},
    {"SoftplusGrad", false, PARALLEL_GRAIN_COMPUTE, FLOATS(softplus_grad)},
};

static activation_loop *find_loop(const struct activation_row *row, enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return row->float32;
    case FLOAT64:
        return row->float64;
    case INT32:
        return row->int32;
    case UINT64:
        return row->uint64;
    default:
        return row->int64;
    }
}

activation_loop *activation_find(const char *op, enum dtype type, bool *keeps_zero)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (!strcmp(activations[i].op, op)) {
            *keeps_zero = activations[i].layouts;
            return find_loop(&activations[i], type);
        }
    return NULL;
}

struct activation_state {
    activation_loop *loop;
    int64_t grain;
    size_t item_bytes;
    const struct layout *layout;
    struct arrivals arrivals;
};

/* All operands in the layout of the first that has one. */
static int prepare_layout(struct kernel_setup *setup, struct activation_state *state)
{
    const struct layout *const *in = setup->in_layouts, *wanted[2];
    for (int i = 0; in && i < setup->n_in && !state->layout; i++)
        state->layout = in[i];
    wanted[0] = wanted[1] = state->layout;
    setup->out[0].layout = state->layout;
    return arrivals_prepare(&state->arrivals, setup, wanted);
}

static void release(void *pointer)
{
    struct activation_state *state = pointer;
    arrivals_release(&state->arrivals);
    mem_free(state);
}

static int prepare(struct kernel_setup *setup)
{
    const struct activation_row *activation = FORM_FIND(setup, activations);
    if (!activation)
        return setup->err->code;
    struct activation_state *state = mem_alloc(sizeof *state);
    enum dtype type = setup->in_types[0].type;
    state->loop = find_loop(activation, type);
    state->grain = activation->grain;
    state->item_bytes = dtype_bytes(type);
    if (prepare_layout(setup, state)) {
        release(state);
        return setup->err->code;
    }
    setup->state = state;
    setup->out[0].forward = state->arrivals.moved[0] < 0 ? FORWARD_REUSE : FORWARD_NONE;
    return 0;
}

struct activation_work {
    const struct activation_state *state;
    const char *x, *y;
    char *out;
};

static int run_part(void *context, int64_t begin, int64_t end)
{
    const struct activation_work *part = context;
    size_t offset = (size_t)begin * part->state->item_bytes;
    part->state->loop(end - begin, part->x + offset, part->y ? part->y + offset : NULL,
                      part->out + offset);
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct activation_state *state = call->state;
    const void *data[2] = {NULL, NULL};
    if (activation_check_shapes(call))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &call->in[0]->shape);
    if (!out || arrivals_run(&state->arrivals, call, data))
        return call->err->code;
    struct activation_work part = {state, data[0], data[1], out->data};
    int64_t n = state->layout ? cpu_layout_count(state->layout) : tensor_count(out);
    parallel_for(call->threads, n, state->grain, run_part, &part);
    return KERNEL_DONE;
}

const struct kernel_code kernel_activation = {.prepare = prepare, .run = run, .release = release};
