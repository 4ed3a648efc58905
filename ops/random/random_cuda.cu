/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread computes one block of four words, and the elements that use them.
 */
#include "ops/random/launchers_cuda.h"

#include "ops/random/stream_cuda.cuh"

namespace
{
/* Each distribution makes `per_block` elements from a block's words. */
template <typename T> struct uniform {
    static constexpr int per_block = sizeof(T) == 8 ? 2 : 4;
    static __device__ void draw(const struct cuda_random &, const uint32_t words[4], T *values)
    {
        constexpr int bits = std::is_same<T, __half>::value ? 11 : 8; /* of precision below 1 */
        for (int k = 0; k < per_block; k++)
            if constexpr (is_16_bit_float<T>)
                values[k] = narrow<T>(static_cast<float>(words[k] >> (32 - bits)) /
                                      static_cast<float>(1 << bits));
            else if constexpr (sizeof(T) == 8)
                values[k] = uniform_float64(words + 2 * k);
            else
                values[k] = uniform_float32(words[k]);
    }
};

template <typename T> struct normal {
    static constexpr int per_block = sizeof(T) == 8 ? 2 : 4;
    static __device__ void draw(const struct cuda_random &, const uint32_t words[4], T *values)
    {
        if constexpr (sizeof(T) == 8) {
            normal_pair_float64(words, values);
        } else {
            float pair[2];
            for (int k = 0; k < 4; k += 2) {
                normal_pair_float32(words + k, pair);
                values[k] = narrow<T>(pair[0]);
                values[k + 1] = narrow<T>(pair[1]);
            }
        }
    }
};

template <typename T> struct uniform_int {
    static constexpr int per_block = 2;
    static __device__ void draw(const struct cuda_random &call, const uint32_t words[4], T *values)
    {
        for (int k = 0; k < 2; k++)
            values[k] = static_cast<T>(static_cast<uint64_t>(call.low) +
                                       uniform_integer(words + 2 * k, call.size));
    }
};
} // namespace

template <template <typename> class Form, typename T>
static __global__ void random(const struct cuda_random call)
{
    constexpr int per_block = Form<T>::per_block;
    const struct philox_stream stream = stream_of(call.place);
    T *out = static_cast<T *>(call.out);
    int64_t first = call.place.seeds.offset / per_block,
            last = (call.place.seeds.offset + call.n - 1) / per_block;
    for (int64_t block = first + thread_index(); block <= last; block += thread_count()) {
        uint32_t words[4];
        T values[per_block];
        philox_block(&stream, static_cast<uint64_t>(block), words);
        Form<T>::draw(call, words, values);
        for (int k = 0; k < per_block; k++) {
            int64_t i = block * per_block + k - call.place.seeds.offset;
            if (i >= 0 && i < call.n)
                out[i] = values[k];
        }
    }
}

template <template <typename> class Form, typename T>
static int launch(const struct cuda_random *call, struct CUstream_st *stream)
{
    if (!call->n)
        return 0;
    return CUDA_LAUNCH_EACH((random<Form, T>), call->n / Form<T>::per_block + 1, stream, *call);
}

/* Element i takes the first value within two standard deviations from block i, then from blocks i +
 * 2^48, i + 2 * 2^48, ... */
template <typename T>
DEVICE_INLINE wide<T> truncated_at(const struct cuda_random &call,
                                   const struct philox_stream *stream, int64_t i)
{
    uint32_t words[4];
    wide<T> values[normal<wide<T>>::per_block];
    for (uint64_t block = static_cast<uint64_t>(i);; block += UINT64_C(1) << 48) {
        philox_block(stream, block, words);
        normal<wide<T>>::draw(call, words, values);
        for (wide<T> value : values)
            if (fabs(value) < 2)
                return value;
    }
}

template <typename T> static __global__ void random_truncated(const struct cuda_random call)
{
    const struct philox_stream stream = stream_of(call.place);
    for (int64_t i = thread_index(); i < call.n; i += thread_count())
        static_cast<T *>(call.out)[i] =
            narrow<T>(truncated_at<T>(call, &stream, call.place.seeds.offset + i));
}

static int launch_truncated(const struct cuda_random *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto like) {
        typedef typename decltype(like)::type T;
        return CUDA_LAUNCH_EACH(random_truncated<T>, call->n, stream, *call);
    });
}

template <template <typename> class Form>
static int launch_float(const struct cuda_random *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto like) {
        return launch<Form, typename decltype(like)::type>(call, stream);
    });
}

extern "C" int cuda_random(const struct cuda_random *call, struct CUstream_st *stream)
{
    if (call->form == RANDOM_UNIFORM)
        return launch_float<uniform>(call, stream);
    if (call->form == RANDOM_NORMAL)
        return launch_float<normal>(call, stream);
    if (call->form == RANDOM_TRUNCATED_NORMAL)
        return launch_truncated(call, stream);
    if (call->type == CUDA_INT32)
        return launch<uniform_int, int32_t>(call, stream);
    if (call->type == CUDA_INT64)
        return launch<uniform_int, int64_t>(call, stream);
    return CUDA_INVALID_VALUE;
}
