/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoding has one block per group; bit fields are written eight at a time, which are whole bytes.
 * Decoding has one thread per element. Rows that list their elements get a block per group, which
 * adds member after member, so that sums have a fixed order.
 */
#include "ops/aggregate/gradient_code_cuda.h"

#include "ops/math/fold_cuda.cuh"

#define SIGMAS 4
#define CODE_FIELDS 8 /* that begin and end at byte boundaries */

/* ---- rows: floats at any address, bit fields, and the values they encode ---- */

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

/* Returns the value of element i of a row; not for CODE_TOP. */
DEVICE_INLINE float value_of(const gradient_code &code, const uint8_t *row, int64_t i)
{
    if (code.kind == CODE_THRESHOLD) {
        unsigned field = get_field(row, i, code.bits);
        if (code.bits == 1)
            return field ? 1.0F : -1.0F;
        return field == 1 ? code.threshold : field == 2 ? -code.threshold : 0.0F;
    }
    unsigned field = get_field(row + CODE_HEAD, i, code.bits);
    if (code.kind == CODE_ONE_BIT)
        return get_float(row + (field ? 4 : 0));
    return get_float(row) + (static_cast<float>(field) + 0.5F) * get_float(row + 4);
}

/* Reads entry i of a row of CODE_TOP; returns whether its index is within the group. */
DEVICE_INLINE bool entry_of(const gradient_code &code, const uint8_t *row, int64_t i,
                            int64_t *index, float *value)
{
    *index = get_word(row + i * CODE_ENTRY);
    *value = get_float(row + i * CODE_ENTRY + 4);
    return *index < code.group;
}

/* ---- encoding ---- */

namespace
{
struct add {
    template <typename T> static __device__ __forceinline__ T combine(T a, T b)
    {
        return a + b;
    }
};
} // namespace

DEVICE_INLINE float at(const coded_sum &sum, int64_t i)
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

