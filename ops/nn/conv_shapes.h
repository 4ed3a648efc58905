/* SPDX-License-Identifier: Apache-2.0
 *
 * The three kernels of Conv2D on all devices, and those of LocallyConnected2D: what is computed,
 * and whether shapes fit. With a filter for each position, filters have two more, leading
 * dimensions.
 */
#ifndef TF_OPS_NN_CONV_SHAPES_H
#define TF_OPS_NN_CONV_SHAPES_H

#include <string.h>

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

/* Tells the two families of convolutions apart. */
static inline bool conv_is_local(const struct node *node)
{
    return !strncmp(node->op->def->name, "Local", 5);
}

static inline enum conv_direction conv_direction_of(const struct node *node)
{
    const char *op = node->op->def->name;
    return strstr(op, "Filter") ? CONV_FILTER : strstr(op, "Input") ? CONV_IMAGE : CONV_FORWARD;
}

/* Reads a node's attributes, without shapes. ERR_DATA as of window_init. */
int conv_init(struct conv *conv, const struct node *node, struct error *err);

/* Solves for shapes as far as they are known; what is not is -1. ERR_DATA: they do not fit. */
int conv_solve(struct conv *conv, const struct shape *image, const struct shape *filter,
               struct error *err);

/* Solves for the shapes known in prepare. ERR_DATA: they do not fit. */
int conv_plan(struct kernel_setup *setup, struct conv *conv);

/* Makes the output of a call, whose sizes are on the host, and describes its convolution; `form`:
 * from conv_init. NULL with call->err set. */
struct tensor *conv_output(struct kernel_call *call, const struct conv *form, struct conv *conv);

/* Returns whether an operand has no elements: then the result is zeros. */
bool conv_is_empty(const struct conv *conv);

#endif
