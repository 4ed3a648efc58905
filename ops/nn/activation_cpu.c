/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations: element-wise loops of one or two arrays. Those that map 0 to 0 (and, given two
 * arrays, a gradient of 0 to 0) keep the layout of their input, and also run over the padding of
 * its blocks.
 */
#include "base/memory.h"
#include "ops/device/chain_cpu.h"
#include "ops/math/elementwise_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

struct activation_state {
    struct arrivals arrivals;      /* first */
    const struct unary_row *unary; /* one of them is set */
    const struct binary_row *binary;
    int64_t grain;
    size_t item_bytes;
    const struct layout *layout;
};

static int prepare(struct kernel_setup *setup)
{
    const char *op = setup->node->op->def->name;
    enum dtype type = setup->in_types[0].type;
    const struct unary_row *unary = setup->n_in == 1 ? unary_find(op, type) : NULL;
    const struct binary_row *binary = setup->n_in == 2 ? binary_find(op, type) : NULL;
    if (!unary && !binary)
        return kernel_setup_fail(setup, "no loop for %s of %s", op, dtype_name(type));
    struct activation_state *state = setup->state = mem_alloc(sizeof *state);
    state->unary = unary;
    state->binary = binary;
    state->grain = unary ? unary->grain : binary->grain;
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
    const struct activation_state *state = part->state;
    size_t offset = (size_t)begin * state->item_bytes;
    const char *x = part->x + offset;
    return state->unary ? state->unary->loop(end - begin, x, part->out + offset)
                        : state->binary->loop(end - begin, x, part->y + offset, part->out + offset,
                                              BINARY_BOTH);
}

static int run(struct kernel_call *call)
{
    const struct activation_state *state = call->state;
    const void *data[2] = {NULL, NULL};
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || arrivals_run(&state->arrivals, call, data))
        return call->err->code;
    struct activation_work part = {state, data[0], data[1], out->data};
    int64_t n = state->layout ? cpu_layout_count(state->layout) : tensor_count(out);
    parallel_for(call->threads, n, state->grain, run_part, &part);
    return KERNEL_DONE;
}

const struct kernel_code kernel_activation = {
    .prepare = prepare, .run = run, .release = arrivals_release};
