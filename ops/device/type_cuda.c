/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/kernel_cuda.h"

static const enum dtype types[] = {
#define X(name, type, wide) name,
    CUDA_TYPES(X)
#undef X
};

enum cuda_type cuda_type_of(enum dtype type)
{
    int i = 0;
    while (i < N_CUDA_TYPES && types[i] != type)
        i++;
    return (enum cuda_type)i;
}

enum dtype cuda_dtype(enum cuda_type type)
{
    return types[type];
}
