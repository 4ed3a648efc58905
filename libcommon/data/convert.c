/* SPDX-License-Identifier: Apache-2.0 */
#include "data/convert.h"

#include "base/str.h"

#define LOAD(ctype, expression)                                                                    \
    do {                                                                                           \
        const ctype *items = (const ctype *)from->data + first;                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            values[i] = (double)(expression);                                                      \
        return;                                                                                    \
    } while (0)

void convert_load(const struct tensor *from, int64_t first, int64_t n, double *values)
{
    switch (from->type) {
    case FLOAT32:
        LOAD(float, items[i]);
    case FLOAT64:
        LOAD(double, items[i]);
    case UINT8:
        LOAD(uint8_t, items[i]);
    case INT32:
        LOAD(int32_t, items[i]);
    default:
        for (int64_t i = 0; i < n; i++)
            values[i] = tensor_get_float64(from, first + i);
    }
}

static int check_whole(enum dtype type, int64_t n, const double *values, int64_t *bad,
                       struct error *err)
{
    double least, beyond;
    /* The least value of an integer type, and the first one beyond it: both exact in float64. */
    int bits = type == BOOL ? 1 : 8 * (int)dtype_bytes(type);
    bool is_signed = type == INT8 || type == INT16 || type == INT32 || type == INT64;
    beyond = __builtin_ldexp(1, bits - is_signed);
    least = is_signed ? -beyond : 0;
    for (int64_t i = 0; i < n; i++) {
        double v = values[i];
        if (v >= least && v < beyond && v == __builtin_trunc(v))
            continue;
        struct str text = STR_INIT;
        str_append_float64(&text, v);
        *bad = i;
        error_set(err, ERR_DATA, "%s is not %s %s", str_text(&text), is_signed ? "an" : "a",
                  dtype_name(type));
        str_release(&text);
        return err->code;
    }
    return 0;
}

#define STORE(ctype, expression)                                                                   \
    do {                                                                                           \
        ctype *items = (ctype *)to->data + first;                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            items[i] = (ctype)(expression);                                                        \
        return 0;                                                                                  \
    } while (0)

int convert_store(struct tensor *to, int64_t first, int64_t n, const double *values, int64_t *bad,
                  struct error *err)
{
    if (!dtype_is_floating(to->type)) {
        int code = check_whole(to->type, n, values, bad, err);
        if (code)
            return code;
    }
    switch (to->type) {
    case FLOAT32:
        STORE(float, values[i]);
    case FLOAT64:
        STORE(double, values[i]);
    case INT32:
        STORE(int32_t, values[i]);
    default:
        for (int64_t i = 0; i < n; i++)
            tensor_set_float64(to, first + i, values[i]);
        return 0;
    }
}
