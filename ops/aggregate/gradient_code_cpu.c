/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/aggregate/gradient_code.h"

#include <math.h>
#include <string.h>

#define LANES 8 /* partial sums added in parallel, then in order */
#define SIGMAS 4

static inline float at(struct coded_sum sum, int64_t i)
{
    return sum.gradient[i] + sum.residual[i];
}

static void put_floats(uint8_t *row, float first, float second)
{
    memcpy(row, &first, sizeof first);
    memcpy(row + sizeof first, &second, sizeof second);
}

static void get_floats(const uint8_t *row, float values[2])
{
    memcpy(values, row, 2 * sizeof *values);
}

/* ---- bit fields: at most 8 bits, so that one spans at most two bytes ---- */

static void put_bits(uint8_t *to, int64_t i, int bits, unsigned field)
{
    int64_t first = i * bits;
    unsigned wide = field << (first % 8);
    to[first / 8] |= (uint8_t)wide;
    if (wide >> 8)
        to[first / 8 + 1] |= (uint8_t)(wide >> 8);
}

static unsigned get_bits(const uint8_t *from, int64_t i, int bits)
{
    int64_t first = i * bits;
    unsigned wide = from[first / 8];
    if (first % 8 + bits > 8)
        wide |= (unsigned)from[first / 8 + 1] << 8;
    return wide >> (first % 8) & ((1U << bits) - 1);
}

/* ---- one bit ---- */

struct sides {
    double negative[LANES], positive[LANES];
};

static double add_lanes(const double lanes[LANES])
{
    double all = 0;
    for (int k = 0; k < LANES; k++)
        all += lanes[k];
    return all;
}

static void encode_one_bit(const struct gradient_code *code, struct coded_sum sum, uint8_t *row)
{
    struct sides sides = {{0}, {0}};
    uint8_t *bits = row + 2 * sizeof(float);
    int64_t n_positive = 0, n = code->group;
    for (int64_t i = 0; i < n; i += LANES) {
        /* Adds each of eight elements, or of the remaining ones, to its lane's sum for its sign. */
        unsigned signs = 0;
        for (int k = 0; k < LANES && i + k < n; k++) {
            float v = at(sum, i + k);
            bool is_positive = v >= 0;
            sides.positive[k] += is_positive ? v : 0;
            sides.negative[k] += is_positive ? 0 : v;
            signs |= (unsigned)is_positive << k;
        }
        bits[i / LANES] = (uint8_t)signs;
        n_positive += __builtin_popcount(signs);
    }
    double positive = add_lanes(sides.positive), negative = add_lanes(sides.negative);
    put_floats(row, n_positive < n ? (float)(negative / (double)(n - n_positive)) : 0,
               n_positive ? (float)(positive / (double)n_positive) : 0);
}

/* ---- parts of equal width ---- */

static void encode_uniform(const struct gradient_code *code, struct coded_sum sum, uint8_t *row)
{
    uint8_t *bits = row + 2 * sizeof(float);
    float range[2], last = (float)((1 << code->bits) - 1);
    double total = 0, squares = 0;
    for (int64_t i = 0; i < code->group; i++)
        total += at(sum, i);
    double mean = total / (double)code->group;
    for (int64_t i = 0; i < code->group; i++)
        squares += (at(sum, i) - mean) * (at(sum, i) - mean);
    double sigma = sqrt(squares / (double)code->group);
    range[0] = (float)(mean - SIGMAS * sigma);
    range[1] = (float)(2 * SIGMAS * sigma / (1 << code->bits));
    put_floats(row, range[0], range[1]);
    memset(bits, 0, (size_t)((code->group * code->bits + 7) / 8));
    for (int64_t i = 0; i < code->group; i++) {
        float part = floorf((at(sum, i) - range[0]) / range[1]);
        part = part >= 0 ? part : 0; /* also for 0 / 0, if all elements are equal */
        put_bits(bits, i, code->bits, (unsigned)(part < last ? part : last));
    }
}

/* ---- thresholds ---- */

