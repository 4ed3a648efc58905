/* SPDX-License-Identifier: Apache-2.0
 *
 * The three kernels of Conv2D on all devices, and those of LocallyConnected2D: what is computed,
 * and whether shapes fit. With a filter for each position, filters have two more, leading
 * dimensions.
 */
#ifndef TF_OPS_NN_CONV_SHAPES_H
#define TF_OPS_NN_CONV_SHAPES_H

#include "exec/device/kernel.h"
#include "ops/nn/window.h"

enum conv_direction {
    CONV_FORWARD, /* inputs: image, filter */
    CONV_IMAGE,   /* gradient of the image; inputs: sizes, filter, output gradient */
    CONV_FILTER,  /* inputs: image, sizes, output gradient */
};

struct conv {
    enum conv_direction direction;
    bool local; /* a filter for each position */
    enum dtype type;
    struct window window;
    int64_t batch, in_channels, out_channels, groups;
    struct shape image, filter, output;
};

/* Sets the number of groups of a convolution with known channels: each group of input channels has
 * its own out channels, and the filter is as deep as a group. ERR_DATA: they do not divide. */
int conv_find_groups(int64_t in_channels, const struct shape *filter, int64_t *groups,
                     struct error *err);

/* Reads a node's attributes, without shapes. ERR_DATA as of window_init. */
int conv_init(struct conv *conv, const struct node *node, struct error *err);

/* Solves for the shapes known in prepare. ERR_DATA: they do not fit. */
int conv_plan(struct kernel_setup *setup, struct conv *conv);

/* Describes the convolution of a call, whose sizes are read on the host; `form`: from conv_init. */
int conv_describe(struct kernel_call *call, const struct conv *form, struct conv *conv);

/* Returns whether an operand has no elements: then the result is zeros. */
bool conv_is_empty(const struct conv *conv);

/* Returns the shape of the result. */
const struct shape *conv_result(const struct conv *conv);

#endif
