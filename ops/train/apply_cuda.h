/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of variables by gradients. Variables that share a rule and its scalars are updated in one
 * launch, or in as few as the argument size allows.
 */
#ifndef TF_OPS_TRAIN_APPLY_CUDA_H
#define TF_OPS_TRAIN_APPLY_CUDA_H

#include <stdbool.h>

#include "ops/device/launch_cuda.h"

#define CUDA_APPLY_SLOTS 2
#define CUDA_APPLY_SCALARS 6

struct cuda_apply_part {
    void *w, *slots[CUDA_APPLY_SLOTS]; /* the rule's slots; NULL: it lacks the slot */
    const void *g;
    int64_t n;
};

struct cuda_apply {
    enum cuda_type type;     /* a float; 16 bits are computed in float32 */
    enum cuda_type gradient; /* the same; or 16 bits if that is float32 */
    bool nesterov;
    const void *scalars[CUDA_APPLY_SCALARS]; /* of `type`, in declared order; NULL: no more */
    int n_parts;
    const struct cuda_apply_part *parts;
    const struct fault *fault; /* if set, nothing is changed; NULL: no step */
};

typedef int cuda_apply_launcher(const struct cuda_apply *call, struct CUstream_st *stream);

/* Returns an op's ("ApplyAdam") launcher; if CUDA has none, one that returns CUDA_INVALID_VALUE. */
CUDA_C cuda_apply_launcher *cuda_apply(const char *op);

#endif
