/* SPDX-License-Identifier: Apache-2.0
 *
 * The sum of many arrays, in their order. Elements of 16 bits are added in float32 and
 * rounded once.
 */
#ifndef TF_OPS_MATH_ADDN_CUDA_H
#define TF_OPS_MATH_ADDN_CUDA_H

#include "ops/device/launch_cuda.h"

#define CUDA_ADDN_INPUTS 128

struct cuda_addn {
    enum cuda_type type; /* a real one */
    int64_t n;           /* elements of each */
    void *out;           /* may be an input */
    int n_in;            /* >= 1 */
    const void *in[CUDA_ADDN_INPUTS];
};

CUDA_C int cuda_addn(const struct cuda_addn *call, struct CUstream_st *stream);

#endif
