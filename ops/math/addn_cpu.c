/* SPDX-License-Identifier: Apache-2.0
 *
 * AddN: block by block, so that the sum so far stays in the cache.
 */
#include "base/memory.h"
#include "ops/math/elementwise_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"

#define ADDN_BLOCK_BYTES 16384

static int addn_prepare(struct kernel_setup *setup)
{
    const struct binary_row **add = setup->state = mem_alloc(sizeof *add);
    *add = binary_find("Add", setup->in_types[0].type);
    setup->out[0].forward = setup->n_in == 1 ? FORWARD_ALIAS : FORWARD_REUSE;
    return 0;
}

struct addn_work {
    struct tensor *const *in;
    int n_in;
    binary_loop *loop;
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
            work->loop(n, sum, (const char *)work->in[i]->data + offset, work->out + offset,
                       BINARY_BOTH);
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
    struct addn_work work = {call->in, call->n_in, (*(const struct binary_row **)call->state)->loop,
                             out->data, (int64_t)dtype_bytes(out->type)};
    parallel_for(call->threads, tensor_count(out), PARALLEL_GRAIN_MOVE, addn_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_addn = {.prepare = addn_prepare, .run = addn_run};
