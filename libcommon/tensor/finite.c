/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "base/str.h"
#include "tensor/tensor.h"

#define BLOCK 4096

/* A float is not finite if all bits of its exponent are set. Blocks of finite floats, which are
 * nearly all, take a loop that the compiler vectorizes. */
#define FIND_NOT_FINITE(name, bits, mask)                                                          \
    static int64_t name(const void *data, int64_t n)                                               \
    {                                                                                              \
        const bits *x = data;                                                                      \
        int64_t start = 0;                                                                         \
        for (; start + BLOCK <= n; start += BLOCK) {                                               \
            bits found = 0;                                                                        \
            for (int64_t i = 0; i < BLOCK; i++)                                                    \
                found |= (bits)((x[start + i] & (mask)) == (mask));                                \
            if (found)                                                                             \
                break;                                                                             \
        }                                                                                          \
        for (int64_t i = start; i < n; i++)                                                        \
            if ((x[i] & (mask)) == (mask))                                                         \
                return i;                                                                          \
        return -1;                                                                                 \
    }

FIND_NOT_FINITE(find_float64, uint64_t, UINT64_C(0x7ff0000000000000))
FIND_NOT_FINITE(find_float32, uint32_t, UINT32_C(0x7f800000))
FIND_NOT_FINITE(find_float16, uint16_t, 0x7c00)
FIND_NOT_FINITE(find_bfloat16, uint16_t, 0x7f80)

int64_t tensor_find_not_finite(const struct tensor *t)
{
    int64_t n = tensor_count(t);
    switch (t->type) {
    case FLOAT64:
        return find_float64(t->data, n);
    case FLOAT32:
        return find_float32(t->data, n);
    case FLOAT16:
        return find_float16(t->data, n);
    case BFLOAT16:
        return find_bfloat16(t->data, n);
    default:
        return -1;
    }
}

void str_print_not_finite(struct str *out, double value, enum dtype type, const struct shape *shape,
                          int64_t index)
{
    str_printf(out, "%s", isnan(value) ? "NaN" : value > 0.0 ? "Inf" : "-Inf");
    if (!shape)
        str_printf(out, " at [%" PRId64 "]", index);
    if (!shape || shape->rank == 0)
        return;
    struct shape at = {.rank = shape->rank};
    for (int i = at.rank - 1; i >= 0; i--) {
        at.dims[i] = index % shape->dims[i];
        index /= shape->dims[i];
    }
    str_printf(out, " at %s of %s", shape_text(&at), shape_text_typed(type, shape));
}

void tensor_print_not_finite(struct str *out, const struct tensor *t, int64_t index)
{
    str_print_not_finite(out, tensor_get_float64(t, index), t->type, &t->shape, index);
}
