/* SPDX-License-Identifier: Apache-2.0
 *
 * Correct kernels, and the same with one mistake each, for the test of the emulator. Arrays have n
 * ints.
 */
#ifndef TF_TESTS_LIB_CUDA_LESSONS_H
#define TF_TESTS_LIB_CUDA_LESSONS_H

#include <stdint.h>

struct CUstream_st;

/* The name of the kernel is the lesson's; all but those of the first line are wrong. */
/* clang-format off */
#define CUDA_LESSONS(X) \
    X(reverse) X(neighbours) X(sum) X(votes) X(order) X(lanes_in_turn) X(count) \
    X(no_barrier) X(no_barrier_after_read) X(no_barrier_in_warp) X(early_leaver) \
    X(two_barriers) X(barrier_and_shuffle) X(absent_lane) X(wrong_mask) \
    X(other_mask) X(foreign_lane) X(shared_beyond) X(shared_before) \
    X(shared_unwritten) X(shared_too_large) X(dynamic_beyond) X(crooked_pack) \
    X(global_order) X(global_beyond)
/* clang-format on */

struct cuda_lesson {
    int n, block; /* elements, and threads of a block */
    const int *x;
    int *y;
};

#ifdef __cplusplus
extern "C" {
#endif

#define X(name)                                                                                    \
    int cuda_lesson_##name(const struct cuda_lesson *lesson, struct CUstream_st *stream);
CUDA_LESSONS(X)
#undef X

/* Convert 16-bit floats by CUDA's functions: all bit patterns to float32, and back. */
void cuda_lesson_widen(const uint16_t *bits, int n, float *half, float *brain);
void cuda_lesson_narrow(const float *x, int n, uint16_t *half, uint16_t *brain);

#ifdef __cplusplus
}
#endif

#endif
