/* SPDX-License-Identifier: Apache-2.0
 *
 * Select, by element size: it only moves bytes.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/kernel.h"
#include "ops/math/broadcast_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/results.h"

/* t_step, e_step: 1 if t, e advances, else 0. The condition always advances. */
typedef void select_loop(int64_t n, const uint8_t *condition, const void *t, int t_step,
                         const void *e, int e_step, void *out);

#define STEPS(...) _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = __VA_ARGS__

#define SELECT_LOOP(name, type)                                                                    \
    static void name(int64_t n, const uint8_t *condition, const void *pt, int t_step,              \
                     const void *pe, int e_step, void *po)                                         \
    {                                                                                              \
        const type *t = pt, *e = pe;                                                               \
        type *out = po, t0 = t[0], e0 = e[0];                                                      \
        if (t_step && e_step)                                                                      \
            STEPS(condition[i] ? t[i] : e[i]);                                                     \
        else if (t_step)                                                                           \
            STEPS(condition[i] ? t[i] : e0);                                                       \
        else if (e_step)                                                                           \
            STEPS(condition[i] ? t0 : e[i]);                                                       \
        else                                                                                       \
            STEPS(condition[i] ? t0 : e0);                                                         \
    }                                                                                              \
    static void name##_fill(int64_t n, const void *px, void *po)                                   \
    {                                                                                              \
        type *out = po, x = *(const type *)px;                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = x;                                                                            \
    }

SELECT_LOOP(select_1, uint8_t)
SELECT_LOOP(select_2, uint16_t)
SELECT_LOOP(select_4, uint32_t)
SELECT_LOOP(select_8, uint64_t)

static const struct {
    size_t bytes;
    select_loop *loop;
    void (*fill)(int64_t n, const void *x, void *out);
} loops[] = {
    {1, select_1, select_1_fill},
    {2, select_2, select_2_fill},
    {4, select_4, select_4_fill},
    {8, select_8, select_8_fill},
};

struct select_plan {
    bool planned;
    struct shape shape;
    struct broadcast broadcast;
};

static bool select_plan(struct select_plan *plan, const struct shape *condition,
                        const struct shape *t, const struct shape *e)
{
    struct shape values;
    if (!shape_broadcast(t, e, &values))
        return false;
    struct shape as = select_condition_shape(condition, &values);
    if (!shape_broadcast(&as, &values, &plan->shape))
        return false;
    broadcast_plan(&plan->broadcast, &plan->shape, (const struct shape *const[]){&as, t, e}, 3);
    return plan->planned = true;
}

static int select_prepare(struct kernel_setup *setup)
{
    struct select_plan *plan = setup->state = mem_alloc(sizeof *plan);
    const struct node_output *in = setup->in_types;
    if (shape_is_known(&in[0].shape) && shape_is_known(&in[1].shape) &&
        shape_is_known(&in[2].shape) &&
        !select_plan(plan, &in[0].shape, &in[1].shape, &in[2].shape))
        return kernel_setup_fail(setup, "the condition does not fit the values");
    for (int i = 1; plan->planned && i <= 2; i++)
        kernel_offer_reuse(setup, i);
    return 0;
}

struct select_work {
    const struct broadcast *broadcast;
    const uint8_t *condition;
    const char *t, *e;
    char *out;
    int64_t bytes;
    size_t loop;
};

static int select_body(void *context, int64_t begin, int64_t end)
{
    const struct select_work *work = context;
    struct broadcast_walk walk;
    struct broadcast_row row;
    broadcast_start(&walk, work->broadcast, begin, end);
    while (broadcast_next(&walk, &row)) {
        const struct broadcast *plan = work->broadcast;
        const uint8_t *condition = work->condition + row.in[0];
        const char *t = work->t + row.in[1] * work->bytes, *e = work->e + row.in[2] * work->bytes;
        char *out = work->out + row.out * work->bytes;
        if (broadcast_advances(plan, 0)) {
            loops[work->loop].loop(row.n, condition, t, broadcast_advances(plan, 1), e,
                                   broadcast_advances(plan, 2), out);
            continue;
        }
        const char *chosen = *condition ? t : e;
        if (!broadcast_advances(plan, *condition ? 1 : 2))
            loops[work->loop].fill(row.n, chosen, out);
        else if (chosen != out)
            memcpy(out, chosen, (size_t)(row.n * work->bytes));
    }
    return 0;
}

static int select_run(struct kernel_call *call)
{
    const struct select_plan *plan = call->state;
    struct select_plan own;
    if (!plan->planned) {
        if (!select_plan(&own, &call->in[0]->shape, &call->in[1]->shape, &call->in[2]->shape))
            return kernel_fail(call, "condition %s does not fit values %s and %s",
                               shape_text(&call->in[0]->shape), shape_text(&call->in[1]->shape),
                               shape_text(&call->in[2]->shape));
        plan = &own;
    }
    struct tensor *out = kernel_alloc_output(call, 0, &plan->shape);
    if (!out)
        return call->err->code;
    struct select_work work = {.broadcast = &plan->broadcast,
                               .condition = call->in[0]->data,
                               .t = call->in[1]->data,
                               .e = call->in[2]->data,
                               .out = out->data,
                               .bytes = (int64_t)dtype_bytes(out->type)};
    while (loops[work.loop].bytes != (size_t)work.bytes)
        work.loop++;
    parallel_for(call->threads, plan->broadcast.count, PARALLEL_GRAIN_MOVE, select_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_select = {.prepare = select_prepare, .run = select_run};
