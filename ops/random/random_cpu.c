/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of independent random numbers. Element i uses only words that belong to i.
 */
#include <string.h>

#include "ops/math/parallel_cpu.h"
#include "ops/random/distribution.h"
#include "ops/random/draw.h"
#include "ops/random/philox.h"
#include "tensor/narrow.h"

struct draw {
    struct philox_stream stream;
    void *out;
    int64_t offset; /* number of the first element */
    int64_t low;    /* integers: the first one */
    uint64_t size;  /* and how many there are */
    enum dtype type;
};

/* Writes elements [first, last); `n` come from PHILOX_LANES blocks. CONVERT(words, k) is element k
 * of the words. */
#define DRAW(name, type, n, convert)                                                               \
    static int name(void *context, int64_t first, int64_t last)                                    \
    {                                                                                              \
        const struct draw *d = context;                                                            \
        type *out = d->out;                                                                        \
        uint32_t words[PHILOX_WORDS];                                                              \
        type values[n];                                                                            \
        for (int64_t i = first, count; i < last; i += count) {                                     \
            int64_t skip = (d->offset + i) % (n), left = (n)-skip;                                 \
            count = last - i < left ? last - i : left;                                             \
            philox_blocks(&d->stream, (uint64_t)((d->offset + i) / (n)) * PHILOX_LANES, words);    \
            convert(d, words, values);                                                             \
            memcpy(out + i, values + skip, (size_t)count * sizeof *out);                           \
        }                                                                                          \
        return 0;                                                                                  \
    }

static inline void uniform32(const struct draw *d, const uint32_t *words, float *values)
{
    (void)d;
    for (int k = 0; k < PHILOX_WORDS; k++)
        values[k] = uniform_float32(words[k]);
}

/* Draws as many bits as the precision of a number below 1; all values are equally likely. */
static inline void uniform_half(const struct draw *d, const uint32_t *words, uint16_t *values)
{
    int bits = d->type == FLOAT16 ? 11 : 8;
    float wide[PHILOX_WORDS];
    for (int k = 0; k < PHILOX_WORDS; k++)
        wide[k] = (float)(words[k] >> (32 - bits)) / (float)(1 << bits);
    narrow_floats(d->type, wide, values, PHILOX_WORDS);
}

static inline void uniform64(const struct draw *d, const uint32_t *words, double *values)
{
    (void)d;
    for (int k = 0; k < PHILOX_WORDS / 2; k++)
        values[k] = uniform_float64(words + 2 * k);
}

static inline void normal32(const struct draw *d, const uint32_t *words, float *values)
{
    uint64_t is_near = 0;
    (void)d;
#pragma omp simd reduction(| : is_near)
    for (int k = 0; k < PHILOX_WORDS; k += 2)
        is_near |= normal_pair_rounded(words + k, false, values + k);
    for (int k = 0; is_near && k < PHILOX_WORDS; k += 2)
        normal_pair_float32(words + k, values + k);
}

static inline void normal64(const struct draw *d, const uint32_t *words, double *values)
{
    (void)d;
    for (int k = 0; k < PHILOX_LANES; k++)
        normal_pair_float64(words + 4 * k, values + 2 * k);
}

static inline void integer32(const struct draw *d, const uint32_t *words, int32_t *values)
{
    for (int k = 0; k < PHILOX_WORDS / 2; k++)
        values[k] = (int32_t)(d->low + (int64_t)uniform_integer(words + 2 * k, d->size));
}

static inline void integer64(const struct draw *d, const uint32_t *words, int64_t *values)
{
    for (int k = 0; k < PHILOX_WORDS / 2; k++)
        values[k] = (int64_t)((uint64_t)d->low + uniform_integer(words + 2 * k, d->size));
}

DRAW(draw_uniform32, float, PHILOX_WORDS, uniform32)
DRAW(draw_uniform_half, uint16_t, PHILOX_WORDS, uniform_half)
DRAW(draw_uniform64, double, PHILOX_WORDS / 2, uniform64)
DRAW(draw_normal32, float, PHILOX_WORDS, normal32)
DRAW(draw_normal64, double, PHILOX_WORDS / 2, normal64)
DRAW(draw_integer32, int32_t, PHILOX_WORDS / 2, integer32)
DRAW(draw_integer64, int64_t, PHILOX_WORDS / 2, integer64)

/* Element i takes the first value within two standard deviations of the n from block i, then from
 * blocks i + 2^48, i + 2 * 2^48, ... */
#define DRAW_TRUNCATED(name, type, n, normals_of)                                                  \
    static int name(void *context, int64_t first, int64_t last)                                    \
    {                                                                                              \
        const struct draw *d = context;                                                            \
        uint32_t words[PHILOX_WORDS];                                                              \
        type *out = d->out, normals[(n)*PHILOX_LANES], others[(n)*PHILOX_LANES];                   \
        for (int64_t i = first; i < last; i++) {                                                   \
            const type *x = normals + (i - first) % PHILOX_LANES * (n);                            \
            uint64_t j = (uint64_t)(d->offset + i);                                                \
            if (x == normals) {                                                                    \
                philox_blocks(&d->stream, j, words);                                               \
                normals_of(d, words, normals);                                                     \
            }                                                                                      \
            for (int k = 1; !(*x < 2 && *x > -2); k++) {                                           \
                x++;                                                                               \
                if (k < (n))                                                                       \
                    continue;                                                                      \
                philox_blocks(&d->stream, j += UINT64_C(1) << 48, words);                          \
                normals_of(d, words, others);                                                      \
                x = others;                                                                        \
                k = 0;                                                                             \
            }                                                                                      \
            out[i] = *x;                                                                           \
        }                                                                                          \
        return 0;                                                                                  \
    }

DRAW_TRUNCATED(draw_truncated32, float, 4, normal32)
DRAW_TRUNCATED(draw_truncated64, double, 2, normal64)

/* By bytes of an element: 2, 4 and 8. */
static parallel_body *const bodies[][3] = {
    [RANDOM_UNIFORM] = {draw_uniform_half, draw_uniform32, draw_uniform64},
    [RANDOM_NORMAL] = {NULL, draw_normal32, draw_normal64},
    [RANDOM_TRUNCATED_NORMAL] = {NULL, draw_truncated32, draw_truncated64},
    [RANDOM_UNIFORM_INT] = {NULL, draw_integer32, draw_integer64}};

static int run(struct kernel_call *call)
{
    const struct random_seeds *seeds = call->state;
    struct draw draw = {.offset = seeds->offset};
    if (call->form == RANDOM_UNIFORM_INT && random_range(call, &draw.low, &draw.size))
        return call->err->code;
    struct tensor *out = random_output(call);
    if (!out)
        return call->err->code;
    draw.stream = random_stream(call);
    draw.out = out->data;
    draw.type = out->type;
    parallel_for(call->threads, tensor_count(out), PARALLEL_GRAIN_COMPUTE,
                 bodies[call->form][dtype_bytes(out->type) / 4], &draw);
    return KERNEL_DONE;
}

const struct kernel_code kernel_random_uniform = {
    .prepare = random_prepare, .run = run, .form = RANDOM_UNIFORM};
const struct kernel_code kernel_random_normal = {
    .prepare = random_prepare, .run = run, .form = RANDOM_NORMAL};
const struct kernel_code kernel_truncated_normal = {
    .prepare = random_prepare, .run = run, .form = RANDOM_TRUNCATED_NORMAL};
const struct kernel_code kernel_random_uniform_int = {
    .prepare = random_prepare, .run = run, .form = RANDOM_UNIFORM_INT};
