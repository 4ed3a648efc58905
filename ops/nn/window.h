/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows that slide over images: sizes, strides, dilations and padding of convolution and pooling.
 *
 * A window of `size` cells, `dilation` apart, spans (size - 1) * dilation + 1. VALID: no padding,
 * out = (in - span + stride) / stride, truncated toward zero: a window slightly larger than the
 * image has no output, and a negative out is an error. SAME: out = ceil(in / stride), with the
 * padding this needs; an odd cell goes after the image. EXPLICIT: as VALID, with the cells of the
 * attribute explicit_paddings around the image.
 */
#ifndef TF_OPS_NN_WINDOW_H
#define TF_OPS_NN_WINDOW_H

#include "graph/graph.h"
#include "graph/op.h"

#define WINDOW_PADDING_ATTR                                                                        \
    "padding: {\"SAME\",\"VALID\",\"EXPLICIT\"}, explicit_paddings: list(int) = []"

struct window_axis { /* an unknown size is -1 */
    int64_t in, size, stride, dilation, before, after, out;
};

struct window {
    bool nchw, same;
    int height, width, channels; /* axes of the image */
    struct window_axis y, x;
};

/* Reads strides, dilations and ksize (if any), padding and data_format of a node. ERR_DATA: they
 * are invalid. */
int window_init(struct window *window, const struct node *node, struct error *err);

/* Returns the number of cells from a window's first to its last, inclusive. */
static inline int64_t window_span(const struct window_axis *axis)
{
    return (axis->size - 1) * axis->dilation + 1;
}

/* Solves for an image, given y.size and x.size; unknown sizes stay unknown. ERR_DATA: the window
 * does not fit. */
int window_solve(struct window *window, const struct shape *image, struct error *err);

/* Returns the output image: like `image`, with solved height and width, and that many channels. */
struct shape window_output(const struct window *window, const struct shape *image,
                           int64_t channels);

/* Returns one of a filter's last four dimensions. */
static inline int64_t window_filter_dim(const struct shape *filter, int i)
{
    return filter->rank < 4 ? SHAPE_UNKNOWN : filter->dims[filter->rank - 4 + i];
}

/* op_def.window of convolution and, without filters, of pooling. */
bool window_declared(const struct node *node, const struct shape *image,
                     const struct shape *filters, struct op_window *declared);

#endif
