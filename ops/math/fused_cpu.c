/* SPDX-License-Identifier: Apache-2.0
 *
 * Several element-wise ops, a block of elements at a time: one op's result is still in the
 * first-level cache for the next. The loops, and so the bits, are those of the separate ops.
 */
#include "base/memory.h"
#include "ops/math/elementwise_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

#define BLOCK_BYTES 2048
#define REGISTERS_MAX 16 /* blocks that exist at once */

struct fused_step {
    unary_loop *unary; /* or: */
    binary_loop *binary;
    int operands[FUSED_OPERANDS]; /* inputs, then registers */
    int result;                   /* a register; of the last step: none */
};

struct fused_state {
    int n_in, n_steps;
    int64_t grain;
    struct fused_step steps[];
};

/* ---- made once ---- */

static int find_loops(struct kernel_setup *setup, struct fused_state *state)
{
    const struct attr_value *ops = node_attr(setup->node, "ops");
    const int64_t *operands = node_attr(setup->node, "operands")->ints;
    enum dtype type = setup->out_types[0].type;
    for (int i = 0; i < state->n_steps; i++) {
        struct fused_step *step = &state->steps[i];
        const struct unary_row *unary = unary_find(ops->strings[i], type);
        const struct binary_row *binary = binary_find(ops->strings[i], type);
        bool is_unary = operands[i * FUSED_OPERANDS + 1] < 0;
        step->unary = unary ? unary->loop : NULL;
        step->binary = binary ? binary->loop : NULL;
        if (is_unary ? !unary : !binary)
            return kernel_setup_fail(setup, "no loop for %s of %d %s", ops->strings[i],
                                     is_unary ? 1 : 2, dtype_name(type));
        int64_t grain = is_unary ? unary->grain : binary->grain;
        state->grain = grain < state->grain ? grain : state->grain;
    }
    return 0;
}

/* A loop may write in place, so a result may reuse the register of an operand. */
static int assign_registers(struct kernel_setup *setup, struct fused_state *state)
{
    const struct attr_value *operands = node_attr(setup->node, "operands");
    int busy_until[REGISTERS_MAX] = {0};
    int *last = mem_array((size_t)state->n_steps, sizeof *last);
    int code = 0;
    /* The last step that uses each step's result. */
    for (int i = 0; i < state->n_steps; i++)
        last[i] = i;
    for (int i = 0; i < operands->n; i++)
        if (operands->ints[i] >= state->n_in)
            last[operands->ints[i] - state->n_in] = i / FUSED_OPERANDS;
    for (int i = 0; i < state->n_steps && !code; i++) {
        struct fused_step *step = &state->steps[i];
        for (int k = 0; k < FUSED_OPERANDS; k++) {
            int from = (int)operands->ints[i * FUSED_OPERANDS + k];
            bool is_result = from >= state->n_in;
            step->operands[k] =
                is_result ? state->n_in + state->steps[from - state->n_in].result : from;
        }
        step->result = 0;
        while (step->result < REGISTERS_MAX && busy_until[step->result] > i)
            step->result++;
        if (step->result == REGISTERS_MAX)
            code =
                kernel_setup_fail(setup, "more than %d results are needed at once", REGISTERS_MAX);
        else
            busy_until[step->result] = last[i];
    }
    mem_free(last);
    return code;
}

static int fused_prepare(struct kernel_setup *setup)
{
    int n = node_attr(setup->node, "ops")->n;
    struct fused_state *state = mem_alloc(sizeof *state + (size_t)n * sizeof *state->steps);
    setup->state = state;
    state->n_in = setup->n_in;
    state->n_steps = n;
    state->grain = PARALLEL_GRAIN_MOVE;
    int code = find_loops(setup, state);
    if (!code)
        code = assign_registers(setup, state);
    for (int i = 0; !code && setup->shapes_known && i < setup->n_in; i++)
        kernel_offer_reuse(setup, i);
    return code;
}

/* ---- run ---- */

struct fused_work {
    const struct fused_state *state;
    const struct tensor *const *in;
    char *out;
    int64_t count;
    size_t bytes; /* of an element */
};

struct fused_operand {
    const char *data;
    bool stands; /* still */
};

static struct fused_operand operand_at(const struct fused_work *work,
                                       char (*registers)[BLOCK_BYTES], int operand, int64_t at)
{
    if (operand >= work->state->n_in)
        return (struct fused_operand){registers[operand - work->state->n_in], false};
    const struct tensor *t = work->in[operand];
    bool stands = work->count != 1 && tensor_count(t) == 1;
    return (struct fused_operand){(const char *)t->data + (stands ? 0 : (size_t)at * work->bytes),
                                  stands};
}

static void run_step(const struct fused_work *work, const struct fused_step *step,
                     char (*registers)[BLOCK_BYTES], char *to, int64_t at, int64_t n)
{
    struct fused_operand x = operand_at(work, registers, step->operands[0], at);
    if (step->operands[1] < 0) {
        step->unary(n, x.data, to);
        return;
    }
    struct fused_operand y = operand_at(work, registers, step->operands[1], at);
    enum binary_mode mode = x.stands ? BINARY_SCALAR_X : y.stands ? BINARY_SCALAR_Y : BINARY_BOTH;
    step->binary(n, x.data, y.data, to, mode);
}

static int fused_body(void *context, int64_t begin, int64_t end)
{
    _Alignas(64) char registers[REGISTERS_MAX][BLOCK_BYTES];
    const struct fused_work *work = context;
    int64_t most = BLOCK_BYTES / (int64_t)work->bytes;
    const struct fused_step *last = &work->state->steps[work->state->n_steps - 1];
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < most ? end - at : most;
        for (const struct fused_step *step = work->state->steps; step < last; step++)
            run_step(work, step, registers, registers[step->result], at, n);
        run_step(work, last, registers, work->out + (size_t)at * work->bytes, at, n);
    }
    return 0;
}

static int fused_run(struct kernel_call *call)
{
    const struct fused_state *state = call->state;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    struct fused_work work = {.state = state,
                              .in = (const struct tensor *const *)call->in,
                              .out = out->data,
                              .count = tensor_count(out),
                              .bytes = dtype_bytes(out->type)};
    parallel_for(call->threads, work.count, state->grain, fused_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_fused_elementwise = {.prepare = fused_prepare, .run = fused_run};
