/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations: loops over one or two arrays. Those that map 0 to 0 (and, given two arrays, a
 * gradient of 0 to 0) keep the layout of their input, and also run over the padding of its blocks.
 */
#include "ops/nn/activation_cpu.h"

#include <math.h>
#include <string.h>

#include "ops/device/chain_cpu.h"
#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/activation_math.h"
#include "ops/nn/checks.h"

#define ACTIVATION_LOOP_OF(name, type, twin, arguments, element)                                   \
    static void name(int64_t n, const void *px, const void *py, void *pout)                        \
    {                                                                                              \
        ELEMENT_TYPES(type, twin)                                                                  \
        const type *xs = px, *ys = py;                                                             \
        type *out = pout;                                                                          \
        (void)ys;                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                        \
        {                                                                                          \
            type arguments;                                                                        \
            out[i] = element;                                                                      \
        }                                                                                          \
    }
#define ONE x = xs[i]
#define TWO x = xs[i], y = ys[i]
#define ACTIVATION_LOOP(name, type, twin, element)                                                 \
    ACTIVATION_LOOP_OF(name, type, twin, ONE, element)
#define GRAD_LOOP(name, type, twin, element) ACTIVATION_LOOP_OF(name, type, twin, TWO, element)
#define LOOPS(op, name, types, grain, ...) types##_LOOPS(ACTIVATION, name, __VA_ARGS__)
#define GRAD_LOOPS(op, name, types, grain, ...) types##_LOOPS(GRAD, name, __VA_ARGS__)
ACTIVATION_MASKS(LOOPS)
ACTIVATION_CURVES(LOOPS)
ACTIVATION_MASK_GRADS(GRAD_LOOPS)
ACTIVATION_CURVE_GRADS(GRAD_LOOPS)

struct activation_row {
    const char *op;
    enum dtype type;
    activation_loop *loop;
    const char *name;
    int64_t grain;
};

/* clang-format off */
static const struct activation_row masks[] = {
    ACTIVATION_MASKS(ELEMENT_ROWS)
    ACTIVATION_MASK_GRADS(ELEMENT_ROWS)
    {0},
}, curves[] = {
    ACTIVATION_CURVES(ELEMENT_ROWS)
    ACTIVATION_CURVE_GRADS(ELEMENT_ROWS)
    {0},
};
/* clang-format on */

static const struct activation_row *find_row(const char *op, enum dtype type, bool *keeps_zero)
{
    for (int is_curve = 0; is_curve < 2; is_curve++)
        for (const struct activation_row *row = is_curve ? curves : masks; row->op; row++)
            if (row->type == type && !strcmp(row->op, op)) {
                *keeps_zero = !is_curve;
                return row;
            }
    return NULL;
}

activation_loop *activation_find(const char *op, enum dtype type, bool *keeps_zero)
{
    const struct activation_row *row = find_row(op, type, keeps_zero);
    return row ? row->loop : NULL;
}

struct activation_state {
    struct arrivals arrivals; /* first */
    activation_loop *loop;
    int64_t grain;
    size_t item_bytes;
    const struct layout *layout;
};

static int prepare(struct kernel_setup *setup)
{
    const char *op = setup->node->op->def->name;
    enum dtype type = setup->in_types[0].type;
    bool ignored;
    const struct activation_row *row = find_row(op, type, &ignored);
    if (!row)
        return kernel_setup_fail(setup, "no loop for %s of %s", op, dtype_name(type));
    struct activation_state *state = setup->state = mem_alloc(sizeof *state);
    state->loop = row->loop;
    state->grain = row->grain;
    state->item_bytes = dtype_bytes(type);
    /* All operands get the layout of the first that has one. */
    const struct layout *const *in = setup->in_layouts, *wanted[2];
    for (int i = 0; in && i < setup->n_in && !state->layout; i++)
        state->layout = in[i];
    wanted[0] = wanted[1] = state->layout;
    setup->out[0].layout = state->layout;
    if (arrivals_prepare(&state->arrivals, setup, wanted))
        return setup->err->code;
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

const struct kernel_code kernel_activation = {
    .prepare = prepare, .run = run, .release = arrivals_release};
