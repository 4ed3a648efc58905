/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the declarations of batch normalization and of its gradient: images [.., channels ..],
 * and vectors of one element per channel.
 */
#ifndef TF_OPS_NN_BATCH_NORM_H
#define TF_OPS_NN_BATCH_NORM_H

#include "ops/math/gradients.h"
#include "ops/nn/format.h"

#define NORM_ATTRS "epsilon: float = 0.0001, " FORMAT_ATTR ", is_training: bool = true, T: floating"

/* Checks that input `image` has rank 4, and that inputs `first` to `end` - 1 have one element per
 * channel; `channels` is their shape. */
int norm_per_channel(struct infer *infer, int image, int first, int end, struct shape *channels);

/* ---- for gradient functions ---- */

/* Reshapes a vector so that it broadcasts with images. */
struct edge norm_wide(struct grad *g, struct edge vector);
/* The same, repeated to the shape of the image. */
struct edge norm_spread(struct grad *g, struct edge vector, struct edge image);
/* Reduces an image per channel, by "Sum" or "Mean". */
struct edge norm_reduce(struct grad *g, const char *op, struct edge image);
/* The number of positions per channel, a scalar of the type of counts (grad_count_type). */
struct edge norm_count(struct grad *g, struct edge image, struct edge vector);

#endif
