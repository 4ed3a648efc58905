/* SPDX-License-Identifier: Apache-2.0
 *
 * One block per group. Bit fields are written eight at a time, which are whole bytes.
 */
#include "ops/aggregate/gradient_code_cuda.cuh"

#define SIGMAS 4

namespace
{
struct code_sum {
    const float *gradient, *residual;
};

struct add {
    template <typename T> static __device__ __forceinline__ T combine(T a, T b)
    {
        return a + b;
    }
};
} // namespace

DEVICE_INLINE float at(const code_sum &sum, int64_t i)
{
    return sum.gradient[i] + sum.residual[i];
}

/* Returns a sum over the group, in all threads. `part` has FOLD_WARPS elements. */
template <typename T, typename Term>
DEVICE_INLINE T sum_over(int64_t n, shared_pointer<T> part, const Term &term)
{
    T sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += CUDA_BLOCK)
        sum += term(i);
    sum = fold_block<add>(sum, part);
    if (threadIdx.x == 0)
        part[0] = sum;
    __syncthreads();
    sum = part[0];
    __syncthreads();
    return sum;
}

template <typename Field>
DEVICE_INLINE void put_fields(uint8_t *to, int64_t n, int bits, const Field &field)
{
    int64_t eights = (n + CODE_FIELDS - 1) / CODE_FIELDS, end = (n * bits + 7) / 8;
    for (int64_t i = threadIdx.x; i < eights; i += CUDA_BLOCK) {
        uint64_t fields = 0;
        for (int k = 0; k < CODE_FIELDS && i * CODE_FIELDS + k < n; k++)
            fields |= static_cast<uint64_t>(field(i * CODE_FIELDS + k)) << (k * bits);
        for (int k = 0; k < bits && i * bits + k < end; k++)
            to[i * bits + k] = static_cast<uint8_t>(fields >> (8 * k));
    }
}

DEVICE_INLINE void encode_one_bit(const cuda_code &code, const code_sum &sum, uint8_t *row,
                                  shared_pointer<double> part)
{
    int64_t n = code.group;
    double positive = sum_over<double>(n, part, [&](int64_t i) {
        float v = at(sum, i);
        return v >= 0 ? static_cast<double>(v) : 0;
    });
    double negative = sum_over<double>(n, part, [&](int64_t i) {
        float v = at(sum, i);
        return v >= 0 ? 0 : static_cast<double>(v);
    });
    double n_positive =
        sum_over<double>(n, part, [&](int64_t i) { return at(sum, i) >= 0 ? 1.0 : 0.0; });
    double n_negative = static_cast<double>(n) - n_positive;
    if (threadIdx.x == 0) {
        put_float(row, n_negative > 0 ? static_cast<float>(negative / n_negative) : 0);
        put_float(row + 4, n_positive > 0 ? static_cast<float>(positive / n_positive) : 0);
    }
    put_fields(row + CODE_HEAD, n, 1, [&](int64_t i) { return at(sum, i) >= 0 ? 1U : 0U; });
}

DEVICE_INLINE void encode_uniform(const cuda_code &code, const code_sum &sum, uint8_t *row,
                                  shared_pointer<double> part)
{
    int64_t n = code.group;
    double count = static_cast<double>(n);
    double mean = sum_over<double>(n, part, [&](int64_t i) { return at(sum, i); }) / count;
    double squares = sum_over<double>(
        n, part, [&](int64_t i) { return (at(sum, i) - mean) * (at(sum, i) - mean); });
    double sigma = sqrt(squares / count);
    float low = static_cast<float>(mean - SIGMAS * sigma);
    float width = static_cast<float>(2 * SIGMAS * sigma / (1 << code.bits));
    float last = static_cast<float>((1 << code.bits) - 1);
    if (threadIdx.x == 0) {
        put_float(row, low);
        put_float(row + 4, width);
    }
    put_fields(row + CODE_HEAD, n, code.bits, [&](int64_t i) {
        float which = floorf((at(sum, i) - low) / width);
        which = which >= 0 ? which : 0; /* also for 0 / 0, if all elements are equal */
        return static_cast<unsigned>(which < last ? which : last);
    });
}

