/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and cross entropies: a warp per row, or a block if rows are long. Exponentials are not
 * kept, but computed again when results are written.
 */
#include "ops/nn/launchers_cuda.h"

#include <cmath>

#include "ops/math/fold_cuda.cuh"

#define VMATH_FUNCTION static __device__ __forceinline__
#include "ops/math/vmath.h"

#define LONG_ROW 2048

namespace
{
template <typename W> struct larger {
    static __device__ __forceinline__ W combine(W a, W b)
    {
        return b > a ? b : a;
    }
};

struct sum_of {
    static __device__ __forceinline__ double combine(double a, double b)
    {
        return a + b;
    }
};
} // namespace

DEVICE_INLINE float exponential(float x)
{
    return vmath_exp(x);
}

DEVICE_INLINE double exponential(double x)
{
    return exp(x);
}

/* Folds the values of the row's threads; all of them get the result. */
template <typename Op, int threads, typename T>
DEVICE_INLINE T fold_row(T value, shared_pointer<T> part)
{
    if constexpr (threads == CUDA_WARP) {
        for (int step = CUDA_WARP / 2; step; step /= 2)
            value = Op::combine(value, __shfl_xor_sync(CUDA_ALL_LANES, value, step));
        return value;
    } else {
        value = fold_block<Op, T>(value, part);
        if (threadIdx.x == 0)
            part[0] = value;
        __syncthreads();
        value = part[0];
        __syncthreads();
        return value;
    }
}

/* Values that a row's threads share. */
template <typename W> struct row_terms {
    W max, sum, log_sum;
};

/* Writes the thread's elements; with distributions as labels, returns its part of the loss. */
template <int form, int threads, typename T>
DEVICE_INLINE double write_row(const struct cuda_softmax &call, int64_t row, int thread,
                               const row_terms<wide<T>> &terms)
{
    typedef wide<T> W;
    const T *x = static_cast<const T *>(call.x) + row * call.n;
    const T *labels = static_cast<const T *>(call.labels) + row * call.n;
    T *y = static_cast<T *>(call.y) + row * call.n;
    double loss = 0;
    for (int64_t i = thread; i < call.n; i += threads) {
        W from_max = widen(x[i]) - terms.max;
        if constexpr (form == CUDA_LOG_SOFTMAX) {
            y[i] = narrow<T>(from_max - terms.log_sum);
        } else if constexpr (form == CUDA_CROSS_ENTROPY) {
            W label = widen(labels[i]);
            loss += label == 0 ? 0 : static_cast<double>(label * (terms.log_sum - from_max));
            y[i] = narrow<T>(exponential(from_max) / terms.sum - label);
        } else {
            y[i] = narrow<T>(exponential(from_max) / terms.sum);
        }
    }
    return loss;
}

template <int form, int threads, typename T>
static __global__ void softmax(const struct cuda_softmax call)
{
    typedef wide<T> W;
    SHARED(W, largest, FOLD_WARPS);
    SHARED(double, part, FOLD_WARPS);
    int thread = threadIdx.x % threads;
    int64_t step = thread_count() / threads;
    for (int64_t row = thread_index() / threads; row < call.rows; row += step) {
        const T *x = static_cast<const T *>(call.x) + row * call.n;
        row_terms<W> terms = {-INFINITY, 0, 0};
        int64_t label = 0;
        for (int64_t i = thread; i < call.n; i += threads)
            terms.max = larger<W>::combine(terms.max, widen(x[i]));
        terms.max = fold_row<larger<W>, threads>(terms.max, largest);
        double sum = 0;
        for (int64_t i = thread; i < call.n; i += threads)
            sum += static_cast<double>(exponential(widen(x[i]) - terms.max));
        terms.sum = static_cast<W>(fold_row<sum_of, threads>(sum, part));
        terms.log_sum = log(terms.sum);
        W at_label = 0;
        bool owns = false;
        if constexpr (form == CUDA_SPARSE_CROSS_ENTROPY) {
            label = call.wide_classes ? static_cast<const int64_t *>(call.labels)[row]
                                      : static_cast<const int32_t *>(call.labels)[row];
            if (label < 0 || label >= call.n) {
                if (thread == 0)
                    leave_fault(call.fault, FAULT_LABEL, row, label, call.n);
                label = 0;
            }
            owns = call.n && label % threads == thread; /* read before other threads overwrite x */
            at_label = owns ? widen(x[label]) - terms.max : 0;
        }
        double loss = write_row<form, threads, T>(call, row, thread, terms);
        if constexpr (form == CUDA_CROSS_ENTROPY)
            loss = fold_row<sum_of, threads>(loss, part);
        if (owns) {
            T *y = static_cast<T *>(call.y) + row * call.n;
            y[label] = narrow<T>(exponential(at_label) / terms.sum - 1);
            loss = static_cast<double>(terms.log_sum - at_label);
            static_cast<T *>(call.loss)[row] = narrow<T>(static_cast<W>(loss));
        }
        if (form == CUDA_CROSS_ENTROPY && thread == 0)
            static_cast<T *>(call.loss)[row] = narrow<T>(static_cast<W>(loss));
    }
}

template <int form, typename T>
static int launch(const struct cuda_softmax *call, struct CUstream_st *stream)
{
    if (call->n < LONG_ROW)
        return CUDA_LAUNCH_EACH((softmax<form, CUDA_WARP, T>), call->rows * CUDA_WARP, stream,
                                *call);
    return CUDA_LAUNCH_EACH((softmax<form, CUDA_BLOCK, T>), call->rows * CUDA_BLOCK, stream, *call);
}

extern "C" int cuda_softmax(const struct cuda_softmax *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto like) {
        return launch_by_form<CUDA_SPARSE_CROSS_ENTROPY + 1>(call->form, [&](auto form) {
            return launch<decltype(form)::value, typename decltype(like)::type>(call, stream);
        });
    });
}
