/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of variables by gradients. Variables that share a rule and its scalars are updated in one
 * launch.
 */
#ifndef TF_OPS_TRAIN_APPLY_CUDA_H
#define TF_OPS_TRAIN_APPLY_CUDA_H

#include "ops/device/launch_cuda.h"
#include "ops/train/apply.h"

/* At most APPLY_BATCH_MAX parts, with the first one's scalars. */
struct cuda_apply {
    enum cuda_type type;     /* a float; 16 bits are computed in float32 */
    enum cuda_type gradient; /* the same; or 16 bits if that is float32 */
    int n_parts;
    const struct apply_arguments *parts;
    const struct fault *fault; /* if set, nothing is changed; NULL: no step */
};

typedef int cuda_apply_launcher(const struct cuda_apply *call, struct CUstream_st *stream);

/* Returns an op's ("ApplyAdam") launcher; if CUDA has none, one that returns CUDA_INVALID_VALUE. */
CUDA_C cuda_apply_launcher *cuda_apply(const char *op);

#endif
