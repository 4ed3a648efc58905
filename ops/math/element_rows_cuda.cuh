/* SPDX-License-Identifier: Apache-2.0
 *
 * Table rows of element-wise ops: launch<op, T, R> computes elements of type R from those of T.
 */
#ifndef OPS_MATH_ELEMENT_ROWS_CUDA_CUH
#define OPS_MATH_ELEMENT_ROWS_CUDA_CUH

#include <cstring>

#include "ops/device/types_cuda.cuh"

template <typename Launcher> struct element_row {
    const char *op;
    cuda_type type;
    Launcher *launch;
};

/* nullptr: there is no such row. */
template <typename Launcher, size_t n>
static Launcher *find_launcher(const element_row<Launcher> (&rows)[n], const char *op,
                               cuda_type type)
{
    for (const element_row<Launcher> &row : rows)
        if (row.type == type && !strcmp(row.op, op))
            return row.launch;
    return nullptr;
}

#define ROW(op, type, T, ...) {#op, type, launch<op, T, __VA_ARGS__>},
#define ROW_OF(op, R, type, T) ROW(op, type, T, std::conditional_t<std::is_void<R>::value, T, R>)
/* R: type of results; void: the elements' own type. */
#define FLOATS_ROWS(op, R)                                                                         \
    ROW_OF(op, R, CUDA_FLOAT32, float)                                                             \
    ROW_OF(op, R, CUDA_FLOAT64, double)                                                            \
    ROW_OF(op, R, CUDA_FLOAT16, __half) ROW_OF(op, R, CUDA_BFLOAT16, __nv_bfloat16)
#define ANGLES_ROWS FLOATS_ROWS
#define WORDS_ROWS(op, R)                                                                          \
    FLOATS_ROWS(op, R) ROW_OF(op, R, CUDA_INT32, int32_t) ROW_OF(op, R, CUDA_INT64, int64_t)
#define SIGNED_ROWS(op, R)                                                                         \
    WORDS_ROWS(op, R)                                                                              \
    ROW_OF(op, R, CUDA_INT8, int8_t) ROW_OF(op, R, CUDA_INT16, int16_t)
#define REALS_ROWS(op, R)                                                                          \
    SIGNED_ROWS(op, R)                                                                             \
    ROW_OF(op, R, CUDA_UINT8, uint8_t)                                                             \
    ROW_OF(op, R, CUDA_UINT16, uint16_t)                                                           \
    ROW_OF(op, R, CUDA_UINT32, uint32_t) ROW_OF(op, R, CUDA_UINT64, uint64_t)

#endif
