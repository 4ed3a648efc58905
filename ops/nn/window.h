/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows that slide over images: sizes, strides and padding of convolution and pooling.
 *
 * VALID: out = floor((in - size + stride) / stride), no padding. SAME: out = ceil(in / stride), and
 * the padding that this takes, the odd cell behind. EXPLICIT: as the attribute explicit_paddings
 * says.
 */
#ifndef TF_OPS_NN_WINDOW_H
#define TF_OPS_NN_WINDOW_H

#include "graph/graph.h"

#define WINDOW_PADDING_ATTR                                                                        \
    "padding: {\"SAME\",\"VALID\",\"EXPLICIT\"}, explicit_paddings: list(int) = []"

struct window_axis { /* an unknown size is -1 */
    int64_t in, size, stride, before, after, out;
};

struct window {
    bool nchw;
    int height, width, channels; /* axes of the image */
    struct window_axis y, x;
};

/* Reads strides, padding and data_format of a node. ERR_DATA when they make no sense. */
int window_init(struct window *window, const struct node *node, struct error *err);

/* Sets window sizes from the attribute ksize (pooling). */
int window_from_ksize(struct window *window, const struct node *node, struct error *err);

/* Solves for an image, given y.size and x.size; what is unknown stays so. ERR_DATA when the window
 * does not fit. */
int window_solve(struct window *window, const struct node *node, const struct shape *image,
                 struct error *err);

/* The output image: like `image`, with the solved height and width and that many channels. */
struct shape window_output(const struct window *window, const struct shape *image,
                           int64_t channels);

#endif
