/* SPDX-License-Identifier: Apache-2.0
 *
 * Select, by element size: it only moves bytes.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/math/broadcast_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

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

static int select_prepare(struct kernel_setup *setup)
{
    const struct node_output *in = setup->in_types;
    if (!setup->shapes_known)
        return 0;
    struct broadcast *broadcast = setup->state = mem_alloc(sizeof *broadcast);
    broadcast_plan_select(broadcast, &setup->out_types[0].shape, &in[0].shape, &in[1].shape,
                          &in[2].shape);
    kernel_offer_reuse(setup, 1);
    kernel_offer_reuse(setup, 2);
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
    struct tensor *const *in = call->in, *out = result_outputs(call, 0, 0);
    struct broadcast own;
    if (!out)
        return call->err->code;
    if (!call->shapes_known)
        broadcast_plan_select(&own, &out->shape, &in[0]->shape, &in[1]->shape, &in[2]->shape);
    struct select_work work = {.broadcast = call->shapes_known ? call->state : &own,
                               .condition = in[0]->data,
                               .t = in[1]->data,
                               .e = in[2]->data,
                               .out = out->data,
                               .bytes = (int64_t)dtype_bytes(out->type)};
    while (loops[work.loop].bytes != (size_t)work.bytes)
        work.loop++;
    parallel_for(call->threads, work.broadcast->count, PARALLEL_GRAIN_MOVE, select_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_select = {.prepare = select_prepare, .run = select_run};
