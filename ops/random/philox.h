/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers without state. Every value is a function of where it is drawn, computed by the
 * counter-based generator Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
 * easy as 1, 2, 3; SC 2011). Results do not depend on the number of threads, nor on restarts.
 *
 * P(key, counter) maps a key of 2 and a counter of 4 words of 32 bits to 4 words. lo and hi are the
 * halves of a number of 64 bits. A node's stream in one execution is computed so:
 *
 * a = P([lo seed, hi seed], [lo op_seed, hi op_seed, lo op_seed2, hi op_seed2])
 * b = P([a0 ^ replica, a1], [lo step ^ a2, hi step ^ a3, lo iteration, hi iteration])
 *
 * with seed, replica and step those of the step (exec/plan/plan.h), op_seed and op_seed2 the node's
 * attributes, iteration 0 outside of loops. Block j of the stream, words 4j to 4j + 3, is
 *
 * P([b0, b1], [lo j, hi j, b2, b3])
 *
 * How words become numbers is in distribution.h. docs/randomness.md works out an example.
 */
#ifndef TF_OPS_RANDOM_PHILOX_H
#define TF_OPS_RANDOM_PHILOX_H

#include <stdint.h>

/* Other devices compile these functions, too, and get the same bits. */
#ifndef RANDOM_FUNCTION
#define RANDOM_FUNCTION static inline
#endif

/* Blocks that are computed by vectors. */
#define PHILOX_LANES 16
#define PHILOX_WORDS (4 * PHILOX_LANES)
#ifdef _OPENMP
#define PHILOX_EACH_LANE _Pragma("omp simd") for (int i = 0; i < PHILOX_LANES; i++)
#else
#define PHILOX_EACH_LANE for (int i = 0; i < PHILOX_LANES; i++)
#endif

struct philox_stream {
    uint32_t key[2], high[2];
};

struct philox_place {
    uint64_t seed, op_seed, op_seed2, step, iteration;
    uint32_t replica;
};

RANDOM_FUNCTION void philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c0, p1 = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

RANDOM_FUNCTION uint32_t philox_low(uint64_t x)
{
    return (uint32_t)x;
}

RANDOM_FUNCTION uint32_t philox_high(uint64_t x)
{
    return (uint32_t)(x >> 32);
}

RANDOM_FUNCTION struct philox_stream philox_stream_at(const struct philox_place *at)
{
    uint32_t a[4], b[4];
    uint32_t seed[2] = {philox_low(at->seed), philox_high(at->seed)};
    uint32_t op[4] = {philox_low(at->op_seed), philox_high(at->op_seed), philox_low(at->op_seed2),
                      philox_high(at->op_seed2)};
    philox(seed, op, a);
    uint32_t key[2] = {a[0] ^ at->replica, a[1]};
    uint32_t when[4] = {philox_low(at->step) ^ a[2], philox_high(at->step) ^ a[3],
                        philox_low(at->iteration), philox_high(at->iteration)};
    philox(key, when, b);
    return (struct philox_stream){{b[0], b[1]}, {b[2], b[3]}};
}

/* Computes block j of a stream. */
RANDOM_FUNCTION void philox_block(const struct philox_stream *stream, uint64_t j, uint32_t out[4])
{
    uint32_t counter[4] = {philox_low(j), philox_high(j), stream->high[0], stream->high[1]};
    philox(stream->key, counter, out);
}

/* Computes the i-th 64-bit number of a stream: its words 2i and 2i + 1. */
RANDOM_FUNCTION void philox_words(const struct philox_stream *stream, int64_t i, uint32_t words[2])
{
    uint32_t block[4];
    philox_block(stream, (uint64_t)i / 2, block);
    words[0] = block[2 * (i % 2)];
    words[1] = block[2 * (i % 2) + 1];
}

/* Computes blocks j to j + PHILOX_LANES - 1: the same as philox_block for each. */
RANDOM_FUNCTION void philox_blocks(const struct philox_stream *stream, uint64_t j,
                                   uint32_t out[PHILOX_WORDS])
{
    uint32_t c0[PHILOX_LANES], c1[PHILOX_LANES], c2[PHILOX_LANES], c3[PHILOX_LANES];
    uint32_t k0 = stream->key[0], k1 = stream->key[1];
    PHILOX_EACH_LANE
    {
        c0[i] = philox_low(j + (uint64_t)i);
        c1[i] = philox_high(j + (uint64_t)i);
        c2[i] = stream->high[0];
        c3[i] = stream->high[1];
    }
    for (int round = 0; round < 10; round++) {
        PHILOX_EACH_LANE
        {
            uint64_t p0 = UINT64_C(0xD2511F53) * c0[i], p1 = UINT64_C(0xCD9E8D57) * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)p1;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)p0;
        }
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    for (int i = 0; i < PHILOX_LANES; i++) {
        out[4 * i] = c0[i];
        out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i];
        out[4 * i + 3] = c3[i];
    }
}

#endif
