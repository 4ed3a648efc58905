/* SPDX-License-Identifier: Apache-2.0
 *
 * The update rules shared by all devices, as a loop of one element in each thread.
 */
#include "ops/train/apply_cuda.h"

#include <cmath>
#include <cstring>

#include "ops/device/types_cuda.cuh"

namespace
{
/* One element of each argument, widened. */
template <typename W> struct apply_terms {
    const W *scalars;
    bool nesterov;
    W w, a, b, g;
};
} // namespace

#define LOOP(name, type, ...)                                                                      \
    DEVICE_INLINE void name(apply_terms<type> *u, type *w, [[maybe_unused]] type *a,               \
                            [[maybe_unused]] type *b, const type *g)                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define EACH for (int i = 0; i < 1; i++)
#define S(i) u->scalars[i]
#define NAME(rule) rule

#include "ops/train/rules.h"

#define REAL_IS_DOUBLE
#include "ops/train/rules.h"

#define RULE(op, rule)                                                                             \
    struct op {                                                                                    \
        template <typename W> static __device__ __forceinline__ void of(apply_terms<W> *u)         \
        {                                                                                          \
            rule(u, &u->w, &u->a, &u->b, &u->g);                                                   \
        }                                                                                          \
    };

namespace
{
RULES(RULE)

/* What differs between the parts of apply_arguments. */
struct apply_part {
    void *w, *slots[APPLY_SLOTS_MAX];
    const void *g;
    int64_t n;
};

/* Blocks are divided among the parts: those from first[i] to first[i + 1] have part i. */
struct apply_args {
    bool nesterov;
    int n_parts;
    const void *scalars[APPLY_SCALARS_MAX];
    apply_part parts[APPLY_BATCH_MAX];
    unsigned first[APPLY_BATCH_MAX + 1];
    const struct fault *fault;
};
} // namespace

template <typename T, int N> DEVICE_INLINE pack<T, N> load_slot(const void *slot, int64_t i)
{
    return slot ? load_pack<N>(static_cast<const T *>(slot) + i) : pack<T, N>();
}

/* Updates elements i to i + N - 1 of a variable. */
template <typename Rule, typename T, typename G, int N>
DEVICE_INLINE void update(const apply_terms<wide<T>> &of_all, const apply_part &part, int64_t i)
{
    T *w = static_cast<T *>(part.w);
    pack<G, N> g = load_pack<N>(static_cast<const G *>(part.g) + i);
    pack<T, N> values = load_pack<N>(w + i);
    pack<T, N> a = load_slot<T, N>(part.slots[0], i), b = load_slot<T, N>(part.slots[1], i);
    for (int k = 0; k < N; k++) {
        apply_terms<wide<T>> u = {of_all.scalars, of_all.nesterov, widen(values.at[k]),
                                  widen(a.at[k]), widen(b.at[k]),  widen(g.at[k])};
        Rule::of(&u);
        values.at[k] = narrow<T>(u.w);
        a.at[k] = narrow<T>(u.a);
        b.at[k] = narrow<T>(u.b);
    }
    store_pack(w + i, values);
    if (part.slots[0])
        store_pack(static_cast<T *>(part.slots[0]) + i, a);
    if (part.slots[1])
        store_pack(static_cast<T *>(part.slots[1]) + i, b);
}

DEVICE_INLINE bool is_packed(const void *pointer)
{
    return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

DEVICE_INLINE int part_of_block(const apply_args &args)
{
    int i = 0;
    while (i + 1 < args.n_parts && blockIdx.x >= args.first[i + 1])
        i++;
    return i;
}

template <typename Rule, typename T, typename G> static __global__ void apply(const apply_args args)
{
    constexpr int N = 16 / sizeof(T);
    const int number = part_of_block(args);
    const apply_part &part = args.parts[number];
    const int64_t n_threads =
        static_cast<int64_t>(args.first[number + 1] - args.first[number]) * blockDim.x;
    const int64_t thread =
        static_cast<int64_t>(blockIdx.x - args.first[number]) * blockDim.x + threadIdx.x;
    wide<T> scalars[APPLY_SCALARS_MAX] = {};
    apply_terms<wide<T>> of_all = {scalars, args.nesterov, 0, 0, 0, 0};
    if (has_failed(args.fault))
        return;
    for (int i = 0; i < APPLY_SCALARS_MAX; i++)
        if (args.scalars[i])
            scalars[i] = widen(*static_cast<const T *>(args.scalars[i]));
    bool packs = is_packed(part.w) && is_packed(part.g) && is_packed(part.slots[0]) &&
                 is_packed(part.slots[1]);
    int64_t done = packs ? part.n / N * N : 0;
    for (int64_t i = thread * N; i < done; i += n_threads * N)
        update<Rule, T, G, N>(of_all, part, i);
    for (int64_t i = done + thread; i < part.n; i += n_threads)
        update<Rule, T, G, 1>(of_all, part, i);
}

template <typename Rule, typename T, typename G>
static int launch(const struct cuda_apply *call, struct CUstream_st *stream)
{
    static_assert(APPLY_SLOTS_MAX == 2, "all slots are copied below");
    int n = call->n_parts;
    apply_args args = {call->parts->nesterov, n, {}, {}, {}, call->fault};
    memcpy(args.scalars, call->parts->scalars, sizeof args.scalars);
    for (int i = 0; i < n; i++) {
        const apply_arguments &u = call->parts[i];
        args.parts[i] = {u.w, {u.slots[0], u.slots[1]}, u.g, u.n};
        args.first[i + 1] = args.first[i] + cuda_blocks(u.n / 4);
    }
    return CUDA_LAUNCH((apply<Rule, T, G>), args.first[n], CUDA_BLOCK, 0, stream, args);
}

template <typename Rule>
static int launch_by_type(const struct cuda_apply *call, struct CUstream_st *stream)
{
    return launch_by_float(call->gradient, [&](auto like) {
        typedef typename decltype(like)::type G;
        if constexpr (is_16_bit_float<G>)
            if (call->type == CUDA_FLOAT32)
                return launch<Rule, float, G>(call, stream);
        return call->type == call->gradient ? launch<Rule, G, G>(call, stream) : CUDA_INVALID_VALUE;
    });
}

extern "C" cuda_apply_launcher *cuda_apply(const char *op)
{
#define TRY(op_name, rule)                                                                         \
    if (!strcmp(op, #op_name))                                                                     \
        return launch_by_type<op_name>;
    RULES(TRY)
    return [](const struct cuda_apply *, struct CUstream_st *) { return CUDA_INVALID_VALUE; };
}
