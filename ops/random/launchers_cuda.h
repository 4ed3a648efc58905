/* SPDX-License-Identifier: Apache-2.0
 *
 * The launchers of the .cu files of random numbers, and their arguments.
 */
#ifndef TF_OPS_RANDOM_LAUNCHERS_CUDA_H
#define TF_OPS_RANDOM_LAUNCHERS_CUDA_H

#include "ops/device/launch_cuda.h"
#include "ops/random/draw.h"

/* ---- random ----
 *
 * Random numbers with the CPU's bits: the same place in the same step gives the same numbers. */

/* The place of random numbers: those of an op in an iteration of a step. */
struct cuda_random_place {
    struct random_seeds seeds;
    uint64_t iteration;
    const struct step_block *step; /* on the device, where seed, replica and number are read */
};

static inline struct cuda_random_place cuda_random_place_of(const struct kernel_call *call)
{
    struct cuda_random_place place = {*(const struct random_seeds *)call->state, call->iteration,
                                      call->step_block};
    return place;
}

struct cuda_random {
    enum random_form form;
    enum cuda_type type; /* a float; RANDOM_UNIFORM_INT: CUDA_INT32 or CUDA_INT64 */
    int64_t n;
    int64_t low; /* integers: the first, and how many there are */
    uint64_t size;
    struct cuda_random_place place;
    void *out;
};

CUDA_C int cuda_random(const struct cuda_random *call, struct CUstream_st *stream);

/* ---- choose ----
 *
 * Random choices with the CPU's numbers: an order, or classes by their probabilities. */

/* The Fisher-Yates shuffle, one place after the other. */
struct cuda_shuffle {
    struct cuda_random_place place;
    int64_t n;
    int64_t *order;   /* gets the numbers 0 to n - 1 */
    int64_t *scratch; /* of n */
};

struct cuda_multinomial {
    struct cuda_random_place place;
    enum cuda_type type; /* of logits, a number */
    int64_t rows, classes, samples;
    const void *logits;
    int64_t *out;            /* [rows, samples] */
    double *scratch;         /* [rows, classes] */
    struct cuda_fault fault; /* FAULT_CLASSES for a row without a possible class */
};

CUDA_C int cuda_shuffle(const struct cuda_shuffle *call, struct CUstream_st *stream);
CUDA_C int cuda_multinomial(const struct cuda_multinomial *call, struct CUstream_st *stream);

#endif
