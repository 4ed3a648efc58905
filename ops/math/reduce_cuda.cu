/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions by rows and by columns. The input is seen as groups of dimensions that are alternately
 * kept and reduced. If the innermost group is reduced, a block folds each result, with adjacent
 * threads on adjacent elements; if it is kept, the lanes of a warp fold adjacent results, and the
 * warps of a block different rows. If there are few results, each is split into pieces, which a
 * second kernel merges in order.
 */
#include "ops/math/launchers_cuda.h"

#include <cstring>

#include "ops/math/fold_cuda.cuh"

#define PIECES_WANTED 256       /* blocks that fill a device */
#define ACCUMULATOR_BYTES 16    /* at most */
#define PIECE_ELEMENTS_MIN 4096 /* fewer are not worth a block */

/* ---- ops: each with its accumulator for a wide type W ---- */

template <typename W>
using summed = std::conditional_t<std::is_floating_point<W>::value, double, twin<W>>;

namespace
{
template <typename A, bool product> struct plus {
    typedef A accumulator;
    template <typename W> static __device__ __forceinline__ A take(W x)
    {
        return static_cast<A>(x);
    }
    static __device__ __forceinline__ A identity()
    {
        return product ? 1 : 0;
    }
    static __device__ __forceinline__ A combine(A a, A b)
    {
        return product ? a * b : a + b;
    }
    static __device__ __forceinline__ A finish(A a, int64_t)
    {
        return a;
    }
};

template <typename T> struct Sum : plus<summed<wide<T>>, false> {
};
template <typename T> struct Prod : plus<summed<wide<T>>, true> {
};

/* Half the sum of squares. */
template <typename T> struct L2Loss : plus<double, false> {
    static __device__ __forceinline__ double take(wide<T> x)
    {
        return static_cast<double>(x) * static_cast<double>(x);
    }
    static __device__ __forceinline__ double finish(double a, int64_t)
    {
        return a / 2;
    }
};

/* Sums of integers that cannot overflow for any count. */
template <typename W> struct averaging {
    typedef double type;
};
template <> struct averaging<int32_t> {
    typedef int64_t type;
};
template <> struct averaging<int64_t> {
    typedef __int128 type;
};
template <> struct averaging<uint64_t> {
    typedef unsigned __int128 type;
};
template <typename W> using averaged = typename averaging<W>::type;
template <typename T> struct Mean : plus<averaged<wide<T>>, false> {
    typedef averaged<wide<T>> A;
    static __device__ __forceinline__ A finish(A a, int64_t count)
    {
        if constexpr (std::is_floating_point<A>::value)
            return a / static_cast<double>(count);
        else
            return a / static_cast<A>(count);
    }
};

/* NaN propagates. Without elements: the type's lowest, or highest, value. */
template <typename T, bool largest> struct extreme {
    typedef wide<T> accumulator;
    template <typename W> static __device__ __forceinline__ accumulator take(W x)
    {
        return x;
    }
    static __device__ __forceinline__ accumulator identity()
    {
        if constexpr (is_floating<T>) {
            return largest ? -INFINITY : INFINITY;
        } else {
            constexpr T least = limits_of<T>::least;
            constexpr T most = limits_of<T>::most;
            return largest ? least : most;
        }
    }
    static __device__ __forceinline__ accumulator combine(accumulator a, accumulator b)
    {
        return (largest ? a > b : a < b) || a != a ? a : b;
    }
    static __device__ __forceinline__ accumulator finish(accumulator a, int64_t)
    {
        return a;
    }
};

template <typename T> struct Max : extreme<T, true> {
};
template <typename T> struct Min : extreme<T, false> {
};

template <bool all> struct logic {
    typedef bool accumulator;
    template <typename W> static __device__ __forceinline__ bool take(W x)
    {
        return x;
    }
    static __device__ __forceinline__ bool identity()
    {
        return all;
    }
    static __device__ __forceinline__ bool combine(bool a, bool b)
    {
        return all ? a && b : a || b;
    }
    static __device__ __forceinline__ bool finish(bool a, int64_t)
    {
        return a;
    }
};
template <typename T> struct All : logic<true> {
};
template <typename T> struct Any : logic<false> {
};

/* ---- shapes ---- */

struct index_walk { /* innermost first */
    int rank;
    int64_t dims[CUDA_RANK_MAX], strides[CUDA_RANK_MAX];
};

struct reduce_plan {
    bool rows; /* the innermost group is reduced */
    index_walk kept, folded;
    int64_t results, count; /* elements of a result */
    int64_t columns;        /* adjacent results; 1 with rows */
    int64_t pieces, piece;  /* per result, and elements of a piece */
};
} // namespace

