/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/dtype.h"

#include <string.h>

struct dtype_row {
    enum dtype type;
    const char *name, *npy;
    size_t bytes;
};

#define DTYPE_NUMBERS 24 /* one above the largest */

static const struct dtype_row rows[DTYPE_NUMBERS] = {
#define X(constant, name, number, bytes, npy) [number] = {constant, name, npy, bytes},
    DTYPE_LIST(X)
#undef X
};

static const struct dtype_row *find(enum dtype type)
{
    return (unsigned)type < DTYPE_NUMBERS ? &rows[type] : &rows[DTYPE_INVALID];
}

const char *dtype_name(enum dtype type)
{
    const char *name = find(type)->name;
    return name ? name : "invalid";
}

size_t dtype_bytes(enum dtype type)
{
    return find(type)->bytes;
}

const char *dtype_npy(enum dtype type)
{
    return find(type)->npy;
}

bool dtype_parse(const char *name, enum dtype *type)
{
    for (size_t i = 0; i < DTYPE_NUMBERS; i++) {
        if (rows[i].name && !strcmp(rows[i].name, name)) {
            *type = rows[i].type;
            return true;
        }
    }
    return false;
}

dtype_set dtype_set_of(const char *name, size_t n)
{
    static const struct {
        const char *name;
        dtype_set set;
    } classes[] = {{"floating", DTYPES_FLOATING}, {"integer", DTYPES_INTEGER},
                   {"real", DTYPES_REAL},         {"numeric", DTYPES_NUMERIC},
                   {"any", DTYPES_ANY},           {"type", DTYPES_ANY}};
    for (size_t i = 0; i < DTYPE_NUMBERS; i++)
        if (rows[i].name && !strncmp(rows[i].name, name, n) && !rows[i].name[n])
            return DTYPE_BIT(rows[i].type);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strncmp(classes[i].name, name, n) && !classes[i].name[n])
            return classes[i].set;
    return 0;
}

static bool is_in(dtype_set set, enum dtype type)
{
    return (unsigned)type < DTYPE_NUMBERS && (set & DTYPE_BIT(type));
}

bool dtype_is_floating(enum dtype type)
{
    return is_in(DTYPES_FLOATING, type);
}

bool dtype_is_integer(enum dtype type)
{
    return is_in(DTYPES_INTEGER, type);
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float float16_to_float32(uint16_t value)
{
    uint32_t sign = (uint32_t)(value & 0x8000) << 16, magnitude = value & 0x7fff;
    if (magnitude >= 0x7c00) /* infinity, NaN with its payload */
        return from_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude >= 0x400)
        return from_bits(sign | ((magnitude << 13) + ((127 - 15) << 23)));
    float subnormal = (float)magnitude * 0x1p-24f;
    return sign ? -subnormal : subnormal;
}

/* Rounds the float with these magnitude bits, which is below 2^-14, to a multiple of 2^-24. */
static uint32_t to_subnormal(uint32_t magnitude)
{
    int shift = 126 - (int)(magnitude >> 23);
    if (shift > 24)
        return 0;
    uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    uint32_t kept = significand >> shift, rest = significand & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t float32_to_float16(float value)
{
    uint32_t bits = to_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
    if (magnitude >= 0x477ff000) /* 65520 and above: infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) /* below 2^-14 */
        return (uint16_t)(sign | to_subnormal(magnitude));
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - ((127 - 15) << 23)) >> 13));
}

float bfloat16_to_float32(uint16_t value)
{
    return from_bits((uint32_t)value << 16);
}

uint16_t float32_to_bfloat16(float value)
{
    uint32_t bits = to_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
