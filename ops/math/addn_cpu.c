/* SPDX-License-Identifier: Apache-2.0
 *
 * AddN: block by block, so that the sum so far stays in the cache.
 */
#include <string.h>

#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

#define ADDN_BLOCK_BYTES 16384

#define ADD_LOOP(type, unsigned_type)                                                              \
    static void add_##type(int64_t n, const void *px, const void *py, void *po)                    \
    {                                                                                              \
        const unsigned_type *x = px, *y = py;                                                      \
        unsigned_type *out = po;                                                                   \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i];                  \
    }

ADD_LOOP(float, float)
ADD_LOOP(double, double)
ADD_LOOP(int32_t, uint32_t)
ADD_LOOP(int64_t, uint64_t)

typedef void add_loop(int64_t n, const void *x, const void *y, void *out);

static int addn_prepare(struct kernel_setup *setup)
{
    setup->out[0].forward = setup->n_in == 1 ? FORWARD_ALIAS : FORWARD_REUSE;
    return 0;
}

struct addn_work {
    struct tensor *const *in;
    int n_in;
    add_loop *loop;
    char *out;
    int64_t bytes;
};

static int addn_body(void *context, int64_t begin, int64_t end)
{
    const struct addn_work *work = context;
    int64_t block = ADDN_BLOCK_BYTES / work->bytes;
    for (int64_t at = begin; at < end; at += block) {
        int64_t n = end - at < block ? end - at : block, offset = at * work->bytes;
        const char *sum = (const char *)work->in[0]->data + offset;
        for (int i = 1; i < work->n_in; i++) {
            work->loop(n, sum, (const char *)work->in[i]->data + offset, work->out + offset);
            sum = work->out + offset;
        }
    }
    return 0;
}

static int addn_run(struct kernel_call *call)
{
    if (call->n_in == 1)
        return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    add_loop *loop = out->type == FLOAT32   ? add_float
                     : out->type == FLOAT64 ? add_double
                     : out->type == INT32   ? add_int32_t
                                            : add_int64_t;
    struct addn_work work = {call->in, call->n_in, loop, out->data,
                             (int64_t)dtype_bytes(out->type)};
    parallel_for(call->threads, tensor_count(out), PARALLEL_GRAIN_MOVE, addn_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_addn = {.prepare = addn_prepare, .run = addn_run};
