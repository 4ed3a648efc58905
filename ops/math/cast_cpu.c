/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast: block by block through a wide type (float64, int64, uint64) that holds every value of the
 * source; frequent pairs directly. 16-bit floats are converted to and from float32 with vectors.
 */
#include <math.h>

#include "exec/device/kernel.h"
#include "ops/math/parallel_cpu.h"
#include "tensor/narrow_private.h"

#define CAST_BLOCK 512

/*      type     C type    wide */
#define CAST_TYPES(X)                                                                              \
    X(FLOAT32, float, double)                                                                      \
    X(FLOAT64, double, double)                                                                     \
    X(INT8, int8_t, int64_t)                                                                       \
    X(INT16, int16_t, int64_t)                                                                     \
    X(INT32, int32_t, int64_t)                                                                     \
    X(INT64, int64_t, int64_t)                                                                     \
    X(UINT8, uint8_t, int64_t)                                                                     \
    X(UINT16, uint16_t, int64_t)                                                                   \
    X(UINT32, uint32_t, int64_t)                                                                   \
    X(UINT64, uint64_t, uint64_t)

typedef void cast_loop(int64_t n, const void *x, void *out);

#define CONVERT(name, from, to, ...)                                                               \
    static void name(int64_t n, const void *px, void *po)                                          \
    {                                                                                              \
        const from *xs = px;                                                                       \
        to *out = po;                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            from x = xs[i];                                                                        \
            out[i] = (to)(__VA_ARGS__);                                                            \
        }                                                                                          \
    }

/* Loads convert to the wide type. */
#define X(type, c, wide) CONVERT(load_##type, c, wide, x)
CAST_TYPES(X)
#undef X
CONVERT(load_BOOL, uint8_t, int64_t, x)

/* Loads at most CAST_BLOCK elements. */
#define LOAD_HALF(type)                                                                            \
    static void load_##type(int64_t n, const void *x, void *out)                                   \
    {                                                                                              \
        float wide[CAST_BLOCK];                                                                    \
        widen_array(type, x, wide, n);                                                             \
        load_FLOAT32(n, wide, out);                                                                \
    }
LOAD_HALF(FLOAT16)
LOAD_HALF(BFLOAT16)

/* Stores from integers wrap around or round, as in C. */
#define X(type, c, wide) CONVERT(store_int_##type, int64_t, c, x)
#define Y(type, c, wide) CONVERT(store_uint_##type, uint64_t, c, x)
CAST_TYPES(X)
CAST_TYPES(Y)
#undef X
#undef Y

/* Stores at most CAST_BLOCK elements to 16 bits, after `single` has converted them to float32. */
#define STORE_HALF(name, type, single)                                                             \
    static void name(int64_t n, const void *x, void *out)                                          \
    {                                                                                              \
        float narrow[CAST_BLOCK];                                                                  \
        single(n, x, narrow);                                                                      \
        narrow_array(type, narrow, out, n);                                                        \
    }
STORE_HALF(store_int_FLOAT16, FLOAT16, store_int_FLOAT32)
STORE_HALF(store_int_BFLOAT16, BFLOAT16, store_int_FLOAT32)
STORE_HALF(store_uint_FLOAT16, FLOAT16, store_uint_FLOAT32)
STORE_HALF(store_uint_BFLOAT16, BFLOAT16, store_uint_FLOAT32)
CONVERT(int_is_true, int64_t, uint8_t, x != 0)
CONVERT(uint_is_true, uint64_t, uint8_t, x != 0)

/* Stores from float64; `above` is the first value that is too large. `within` is x, converted if
 * its type cannot hold `high`. */
#define SATURATE(low, above, high, within)                                                         \
    (x != x ? 0 : x <= (low) ? (low) : x >= (above) ? (high) : (within))
CONVERT(store_float_FLOAT32, double, float, x)
CONVERT(store_float_FLOAT64, double, double, x)
CONVERT(store_float_INT8, double, int8_t, SATURATE(INT8_MIN, 128, INT8_MAX, x))
CONVERT(store_float_INT16, double, int16_t, SATURATE(INT16_MIN, 32768, INT16_MAX, x))
CONVERT(store_float_INT32, double, int32_t, SATURATE(INT32_MIN, 0x1p31, INT32_MAX, x))
CONVERT(store_float_UINT8, double, uint8_t, SATURATE(0, 256, UINT8_MAX, x))
CONVERT(store_float_UINT16, double, uint16_t, SATURATE(0, 65536, UINT16_MAX, x))
CONVERT(store_float_UINT32, double, uint32_t, SATURATE(0, 0x1p32, UINT32_MAX, x))
CONVERT(store_float_BOOL, double, uint8_t, x != 0)
CONVERT(store_float_INT64, double, int64_t, SATURATE(INT64_MIN, 0x1p63, INT64_MAX, (int64_t)x))
CONVERT(store_float_UINT64, double, uint64_t, !(x > 0) ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x)

/* Rounds to float32 so that a second rounding to 16 bits does not mistake it for a tie: inexact
 * results are truncated toward zero, and their last bit is set. */
static void to_odd(int64_t n, const void *px, void *po)
{
    const double *xs = px;
    uint32_t *out = po;
    for (int64_t i = 0; i < n; i++) {
        union {
            float f;
            uint32_t bits;
        } y = {(float)xs[i]};
        double x = xs[i] < 0 ? -xs[i] : xs[i], rounded = y.f < 0 ? -y.f : y.f;
        bool inexact = rounded != x && x == x && rounded < (double)INFINITY;
        out[i] = inexact ? (y.bits - (rounded > x)) | 1 : y.bits;
    }
}
STORE_HALF(store_float_FLOAT16, FLOAT16, to_odd)
STORE_HALF(store_float_BFLOAT16, BFLOAT16, to_odd)