DEVICE_INLINE void encode_threshold(const cuda_code &code, const code_sum &sum, uint8_t *row)
{
    float t = code.threshold;
    put_fields(row, code.group, code.bits, [&](int64_t i) {
        float v = at(sum, i);
        return code.bits == 1 ? (v > t ? 1U : 0U) : v >= t ? 1U : v <= -t ? 2U : 0U;
    });
}

/* ---- the largest ---- */

/* Returns a number ordered like absolute values; NaN is above all. */
DEVICE_INLINE unsigned magnitude(const code_sum &sum, int64_t i)
{
    return __float_as_uint(at(sum, i)) & 0x7fffffffU;
}

/* Finds, bit by bit, the largest magnitude that `keep` elements reach. */
DEVICE_INLINE unsigned find_least(const cuda_code &code, const code_sum &sum,
                                  shared_pointer<int64_t> part)
{
    unsigned least = 0;
    for (unsigned bit = 1U << 30; bit; bit /= 2) {
        unsigned wanted = least | bit;
        int64_t n = sum_over<int64_t>(code.group, part, [&](int64_t i) {
            return static_cast<int64_t>(magnitude(sum, i) >= wanted);
        });
        if (n >= code.keep)
            least = wanted;
    }
    return least;
}

/* Counts the block's threads before this one with `is_so`; *all: of the whole block. */
DEVICE_INLINE int64_t count_before(bool is_so, shared_pointer<int64_t> part, int64_t *all)
{
    unsigned lanes = __ballot_sync(CUDA_ALL_LANES, is_so);
    unsigned warp = threadIdx.x / CUDA_WARP, lane = threadIdx.x % CUDA_WARP;
    if (lane == 0)
        part[warp] = __popc(lanes);
    __syncthreads();
    int64_t before = __popc(lanes & ((1U << lane) - 1));
    *all = 0;
    for (unsigned i = 0; i < FOLD_WARPS; i++) {
        before += i < warp ? static_cast<int64_t>(part[i]) : 0;
        *all += part[i];
    }
    __syncthreads();
    return before;
}

/* Writes the elements above the least magnitude, and the first ones of that, in order. */
DEVICE_INLINE void encode_top(const cuda_code &code, const code_sum &sum, uint8_t *row,
                              shared_pointer<int64_t> part)
{
    unsigned least = find_least(code, sum, part);
    int64_t larger = sum_over<int64_t>(code.group, part, [&](int64_t i) {
        return static_cast<int64_t>(magnitude(sum, i) > least);
    });
    int64_t n_equal = code.keep - larger, equal_before = 0, before = 0;
    for (int64_t first = 0; first < code.group; first += CUDA_BLOCK) {
        int64_t i = first + threadIdx.x, n;
        bool inside = i < code.group;
        unsigned m = inside ? magnitude(sum, i) : 0;
        bool is_equal = inside && m == least;
        int64_t rank = equal_before + count_before(is_equal, part, &n);
        equal_before += n;
        bool is_kept = inside && (m > least || (is_equal && rank < n_equal));
        int64_t place = before + count_before(is_kept, part, &n);
        before += n;
        if (is_kept) {
            put_word(row + place * CODE_ENTRY, static_cast<uint32_t>(i));
            put_float(row + place * CODE_ENTRY + 4, at(sum, i));
        }
    }
}

/* ---- the whole ---- */

static __global__ void encode(const struct cuda_encode call)
{
    SHARED(double, sums, FOLD_WARPS);
    SHARED(int64_t, counts, FOLD_WARPS);
    const cuda_code &code = call.code;
    for (int64_t i = blockIdx.x; i < code.groups; i += gridDim.x) {
        code_sum sum = {call.gradient + i * code.group, call.residual + i * code.group};
        uint8_t *row = call.rows + i * code.row;
        if (code.kind == CUDA_CODE_ONE_BIT)
            encode_one_bit(code, sum, row, sums);
        else if (code.kind == CUDA_CODE_UNIFORM)
            encode_uniform(code, sum, row, sums);
        else if (code.kind == CUDA_CODE_THRESHOLD)
            encode_threshold(code, sum, row);
        else
            encode_top(code, sum, row, counts);
    }
}

extern "C" int cuda_encode(const struct cuda_encode *call, struct CUstream_st *stream)
{
    return CUDA_LAUNCH_EACH(encode, call->code.groups * CUDA_BLOCK, stream, *call);
}
