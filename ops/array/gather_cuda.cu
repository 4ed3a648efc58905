/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather and OneHot: a thread per element or pack written.
 */
#include "ops/array/indices_cuda.cuh"

template <typename T, int N> static __global__ void gather(const struct cuda_gather call)
{
    const T *table = static_cast<const T *>(call.table);
    T *out = static_cast<T *>(call.out);
    int64_t packs = call.columns ? call.columns / N : 1; /* per row; at least one, to check it */
    for (int64_t i = thread_index(); i < call.indices.n * packs; i += thread_count()) {
        int64_t row = i / packs, column = (i - row * packs) * N,
                index = index_at(call.indices, row);
        bool is_row = index >= 0 && index < call.rows;
        if (call.columns) /* zeros for missing rows, so that all output is defined */
            store_pack(out + row * call.columns + column,
                       is_row ? load_pack<N>(table + index * call.columns + column) : pack<T, N>());
        if (!is_row && !column)
            leave_fault(call.fault, FAULT_INDEX, row, index, call.rows);
    }
}

template <typename T>
static int launch_gather(const struct cuda_gather *call, struct CUstream_st *stream)
{
    constexpr int N = 16 / sizeof(T);
    int64_t count = call->indices.n * (call->columns ? call->columns : 1);
    bool packs = call->columns % N == 0 && is_aligned(call->table, 16) && is_aligned(call->out, 16);
    if (packs)
        return CUDA_LAUNCH_EACH((gather<T, N>), count / N, stream, *call);
    return CUDA_LAUNCH_EACH((gather<T, 1>), count, stream, *call);
}

template <typename T> static __global__ void one_hot(const struct cuda_one_hot call)
{
    T on = *static_cast<const T *>(call.on), off = *static_cast<const T *>(call.off);
    T *out = static_cast<T *>(call.out);
    int64_t slice = call.depth * call.inner, count = call.outer * slice;
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t outer = i / slice, rest = i - outer * slice, hot = rest / call.inner;
        int64_t index = index_at(call.indices, outer * call.inner + (rest - hot * call.inner));
        out[i] = index == hot ? on : off;
    }
}

template <typename T>
static int launch_one_hot(const struct cuda_one_hot *call, struct CUstream_st *stream)
{
    int64_t count = call->outer * call->depth * call->inner;
    return CUDA_LAUNCH_EACH(one_hot<T>, count, stream, *call);
}

extern "C" int cuda_gather(const struct cuda_gather *call, struct CUstream_st *stream)
{
    return launch_by_size(call->element_bytes, [&](auto e) {
        return launch_gather<typename decltype(e)::type>(call, stream);
    });
}

extern "C" int cuda_one_hot(const struct cuda_one_hot *call, struct CUstream_st *stream)
{
    return launch_by_size(call->element_bytes, [&](auto e) {
        return launch_one_hot<typename decltype(e)::type>(call, stream);
    });
}