static void push(index_walk &walk, int64_t dim, int64_t stride)
{
    int last = walk.rank - 1;
    if (walk.rank && walk.dims[last] * walk.strides[last] == stride) {
        walk.dims[last] *= dim;
        return;
    }
    walk.dims[walk.rank] = dim;
    walk.strides[walk.rank++] = stride;
}

static reduce_plan plan_of(const struct cuda_reduce *call)
{
    reduce_plan plan = {};
    int64_t stride = 1;
    bool first = true;
    plan.results = plan.count = plan.columns = 1;
    plan.rows = true;
    for (int d = call->rank - 1; d >= 0; stride *= call->dims[d--]) {
        (call->reduced[d] ? plan.count : plan.results) *= call->dims[d];
        if (call->dims[d] == 1)
            continue;
        plan.rows = first ? call->reduced[d] : plan.rows;
        first = false;
        push(call->reduced[d] ? plan.folded : plan.kept, call->dims[d], stride);
    }
    if (!plan.rows)
        plan.columns = plan.kept.dims[0];
    int64_t tiles = plan.rows ? plan.results : plan.results / CUDA_WARP + 1;
    tiles = tiles ? tiles : 1;
    int64_t most = plan.count / PIECE_ELEMENTS_MIN + 1;
    plan.pieces = tiles > PIECES_WANTED ? 1 : PIECES_WANTED / tiles;
    plan.pieces = plan.pieces > most ? most : plan.pieces;
    plan.piece = (plan.count + plan.pieces - 1) / plan.pieces;
    return plan;
}

DEVICE_INLINE int64_t offset_of(const index_walk &walk, int64_t index)
{
    int64_t offset = 0;
    for (int d = 0; d < walk.rank; d++) {
        int64_t rest = d + 1 < walk.rank ? index / walk.dims[d] : 0;
        offset += (index - rest * walk.dims[d]) * walk.strides[d];
        index = rest;
    }
    return offset;
}

/* ---- kernels ---- */

template <typename T, typename A> struct reduce_args {
    reduce_plan plan;
    const T *x;
    T *y;
    A *partial; /* [pieces][results]; unused with one piece */
};

template <typename Op, typename T, typename A>
DEVICE_INLINE void put(const reduce_args<T, A> &args, int64_t result, int64_t piece, A value)
{
    if (args.partial)
        args.partial[piece * args.plan.results + result] = value;
    else
        args.y[result] = narrow<T>(static_cast<wide<T>>(Op::finish(value, args.plan.count)));
}

template <typename Op, typename T, typename A>
static __global__ void reduce_rows(const reduce_args<T, A> args)
{
    SHARED(A, part, FOLD_WARPS);
    int64_t begin = blockIdx.y * args.plan.piece, end = begin + args.plan.piece;
    end = end < args.plan.count ? end : args.plan.count;
    for (int64_t result = blockIdx.x; result < args.plan.results; result += gridDim.x) {
        const T *x = args.x + offset_of(args.plan.kept, result);
        A value = Op::identity();
        for (int64_t i = begin + threadIdx.x; i < end; i += CUDA_BLOCK)
            value = Op::combine(value, Op::take(widen(x[offset_of(args.plan.folded, i)])));
        value = fold_block<Op, A>(value, part);
        if (threadIdx.x == 0)
            put<Op>(args, result, blockIdx.y, value);
    }
}

template <typename Op, typename T, typename A>
static __global__ void reduce_columns(const reduce_args<T, A> args)
{
    SHARED(A, part, CUDA_BLOCK);
    int64_t begin = blockIdx.y * args.plan.piece, end = begin + args.plan.piece;
    int lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP;
    end = end < args.plan.count ? end : args.plan.count;
    for (int64_t tile = blockIdx.x; tile * CUDA_WARP < args.plan.results; tile += gridDim.x) {
        int64_t result = tile * CUDA_WARP + lane;
        A value = Op::identity();
        if (result < args.plan.results) {
            const T *x = args.x + offset_of(args.plan.kept, result);
            for (int64_t i = begin + warp; i < end; i += FOLD_WARPS)
                value = Op::combine(value, Op::take(widen(x[offset_of(args.plan.folded, i)])));
        }
        part[threadIdx.x] = value;
        __syncthreads();
        if (warp == 0 && result < args.plan.results) {
            for (int i = 1; i < FOLD_WARPS; i++)
                value = Op::combine(value, static_cast<A>(part[i * CUDA_WARP + lane]));
            put<Op>(args, result, blockIdx.y, value);
        }
        __syncthreads();
    }
}

