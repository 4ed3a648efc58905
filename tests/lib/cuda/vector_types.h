/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's vector types, with its alignments.
 */
#ifndef CUDA_EMULATOR_VECTOR_TYPES_H
#define CUDA_EMULATOR_VECTOR_TYPES_H

#define VECTORS(type, base, two, four)                                                             \
    struct type##1                                                                                 \
    {                                                                                              \
        base x;                                                                                    \
    };                                                                                             \
    struct alignas(two) type##2                                                                    \
    {                                                                                              \
        base x, y;                                                                                 \
    };                                                                                             \
    struct type##3                                                                                 \
    {                                                                                              \
        base x, y, z;                                                                              \
    };                                                                                             \
    struct alignas(four) type##4                                                                   \
    {                                                                                              \
        base x, y, z, w;                                                                           \
    };                                                                                             \
    static inline type##2 make_##type##2(base x, base y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline type##4 make_##type##4(base x, base y, base z, base w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }

VECTORS(char, signed char, 2, 4)
VECTORS(uchar, unsigned char, 2, 4)
VECTORS(short, short, 4, 8)
VECTORS(ushort, unsigned short, 4, 8)
VECTORS(int, int, 8, 16)
VECTORS(uint, unsigned, 8, 16)
VECTORS(longlong, long long, 16, 16)
VECTORS(ulonglong, unsigned long long, 16, 16)
VECTORS(float, float, 8, 16)
VECTORS(double, double, 16, 16)
#undef VECTORS

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};

#endif
