/* SPDX-License-Identifier: Apache-2.0
 *
 * Random choices by the CPU's numbers: an order, or classes by their probabilities.
 */
#ifndef TF_OPS_RANDOM_CHOOSE_CUDA_H
#define TF_OPS_RANDOM_CHOOSE_CUDA_H

#include <stddef.h>

#include "ops/random/random_cuda.h"

/* By Fisher and Yates, one place after the other. */
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
    struct cuda_fault fault; /* FAULT_CLASSES of a row without a class that is possible */
};

CUDA_C int cuda_shuffle(const struct cuda_shuffle *call, struct CUstream_st *stream);
CUDA_C int cuda_multinomial(const struct cuda_multinomial *call, struct CUstream_st *stream);

#endif
