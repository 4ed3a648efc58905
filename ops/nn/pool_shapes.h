/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of pooling, for kernels of all devices.
 */
#ifndef TF_OPS_NN_POOL_SHAPES_H
#define TF_OPS_NN_POOL_SHAPES_H

#include "exec/device/kernel.h"
#include "ops/nn/window.h"

enum pool_kind {
    POOL_MAX,
    POOL_MAX_GRAD,
    POOL_MAX_GRAD_GRAD, /* the incoming gradient has the size of the input */
    POOL_AVG,
    POOL_AVG_GRAD,
    POOL_WITH_PLACE, /* a byte per window tells where its largest value is */
    POOL_PLACE_GRAD,
    N_POOL_KINDS
};

struct pool_form {
    const char *op;
    int n_images;  /* number of inputs that are images: the last ones */
    bool to_image; /* the result has the size of the input, else of the output */
};

/* A node's pooling. */
struct pooling {
    enum pool_kind kind;
    const struct pool_form *form;
    struct window window;
    bool masked; /* POOL_WITH_PLACE: no place if the largest value is not above 0 */
};

/* A place is a cell's number in its window, row by row, counting cells outside the image. This
 * value means: the window has no cell, or its largest value passes no gradient. */
#define POOL_NO_PLACE 255
#define POOL_PLACES_MAX 254

/* Reads a node's attributes. ERR_DATA as of window_init. */
int pool_init(struct pooling *pool, struct kernel_setup *setup);

/* Makes the outputs of a call, and solves the window for its image. Returns the image's shape; NULL
 * with call->err set. orig_input_shape is read on the host. */
const struct shape *pool_outputs(struct kernel_call *call, const struct pooling *pool,
                                 struct window *window);

#endif
