/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers with the CPU's bits: of the same place in the same step the same ones.
 */
#ifndef TF_OPS_RANDOM_RANDOM_CUDA_H
#define TF_OPS_RANDOM_RANDOM_CUDA_H

#include "ops/device/launch_cuda.h"

enum cuda_random_form { CUDA_UNIFORM, CUDA_NORMAL, CUDA_TRUNCATED_NORMAL, CUDA_UNIFORM_INT };

/* Which numbers: those of an op in an iteration of a step. */
struct cuda_random_place {
    uint64_t op_seed, op_seed2, iteration;
    const struct step_block *step; /* on the device: seed, replica and number are read there */
};

struct cuda_random {
    enum cuda_random_form form;
    enum cuda_type type; /* a float; CUDA_UNIFORM_INT: CUDA_INT32 or CUDA_INT64 */
    int64_t n, offset;   /* the number of the first element */
    int64_t low;         /* integers: the first, and how many there are */
    uint64_t size;
    struct cuda_random_place place;
    void *out;
};

CUDA_C int cuda_random(const struct cuda_random *call, struct CUstream_st *stream);

#endif