enum wide { WIDE_FLOAT, WIDE_INT, WIDE_UINT };

struct cast_row {
    enum dtype type;
    enum wide wide;
    cast_loop *load, *store[3]; /* by enum wide */
};

#define ROW(type, wide)                                                                            \
    {                                                                                              \
        type, wide, load_##type,                                                                   \
        {                                                                                          \
            store_float_##type, store_int_##type, store_uint_##type                                \
        }                                                                                          \
    }

static const struct cast_row rows[] = {
    ROW(FLOAT32, WIDE_FLOAT),
    ROW(FLOAT64, WIDE_FLOAT),
    ROW(FLOAT16, WIDE_FLOAT),
    ROW(BFLOAT16, WIDE_FLOAT),
    ROW(INT8, WIDE_INT),
    ROW(INT16, WIDE_INT),
    ROW(INT32, WIDE_INT),
    ROW(INT64, WIDE_INT),
    ROW(UINT8, WIDE_INT),
    ROW(UINT16, WIDE_INT),
    ROW(UINT32, WIDE_INT),
    ROW(UINT64, WIDE_UINT),
    {BOOL, WIDE_INT, load_BOOL, {store_float_BOOL, int_is_true, uint_is_true}},
};

CONVERT(float32_to_float64, float, double, x)
CONVERT(float64_to_float32, double, float, x)
CONVERT(float32_to_int32, float, int32_t, SATURATE(INT32_MIN, 0x1p31F, INT32_MAX, (int32_t)x))
CONVERT(int32_to_float32, int32_t, float, x)
CONVERT(uint8_to_float32, uint8_t, float, x)
CONVERT(int32_to_int64, int32_t, int64_t, x)
CONVERT(int64_to_int32, int64_t, int32_t, x)

/* Makes signalling NaNs quiet, as any arithmetic does. */
static void quiet_nans(int64_t n, uint32_t *bits)
{
    for (int64_t i = 0; i < n; i++)
        bits[i] |= (bits[i] & 0x7fffffff) > 0x7f800000 ? 0x400000 : 0;
}

#define HALF_LOOPS(type)                                                                           \
    static void type##_to_float32(int64_t n, const void *x, void *out)                             \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += CAST_BLOCK) {                                           \
            int64_t m = n - at < CAST_BLOCK ? n - at : CAST_BLOCK;                                 \
            widen_array(type, (const uint16_t *)x + at, (float *)out + at, m);                     \
            quiet_nans(m, (uint32_t *)out + at);                                                   \
        }                                                                                          \
    }                                                                                              \
    static void float32_to_##type(int64_t n, const void *x, void *out)                             \
    {                                                                                              \
        narrow_array(type, x, out, n);                                                             \
    }
HALF_LOOPS(FLOAT16)
HALF_LOOPS(BFLOAT16)

static const struct direct_row {
    enum dtype from, to;
    cast_loop *loop;
} direct[] = {
    {FLOAT32, FLOAT64, float32_to_float64}, {FLOAT64, FLOAT32, float64_to_float32},
    {FLOAT32, INT32, float32_to_int32},     {INT32, FLOAT32, int32_to_float32},
    {UINT8, FLOAT32, uint8_to_float32},     {BOOL, FLOAT32, uint8_to_float32},
    {INT32, INT64, int32_to_int64},         {INT64, INT32, int64_to_int32},
    {FLOAT16, FLOAT32, FLOAT16_to_float32}, {BFLOAT16, FLOAT32, BFLOAT16_to_float32},
    {FLOAT32, FLOAT16, float32_to_FLOAT16}, {FLOAT32, BFLOAT16, float32_to_BFLOAT16},
};

static const struct cast_row *find_row(enum dtype type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

static int cast_prepare(struct kernel_setup *setup)
{
    enum dtype from = setup->in_types[0].type, to = setup->out_types[0].type;
    if (!find_row(from) || !find_row(to))
        return kernel_setup_fail(setup, "no cast from %s to %s", dtype_name(from), dtype_name(to));
    if (from == to)
        setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

struct cast_work {
    enum dtype from, to;
    const char *x;
    char *out;
};

static int cast_body(void *context, int64_t begin, int64_t end)
{
    const struct cast_work *work = context;
    const char *x = work->x + begin * (int64_t)dtype_bytes(work->from);
    char *out = work->out + begin * (int64_t)dtype_bytes(work->to);
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++) {
        if (direct[i].from == work->from && direct[i].to == work->to) {
            direct[i].loop(end - begin, x, out);
            return 0;
        }
    }
    const struct cast_row *from = find_row(work->from), *to = find_row(work->to);
    _Alignas(64) char block[CAST_BLOCK * sizeof(double)];
    for (int64_t at = begin; at < end; at += CAST_BLOCK) {
        int64_t n = end - at < CAST_BLOCK ? end - at : CAST_BLOCK;
        from->load(n, x, block);
        to->store[from->wide](n, block, out);
        x += n * (int64_t)dtype_bytes(work->from);
        out += n * (int64_t)dtype_bytes(work->to);
    }
    return 0;
}

static int cast_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    enum dtype to = call->node->outputs[0].type;
    if (to == x->type)
        return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &x->shape);
    if (!out)
        return call->err->code;
    struct cast_work work = {x->type, to, x->data, out->data};
    parallel_for(call->threads, tensor_count(x), PARALLEL_GRAIN_MOVE, cast_body, &work);
    return KERNEL_DONE;
}

const struct kernel_code kernel_cast = {.prepare = cast_prepare, .run = cast_run};
