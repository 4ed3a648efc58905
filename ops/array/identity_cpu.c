/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose output is their input's memory.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "exec/kernel.h"

static int alias_prepare(struct kernel_setup *setup)
{
    setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

static int alias_run(struct kernel_call *call)
{
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_identity = {.prepare = alias_prepare, .run = alias_run};

/* ---- CheckNumerics ---- */

#define BLOCK 4096

struct check {
    const char *message;
};

static int check_prepare(struct kernel_setup *setup)
{
    struct check *check = mem_alloc(sizeof *check);
    check->message = node_string(setup->node, "message");
    setup->state = check;
    setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

/* A float is not finite if all bits of its exponent are set. Blocks without one, which are nearly
 * all, take a loop that the compiler vectorizes. */
#define FIND_NOT_FINITE(name, bits, mask)                                                          \
    static int64_t name(const void *data, int64_t n)                                               \
    {                                                                                              \
        const bits *x = data;                                                                      \
        for (int64_t start = 0; start < n; start += BLOCK) {                                       \
            int64_t end = start + BLOCK < n ? start + BLOCK : n;                                   \
            bits found = 0;                                                                        \
            for (int64_t i = start; i < end; i++)                                                  \
                found |= (bits)((x[i] & (mask)) == (mask));                                        \
            for (int64_t i = start; found && i < end; i++)                                         \
                if ((x[i] & (mask)) == (mask))                                                     \
                    return i;                                                                      \
        }                                                                                          \
        return -1;                                                                                 \
    }

FIND_NOT_FINITE(find_float64, uint64_t, UINT64_C(0x7ff0000000000000))
FIND_NOT_FINITE(find_float32, uint32_t, UINT32_C(0x7f800000))
FIND_NOT_FINITE(find_float16, uint16_t, 0x7c00)
FIND_NOT_FINITE(find_bfloat16, uint16_t, 0x7f80)

static int64_t find_not_finite(const struct tensor *t)
{
    int64_t n = tensor_count(t);
    switch (t->type) {
    case FLOAT64:
        return find_float64(t->data, n);
    case FLOAT32:
        return find_float32(t->data, n);
    case FLOAT16:
        return find_float16(t->data, n);
    default:
        return find_bfloat16(t->data, n);
    }
}

static int check_fail(struct kernel_call *call, int64_t index)
{
    const struct tensor *t = call->in[0];
    struct shape at = {.rank = t->shape.rank};
    double value = tensor_get_float64(t, index);
    for (int i = at.rank - 1; i >= 0; i--) {
        at.dims[i] = index % t->shape.dims[i];
        index /= t->shape.dims[i];
    }
    return kernel_fail(call, "%s: %s at %s of %s", ((const struct check *)call->state)->message,
                       isnan(value)  ? "NaN"
                       : value > 0.0 ? "Inf"
                                     : "-Inf",
                       shape_text(&at), shape_text_typed(t->type, &t->shape));
}

static int check_run(struct kernel_call *call)
{
    int64_t bad = find_not_finite(call->in[0]);
    return bad >= 0 ? check_fail(call, bad) : alias_run(call);
}

const struct kernel_code kernel_check_numerics = {.prepare = check_prepare, .run = check_run};
