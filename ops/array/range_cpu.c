/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

/* Element i is start + i * delta, no running sum, which adds up errors. Integers wrap around. */
#define RANGE(name, type, unit)                                                                    \
    static int name(void *context, int64_t begin, int64_t end)                                     \
    {                                                                                              \
        const struct progression *p = context;                                                     \
        type *y = p->out, from = *(const type *)p->start, step = *(const type *)p->delta;          \
        for (int64_t i = begin; i < end; i++)                                                      \
            y[i] = from + (unit)i * step;                                                          \
        return 0;                                                                                  \
    }

struct progression {
    const void *start, *delta;
    void *out;
};

RANGE(range_float32, float, float)
RANGE(range_float64, double, double)
RANGE(range_int32, uint32_t, uint32_t)
RANGE(range_int64, uint64_t, uint64_t)

static int range_run(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 0, 3);
    if (!out)
        return call->err->code;
    struct progression p = {call->in[0]->data, call->in[2]->data, out->data};
    parallel_body *loop = out->type == FLOAT32   ? range_float32
                          : out->type == FLOAT64 ? range_float64
                          : out->type == INT32   ? range_int32
                                                 : range_int64;
    parallel_for(call->threads, tensor_count(out), PARALLEL_GRAIN_MOVE, loop, &p);
    return KERNEL_DONE;
}

const struct kernel_code kernel_range = {.run = range_run};
