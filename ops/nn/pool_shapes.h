/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of pooling, for kernels of all devices.
 */
#ifndef TF_OPS_NN_POOL_SHAPES_H
#define TF_OPS_NN_POOL_SHAPES_H

#include "exec/device/kernel.h"
#include "ops/nn/window.h"

struct pool_form {
    const char *op;
    int n_images;  /* number of inputs that are images: the last ones */
    bool to_image; /* the result has the size of the input, else of the output */
    bool of_image; /* the incoming gradient has the size of the input */
    bool place;    /* a byte per window tells where its largest value is */
};

/* A place is a cell's number in its window, row by row, counting cells outside the image. This
 * value means: the window has no cell, or its largest value passes no gradient. */
#define POOL_NO_PLACE 255
#define POOL_PLACES_MAX 254

/* NULL: the node is not pooling. */
const struct pool_form *pool_form_of(const struct node *node);

/* Makes the outputs of a call, and solves the window, as prepare read it, for the image. Returns
 * the image's shape; NULL with call->err set. orig_input_shape is read on the host. */
const struct shape *pool_outputs(struct kernel_call *call, const struct pool_form *form,
                                 struct window *window);

#endif
