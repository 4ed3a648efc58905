/* SPDX-License-Identifier: Apache-2.0
 *
 * Word i of all sixteen values lies in one register of AVX-512. The names of the functions are
 * those of FIPS 180-4, section 4.1.2.
 */
#include "checkpoint/store/digest_lanes.h"

#include <string.h>

#include "base/error.h"

#ifdef __x86_64__

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512bw")))
#define BLOCK_BYTES 64
#define LENGTH_BYTES 8

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

#define ADD _mm512_add_epi32
#define ROTR _mm512_ror_epi32
#define SHR _mm512_srli_epi32
#define XOR(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0x96)
#define CH(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0xca)
#define MAJ(x, y, z) _mm512_ternarylogic_epi32(x, y, z, 0xe8)
#define SUM0(x) XOR(ROTR(x, 2), ROTR(x, 13), ROTR(x, 22))
#define SUM1(x) XOR(ROTR(x, 6), ROTR(x, 11), ROTR(x, 25))
#define SIGMA0(x) XOR(ROTR(x, 7), ROTR(x, 18), SHR(x, 3))
#define SIGMA1(x) XOR(ROTR(x, 17), ROTR(x, 19), SHR(x, 10))

#define ROUND(a, b, c, d, e, f, g, h, t)                                                           \
    do {                                                                                           \
        __m512i t1 = ADD(ADD(h, ADD(w[(t) % 16], _mm512_set1_epi32((int)k[t]))),                   \
                         ADD(SUM1(e), CH(e, f, g)));                                               \
        d = ADD(d, t1);                                                                            \
        h = ADD(t1, ADD(SUM0(a), MAJ(a, b, c)));                                                   \
    } while (0)

#define EIGHT_ROUNDS(t)                                                                            \
    do {                                                                                           \
        ROUND(a, b, c, d, e, f, g, h, (t));                                                        \
        ROUND(h, a, b, c, d, e, f, g, (t) + 1);                                                    \
        ROUND(g, h, a, b, c, d, e, f, (t) + 2);                                                    \
        ROUND(f, g, h, a, b, c, d, e, (t) + 3);                                                    \
        ROUND(e, f, g, h, a, b, c, d, (t) + 4);                                                    \
        ROUND(d, e, f, g, h, a, b, c, (t) + 5);                                                    \
        ROUND(c, d, e, f, g, h, a, b, (t) + 6);                                                    \
        ROUND(b, c, d, e, f, g, h, a, (t) + 7);                                                    \
    } while (0)

/* Word t + 16 takes the place of word t. */
#define SCHEDULE(t)                                                                                \
    w[t] = ADD(ADD(w[t], w[((t) + 9) % 16]),                                                       \
               ADD(SIGMA0(w[((t) + 1) % 16]), SIGMA1(w[((t) + 14) % 16])))

#define FOUR_WORDS(t)                                                                              \
    do {                                                                                           \
        SCHEDULE(t);                                                                               \
        SCHEDULE((t) + 1);                                                                         \
        SCHEDULE((t) + 2);                                                                         \
        SCHEDULE((t) + 3);                                                                         \
    } while (0)

/* Turns rows of sixteen words into columns: swaps words, double words, then quarters twice. */
WIDE static inline void transpose(__m512i r[16])
{
    __m512i t[16];
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    }
}

WIDE static void compress(__m512i state[8], __m512i w[16])
{
    __m512i a = state[0], b = state[1], c = state[2], d = state[3];
    __m512i e = state[4], f = state[5], g = state[6], h = state[7];
    const uint32_t *k = K;
    for (int sixteen = 0; sixteen < 4; sixteen++, k += 16) {
        EIGHT_ROUNDS(0);
        EIGHT_ROUNDS(8);
        if (sixteen == 3)
            break;
        FOUR_WORDS(0);
        FOUR_WORDS(4);
        FOUR_WORDS(8);
        FOUR_WORDS(12);
    }
    const __m512i after[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] = ADD(state[i], after[i]);
}

/* SHA-256 words are big-endian. */
WIDE static inline __m512i swap_bytes(__m512i words)
{
    const __m512i order = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    return _mm512_shuffle_epi8(words, order);
}

/* Adds one block of each value, all at the same offset. */
WIDE static void add_block(__m512i state[8], const uint8_t *const at[DIGEST_LANES], size_t offset)
{
    __m512i w[16];
    for (int i = 0; i < DIGEST_LANES; i++) {
        w[i] = _mm512_loadu_si512(at[i] + offset);
        _mm_prefetch((const char *)at[i] + offset + 8 * BLOCK_BYTES, _MM_HINT_T0);
    }
    transpose(w);
    for (int i = 0; i < 16; i++)
        w[i] = swap_bytes(w[i]);
    compress(state, w);
}

/* Adds the remaining bytes, a one bit, zeros, and the length in bits. */
WIDE static void add_end(__m512i state[8], const void *const values[DIGEST_LANES], size_t n)
{
    uint8_t ends[DIGEST_LANES][2 * BLOCK_BYTES] = {{0}};
    const uint8_t *at[DIGEST_LANES];
    size_t rest = n % BLOCK_BYTES;
    size_t bytes = rest + 1 + LENGTH_BYTES > BLOCK_BYTES ? 2 * BLOCK_BYTES : BLOCK_BYTES;
    uint64_t length = __builtin_bswap64((uint64_t)n * 8);
    for (int i = 0; i < DIGEST_LANES; i++) {
        memcpy(ends[i], (const uint8_t *)values[i] + n - rest, rest);
        ends[i][rest] = 0x80;
        memcpy(ends[i] + bytes - LENGTH_BYTES, &length, LENGTH_BYTES);
        at[i] = ends[i];
    }
    for (size_t offset = 0; offset < bytes; offset += BLOCK_BYTES)
        add_block(state, at, offset);
}

WIDE void digest_lanes(const void *const values[DIGEST_LANES], size_t n,
                       struct digest digests[DIGEST_LANES])
{
    __m512i state[16];
    const uint8_t *at[DIGEST_LANES];
    for (int i = 0; i < DIGEST_LANES; i++)
        at[i] = values[i];
    for (int i = 0; i < 16; i++)
        state[i] = _mm512_set1_epi32(i < 8 ? (int)initial[i] : 0);
    for (size_t offset = 0; offset + BLOCK_BYTES <= n; offset += BLOCK_BYTES)
        add_block(state, at, offset);
    add_end(state, values, n);
    for (int i = 0; i < 8; i++)
        state[i] = swap_bytes(state[i]);
    transpose(state);
    for (int i = 0; i < DIGEST_LANES; i++)
        _mm256_storeu_si256((void *)digests[i].bytes, _mm512_castsi512_si256(state[i]));
}

bool digest_lanes_usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

#else

bool digest_lanes_usable(void)
{
    return false;
}

void digest_lanes(const void *const values[DIGEST_LANES], size_t n,
                  struct digest digests[DIGEST_LANES])
{
    (void)values;
    (void)n;
    (void)digests;
    BUG_ON(true);
}

#endif
