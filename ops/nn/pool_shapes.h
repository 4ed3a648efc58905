/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of pooling on all devices check: the shapes of the image, and of what comes with
 * it.
 */
#ifndef TF_OPS_NN_POOL_SHAPES_H
#define TF_OPS_NN_POOL_SHAPES_H

#include "exec/device/kernel.h"
#include "ops/nn/window.h"

struct pool_form {
    const char *op;
    int n_images;  /* inputs that are images: the last ones */
    bool to_image; /* the result is one as large as the input, else as the output */
    bool of_image; /* so is what flows back */
    bool place;    /* of a byte for each window: where its largest value is */
};

/* In place of a cell's number in its window, rows first, cells beside the image counted: the
 * window has no cell, or its largest value lets no gradient through. */
#define POOL_NO_PLACE 255
#define POOL_PLACES_MAX 254

/* NULL: the node is no pooling. */
const struct pool_form *pool_form_of(const struct node *node);

struct pool_shapes {
    struct window window; /* read by prepare, solved for the image */
    struct shape image, output;
};

/* ERR_DATA when the inputs do not fit each other or the window. The value of orig_input_shape is
 * read on the host. */
int pool_solve(struct kernel_call *call, const struct pool_form *form, const struct window *window,
               struct pool_shapes *shapes);

#endif