DEVICE_INLINE void encode_one_bit(const gradient_code &code, const coded_sum &sum, uint8_t *row,
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

DEVICE_INLINE void encode_uniform(const gradient_code &code, const coded_sum &sum, uint8_t *row,
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

DEVICE_INLINE void encode_threshold(const gradient_code &code, const coded_sum &sum, uint8_t *row)
{
    float t = code.threshold;
    put_fields(row, code.group, code.bits, [&](int64_t i) {
        float v = at(sum, i);
        return code.bits == 1 ? (v > t ? 1U : 0U) : v >= t ? 1U : v <= -t ? 2U : 0U;
    });
}

/* ---- the largest ---- */

/* Returns a number ordered like absolute values; NaN is above all. */
DEVICE_INLINE unsigned magnitude(const coded_sum &sum, int64_t i)
{
    return __float_as_uint(at(sum, i)) & 0x7fffffffU;
}

/* Finds, bit by bit, the largest magnitude that `keep` elements reach. */
DEVICE_INLINE unsigned find_least(const gradient_code &code, const coded_sum &sum,
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
DEVICE_INLINE void encode_top(const gradient_code &code, const coded_sum &sum, uint8_t *row,
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

/* ---- all codes ---- */

static __global__ void encode(const struct coded_gradients call)
{
    SHARED(double, sums, FOLD_WARPS);
    SHARED(int64_t, counts, FOLD_WARPS);
    const gradient_code &code = call.code;
    for (int64_t i = blockIdx.x; i < call.groups; i += gridDim.x) {
        coded_sum sum = {call.gradient + i * code.group, call.residual + i * code.group};
        uint8_t *row = call.rows + i * code.row;
        if (code.kind == CODE_ONE_BIT)
            encode_one_bit(code, sum, row, sums);
        else if (code.kind == CODE_UNIFORM)
            encode_uniform(code, sum, row, sums);
        else if (code.kind == CODE_THRESHOLD)
            encode_threshold(code, sum, row);
        else
            encode_top(code, sum, row, counts);
    }
}

extern "C" int cuda_encode(const struct coded_gradients *call, struct CUstream_st *stream)
{
    return CUDA_LAUNCH_EACH(encode, call->groups * CUDA_BLOCK, stream, *call);
}

/* ---- decoding ---- */

static __global__ void decode(const struct coded_gradients call)
{
    const gradient_code &code = call.code;
    int64_t n = call.groups * code.group;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        int64_t group = i / code.group, element = i % code.group;
        float sum = value_of(code, call.rows + group * code.row, element);
        for (int64_t k = 1; k < call.n; k++)
            sum += value_of(code, call.rows + (k * call.groups + group) * code.row, element);
        call.mean[i] = call.n > 1 ? sum / static_cast<float>(call.n) : sum;
    }
}

/* A row's indices are distinct, unless it is malformed: then the result is undefined, but confined
 * to the group. */
static __global__ void decode_top(const struct coded_gradients call, const cuda_fault fault)
{
    const gradient_code &code = call.code;
    for (int64_t group = blockIdx.x; group < call.groups; group += gridDim.x) {
        float *mean = call.mean + group * code.group;
        for (int64_t i = threadIdx.x; i < code.group; i += CUDA_BLOCK)
            mean[i] = 0;
        __syncthreads();
        for (int64_t k = 0; k < call.n; k++) {
            const uint8_t *row = call.rows + (k * call.groups + group) * code.row;
            for (int64_t i = threadIdx.x; i < code.keep; i += CUDA_BLOCK) {
                int64_t index;
                float value;
                if (entry_of(code, row, i, &index, &value))
                    mean[index] += value;
                else
                    leave_fault(fault, FAULT_GROUP, group);
            }
            __syncthreads();
        }
        for (int64_t i = threadIdx.x; call.n > 1 && i < code.group; i += CUDA_BLOCK)
            mean[i] /= static_cast<float>(call.n);
    }
}

extern "C" int cuda_decode(const struct coded_gradients *call, const struct cuda_fault *fault,
                           struct CUstream_st *stream)
{
    const struct gradient_code *code = &call->code;
    if (code->kind == CODE_TOP)
        return CUDA_LAUNCH_EACH(decode_top, call->groups * CUDA_BLOCK, stream, *call, *fault);
    return CUDA_LAUNCH_EACH(decode, call->groups * code->group, stream, *call);
}

/* ---- quantization error ---- */

static __global__ void lose(const struct coded_gradients call, const cuda_fault fault)
{
    const gradient_code &code = call.code;
    int64_t n = call.groups * code.group;
    if (has_failed(fault.at))
        return;
    for (int64_t i = thread_index(); i < n; i += thread_count()) {
        const uint8_t *row = call.rows + i / code.group * code.row;
        call.residual[i] =
            call.gradient[i] + call.residual[i] - value_of(code, row, i % code.group);
    }
}

static __global__ void check_top(const struct coded_gradients call, const cuda_fault fault)
{
    const gradient_code &code = call.code;
    int64_t n = call.groups * code.keep, index;
    float value;
    for (int64_t i = thread_index(); i < n; i += thread_count())
        if (!entry_of(code, call.rows + i / code.keep * code.row, i % code.keep, &index, &value))
            leave_fault(fault, FAULT_GROUP, i / code.keep);
}

static __global__ void lose_top(const struct coded_gradients call, const cuda_fault fault)
{
    const gradient_code &code = call.code;
    if (has_failed(fault.at))
        return;
    for (int64_t group = blockIdx.x; group < call.groups; group += gridDim.x) {
        const uint8_t *row = call.rows + group * code.row;
        const float *gradient = call.gradient + group * code.group;
        float *residual = call.residual + group * code.group;
        for (int64_t i = threadIdx.x; i < code.group; i += CUDA_BLOCK)
            residual[i] = gradient[i] + residual[i];
        __syncthreads();
        for (int64_t i = threadIdx.x; i < code.keep; i += CUDA_BLOCK) {
            int64_t index;
            float value;
            if (entry_of(code, row, i, &index, &value))
                residual[index] -= value;
        }
        __syncthreads();
    }
}

extern "C" int cuda_lose(const struct coded_gradients *call, const struct cuda_fault *fault,
                         struct CUstream_st *stream)
{
    const struct gradient_code *code = &call->code;
    if (code->kind != CODE_TOP)
        return CUDA_LAUNCH_EACH(lose, call->groups * code->group, stream, *call, *fault);
    int result = CUDA_LAUNCH_EACH(check_top, call->groups * code->keep, stream, *call, *fault);
    return result ? result
                  : CUDA_LAUNCH_EACH(lose_top, call->groups * CUDA_BLOCK, stream, *call, *fault);
}