template <typename Op, typename T, typename A>
static __global__ void merge_pieces(const reduce_args<T, A> args)
{
    for (int64_t result = thread_index(); result < args.plan.results; result += thread_count()) {
        A value = Op::identity();
        for (int64_t piece = 0; piece < args.plan.pieces; piece++)
            value = Op::combine(value, args.partial[piece * args.plan.results + result]);
        args.y[result] = narrow<T>(static_cast<wide<T>>(Op::finish(value, args.plan.count)));
    }
}

/* ---- launching ---- */

template <typename Op, typename T>
static int launch(const struct cuda_reduce *call, struct CUstream_st *stream)
{
    typedef typename Op::accumulator A;
    reduce_args<T, A> args = {plan_of(call), static_cast<const T *>(call->x),
                              static_cast<T *>(call->y), nullptr};
    const reduce_plan &plan = args.plan;
    if (!plan.results)
        return 0;
    if (plan.pieces > 1)
        args.partial = static_cast<A *>(call->scratch);
    int64_t tiles = plan.rows ? plan.results : (plan.results + CUDA_WARP - 1) / CUDA_WARP;
    dim3 grid(tiles > CUDA_GRID_MAX ? CUDA_GRID_MAX : static_cast<unsigned>(tiles),
              static_cast<unsigned>(plan.pieces));
    int result = plan.rows
                     ? CUDA_LAUNCH((reduce_rows<Op, T, A>), grid, CUDA_BLOCK, 0, stream, args)
                     : CUDA_LAUNCH((reduce_columns<Op, T, A>), grid, CUDA_BLOCK, 0, stream, args);
    if (result || plan.pieces == 1)
        return result;
    return CUDA_LAUNCH_EACH((merge_pieces<Op, T, A>), plan.results, stream, args);
}

extern "C" size_t cuda_reduce_scratch(const struct cuda_reduce *call)
{
    reduce_plan plan = plan_of(call);
    return plan.pieces > 1 ? ACCUMULATOR_BYTES * static_cast<size_t>(plan.pieces * plan.results)
                           : 0;
}

template <template <typename> class Op>
static int launch_by_type(const struct cuda_reduce *call, struct CUstream_st *stream)
{
    return launch_by_number(call->type, [&](auto e) {
        typedef typename decltype(e)::type type;
        return launch<Op<type>, type>(call, stream);
    });
}

static int launch_loss(const struct cuda_reduce *call, struct CUstream_st *stream)
{
    return launch_by_float(call->type, [&](auto e) {
        typedef typename decltype(e)::type type;
        return launch<L2Loss<type>, type>(call, stream);
    });
}

template <template <typename> class Op>
static int launch_logic(const struct cuda_reduce *call, struct CUstream_st *stream)
{
    return call->type == CUDA_BOOL ? launch<Op<bool>, bool>(call, stream) : CUDA_INVALID_VALUE;
}

static int launch_mean(const struct cuda_reduce *call, struct CUstream_st *stream)
{
    reduce_plan plan = plan_of(call);
    bool floating = call->type <= CUDA_BFLOAT16;
    return floating || plan.count || !plan.results ? launch_by_type<Mean>(call, stream)
                                                   : CUDA_INVALID_VALUE;
}

static const struct {
    const char *op;
    int (*launch)(const struct cuda_reduce *call, struct CUstream_st *stream);
} reductions[N_CUDA_REDUCTIONS] = {
    {"Sum", launch_by_type<Sum>}, {"Prod", launch_by_type<Prod>}, {"Max", launch_by_type<Max>},
    {"Min", launch_by_type<Min>}, {"Mean", launch_mean},          {"All", launch_logic<All>},
    {"Any", launch_logic<Any>},   {"L2Loss", launch_loss},
};

extern "C" enum cuda_reduction cuda_reduction_of(const char *op)
{
    int i = 0;
    while (i < N_CUDA_REDUCTIONS && strcmp(reductions[i].op, op))
        i++;
    return static_cast<cuda_reduction>(i);
}

extern "C" int cuda_reduce(const struct cuda_reduce *call, struct CUstream_st *stream)
{
    return call->op < N_CUDA_REDUCTIONS ? reductions[call->op].launch(call, stream)
                                        : CUDA_INVALID_VALUE;
}