static void encode_threshold(const struct gradient_code *code, struct coded_sum sum, uint8_t *row)
{
    memset(row, 0, (size_t)((code->group * code->bits + 7) / 8));
    for (int64_t i = 0; i < code->group; i++) {
        float v = at(sum, i), t = code->threshold;
        unsigned field = code->bits == 1 ? v > t : v >= t ? 1U : v <= -t ? 2U : 0U;
        put_bits(row, i, code->bits, field);
    }
}

/* ---- the largest ---- */

/* Returns a number ordered like absolute values; NaN is above all. */
static inline uint32_t magnitude(struct coded_sum sum, int64_t i)
{
    uint32_t bits;
    float v = at(sum, i);
    memcpy(&bits, &v, sizeof bits);
    return bits & 0x7fffffff;
}

/* Finds the magnitude of the `keep`th largest element, and how many elements of that magnitude are
 * kept, in three passes over 11, 10 and 10 of its bits. */
static uint32_t find_least(const struct gradient_code *code, struct coded_sum sum, int64_t *n_equal)
{
    static const int shifts[] = {20, 10, 0};
    uint32_t prefix = 0, known = 0;
    int64_t wanted = code->keep;
    for (int pass = 0; pass < 3; pass++) {
        int64_t counts[1 << 11] = {0};
        uint32_t fields = pass ? 1 << 10 : 1 << 11;
        for (int64_t i = 0; i < code->group; i++) {
            uint32_t m = magnitude(sum, i);
            if ((m & known) == prefix)
                counts[m >> shifts[pass] & (fields - 1)]++;
        }
        uint32_t field = fields - 1;
        for (; counts[field] < wanted; field--)
            wanted -= counts[field];
        prefix |= field << shifts[pass];
        known |= (fields - 1) << shifts[pass];
    }
    *n_equal = wanted;
    return prefix;
}

static void encode_top(const struct gradient_code *code, struct coded_sum sum, uint8_t *row)
{
    int64_t n_equal;
    uint32_t least = find_least(code, sum, &n_equal);
    for (int64_t i = 0; i < code->group; i++) {
        uint32_t m = magnitude(sum, i), index = (uint32_t)i;
        if (m < least || (m == least && n_equal-- <= 0))
            continue;
        float v = at(sum, i);
        memcpy(row, &index, sizeof index);
        memcpy(row + sizeof index, &v, sizeof v);
        row += sizeof index + sizeof v;
    }
}

bool gradient_code_top(const struct gradient_code *code, const uint8_t *row, int64_t i,
                       int64_t *index, float *value)
{
    uint32_t number;
    memcpy(&number, row + i * 8, sizeof number);
    memcpy(value, row + i * 8 + 4, sizeof *value);
    *index = number;
    return number < code->group;
}

/* ---- all ---- */

void gradient_code_encode(const struct gradient_code *code, struct coded_sum sum, uint8_t *row)
{
    static void (*const encode[])(const struct gradient_code *, struct coded_sum, uint8_t *) = {
        encode_one_bit, encode_uniform, encode_threshold, encode_top};
    encode[code->kind](code, sum, row);
}

void gradient_code_decode(const struct gradient_code *code, const uint8_t *row, int64_t first,
                          int64_t n, float *values)
{
    if (code->kind == CODE_ONE_BIT) {
        const uint8_t *bits = row + 2 * sizeof(float);
        float means[2];
        get_floats(row, means);
        for (int64_t i = 0; i < n; i++)
            values[i] = means[bits[(first + i) / 8] >> ((first + i) % 8) & 1];
    } else if (code->kind == CODE_UNIFORM) {
        float range[2];
        get_floats(row, range);
        for (int64_t i = 0; i < n; i++) {
            unsigned part = get_bits(row + sizeof range, first + i, code->bits);
            values[i] = range[0] + ((float)part + 0.5F) * range[1];
        }
    } else {
        float t = code->threshold;
        const float of_one[] = {-1, 1}, of_two[] = {0, t, -t, 0};
        const float *of = code->bits == 1 ? of_one : of_two;
        for (int64_t i = 0; i < n; i++)
            values[i] = of[get_bits(row, first + i, code->bits)];
    }
}
