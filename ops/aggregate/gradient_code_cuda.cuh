/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoded rows in kernels: floats at any address, bit fields, and the values they encode.
 */
#ifndef OPS_AGGREGATE_GRADIENT_CODE_CUDA_CUH
#define OPS_AGGREGATE_GRADIENT_CODE_CUDA_CUH

#include "ops/aggregate/gradient_code_cuda.h"
#include "ops/math/fold_cuda.cuh"

#define CODE_HEAD 8   /* bytes of two float32 */
#define CODE_ENTRY 8  /* of an index and a value */
#define CODE_FIELDS 8 /* that begin and end at byte boundaries */

DEVICE_INLINE void put_word(uint8_t *row, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        row[i] = static_cast<uint8_t>(word >> (8 * i));
}

DEVICE_INLINE uint32_t get_word(const uint8_t *row)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        word |= static_cast<uint32_t>(row[i]) << (8 * i);
    return word;
}

DEVICE_INLINE void put_float(uint8_t *row, float value)
{
    put_word(row, __float_as_uint(value));
}

DEVICE_INLINE float get_float(const uint8_t *row)
{
    return __uint_as_float(get_word(row));
}

/* Returns field i, of at most 8 bits. */
DEVICE_INLINE unsigned get_field(const uint8_t *from, int64_t i, int bits)
{
    int64_t first = i * bits;
    unsigned wide = from[first / 8];
    if (first % 8 + bits > 8)
        wide |= static_cast<unsigned>(from[first / 8 + 1]) << 8;
    return wide >> (first % 8) & ((1U << bits) - 1);
}

/* Returns the value of element i of a row; not for CUDA_CODE_TOP. */
DEVICE_INLINE float value_of(const cuda_code &code, const uint8_t *row, int64_t i)
{
    if (code.kind == CUDA_CODE_THRESHOLD) {
        unsigned field = get_field(row, i, code.bits);
        if (code.bits == 1)
            return field ? 1.0F : -1.0F;
        return field == 1 ? code.threshold : field == 2 ? -code.threshold : 0.0F;
    }
    unsigned field = get_field(row + CODE_HEAD, i, code.bits);
    if (code.kind == CUDA_CODE_ONE_BIT)
        return get_float(row + (field ? 4 : 0));
    return get_float(row) + (static_cast<float>(field) + 0.5F) * get_float(row + 4);
}

/* Reads entry i of a row of CUDA_CODE_TOP; returns whether its index is within the group. */
DEVICE_INLINE bool entry_of(const cuda_code &code, const uint8_t *row, int64_t i, int64_t *index,
                            float *value)
{
    *index = get_word(row + i * CODE_ENTRY);
    *value = get_float(row + i * CODE_ENTRY + 4);
    return *index < code.group;
}

#endif
