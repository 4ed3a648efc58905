/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling: the largest value or the mean of each window.
 */
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/op_cost.h"
#include "ops/nn/format.h"
#include "ops/nn/pool_shapes.h"
#include "ops/nn/window.h"
#include "pass/gradient/grad.h"

/* Returns whether each window has a cell of the image, which a mean requires. */
static bool sees_image(const struct window_axis *a)
{
    return a->out < 1 || a->in < 0 ||
           (a->before < a->size && (a->out - 1) * a->stride - a->before < a->in);
}

static int pooled(struct infer *infer, const struct shape *image, bool mean, struct shape *out)
{
    struct window w;
    if (window_init(&w, infer->node, infer->err) || window_solve(&w, image, infer->err))
        return infer->err->code;
    if (mean && (!sees_image(&w.y) || !sees_image(&w.x)))
        return infer_fail(infer, "a window lies in the padding, where nothing has a mean");
    *out = window_output(&w, image, image->rank == 4 ? image->dims[w.channels] : SHAPE_UNKNOWN);
    return 0;
}

static int pool_shape(struct infer *infer)
{
    bool mean = node_is(infer->node, "AvgPool");
    return infer_rank(infer, 0, 4) ? infer->err->code
                                   : pooled(infer, infer_shape(infer, 0), mean, &infer->out[0]);
}

static int check(struct infer *infer, const struct shape *expected, int input, const char *name)
{
    if (shape_compatible(expected, infer_shape(infer, input)))
        return 0;
    return infer_fail(infer, "%s must be %s, not %s", name, shape_text(expected),
                      shape_text(infer_shape(infer, input)));
}

/* The gradient's gradient takes what is like the image, and gives what is like the output. */
static int max_pool_grad_shape(struct infer *infer)
{
    struct shape out;
    const struct shape *image = infer_shape(infer, 0);
    bool again = node_is(infer->node, "MaxPoolGradGrad");
    if (infer_rank(infer, 0, 4) || infer_rank(infer, 1, 4) || infer_rank(infer, 2, 4) ||
        pooled(infer, image, false, &out) || check(infer, &out, 1, "orig_output") ||
        check(infer, again ? image : &out, 2, "grad"))
        return infer->err->code;
    infer->out[0] = again ? out : *image;
    return 0;
}

static int avg_pool_grad_shape(struct infer *infer)
{
    struct shape image, out;
    if (infer_sizes(infer, 0, 4, &image) || infer_rank(infer, 1, 4) ||
        pooled(infer, &image, true, &out) || check(infer, &out, 1, "grad"))
        return infer->err->code;
    infer->out[0] = image;
    return 0;
}

/* A byte must number a window's cells, and leave a value for "none". */
static int max_pool_with_place_shape(struct infer *infer)
{
    const struct attr_value *ksize = node_attr(infer->node, "ksize");
    if (pool_shape(infer))
        return infer->err->code;
    infer->out[1] = infer->out[0];
    for (int64_t cells = 1, i = 0; i < ksize->n; i++)
        if ((cells *= ksize->ints[i]) > POOL_PLACES_MAX)
            return infer_fail(infer, "a window has more than %d cells", POOL_PLACES_MAX);
    return 0;
}

static int max_pool_place_grad_shape(struct infer *infer)
{
    const struct attr_value *sizes = node_attr(infer->node, "image");
    if (sizes->n != 4)
        return infer_fail(infer, "image must have 4 elements, not %d", sizes->n);
    struct shape out, image = shape_of(4, sizes->ints);
    if (shape_count(&image) < 0)
        return infer_fail(infer, "image is %s", shape_text(&image));
    if (infer_rank(infer, 0, 4) || infer_rank(infer, 1, 4) || pooled(infer, &image, false, &out) ||
        check(infer, &out, 0, "place") || check(infer, &out, 1, "grad"))
        return infer->err->code;
    infer->out[0] = image;
    return 0;
}

static void max_pool_gradient(struct grad *g)
{
    struct edge inputs[] = {grad_input(g, 0), grad_output(g, 0), g->out[0]};
    g->in[0] = grad_op(g, "MaxPoolGrad", inputs, 3);
}

/* The largest cell stays the largest under a small change: the gradient is linear in its input. */
static void max_pool_grad_gradient(struct grad *g)
{
    bool again = node_is(g->node, "MaxPoolGradGrad");
    struct edge inputs[] = {grad_input(g, 0), grad_input(g, 1), g->out[0]};
    g->in[2] = grad_op(g, again ? "MaxPoolGrad" : "MaxPoolGradGrad", inputs, 3);
}

static void avg_pool_gradient(struct grad *g)
{
    struct edge inputs[] = {build_unary(&g->b, "Shape", grad_input(g, 0)), g->out[0]};
    g->in[0] = grad_op(g, "AvgPoolGrad", inputs, 2);
}

/* AvgPoolGrad is linear, and AvgPool its transpose. */
static void avg_pool_grad_gradient(struct grad *g)
{
    g->in[1] = grad_op(g, "AvgPool", g->out, 1);
}

#define POOL_ATTRS "ksize: list(int), strides: list(int), " WINDOW_PADDING_ATTR ", " FORMAT_ATTR

#define POOL(op, ...)                                                                              \
    const struct op_def op_##op = {                                                                \
        .name = #op, .outputs = "output: T", .window = window_declared, __VA_ARGS__}

POOL(MaxPool, .inputs = "input: T",
     .attrs = POOL_ATTRS ", T: floating|int8|int16|int32|int64|uint8|uint16 = float32",
     .doc = "The largest value of each window.",
     .detail = "Padding takes no part. A NaN in a window is its result.", .half = HALF_CLEAR,
     .shape = pool_shape, .rule = "output[b,y,x,c]@ = input[b,y^,x^,c]@",
     .gradient = max_pool_gradient);

static const struct op_places max_pool_places = {.pool = "MaxPool",
                                                 .with_place = "MaxPoolWithPlace",
                                                 .gradient = "MaxPoolPlaceGrad",
                                                 .mask = "ReluGrad"};

POOL(MaxPoolGrad, .inputs = "orig_input: T, orig_output: T, grad: T",
     .attrs = POOL_ATTRS ", T: real = float32",
     .doc = "Gradient of MaxPool: each window's goes to its largest value.",
     .detail = "Among equals the first one in row-major order gets it all.", .half = HALF_CLEAR,
     .places = &max_pool_places, .shape = max_pool_grad_shape,
     .rule = "output[b,y^,x^,c]@ += orig_input[b,y^,x^,c]@ orig_output[b,y,x,c]@ grad[b,y,x,c]@",
     .gradient = max_pool_grad_gradient);

POOL(MaxPoolGradGrad, .inputs = "orig_input: T, orig_output: T, grad: T",
     .attrs = POOL_ATTRS ", T: real = float32",
     .doc = "What flows back through MaxPoolGrad: of each window, grad where its largest value is.",
     .detail =
         "grad is like orig_input, the output like orig_output. Among equals the first one in\n"
         "row-major order counts.",
     .half = HALF_CLEAR, .shape = max_pool_grad_shape,
     .rule = "output[b,y,x,c]@ = orig_input[b,y^,x^,c]@ orig_output[b,y,x,c]@ grad[b,y^,x^,c]@",
     .gradient = max_pool_grad_gradient);

POOL(AvgPool, .inputs = "value: T", .attrs = POOL_ATTRS ", T: floating",
     .doc = "The mean of each window.", .detail = "Cells outside the image are not counted.",
     .half = HALF_INFERRED, .shape = pool_shape, .rule = "output[b,y,x,c]@ = value[b,y^,x^,c]@",
     .gradient = avg_pool_gradient);

POOL(AvgPoolGrad, .inputs = "orig_input_shape: int32, grad: T", .attrs = POOL_ATTRS ", T: floating",
     .doc = "Gradient of AvgPool: each window's is spread evenly over its cells inside the image.",
     .half = HALF_INFERRED, .shape = avg_pool_grad_shape,
     .rule = "output[b,y^,x^,c]@ += orig_input_shape# grad[b,y,x,c]@",
     .gradient = avg_pool_grad_gradient);

#define MADE "it is made where gradients are there already"

const struct op_def op_MaxPoolWithPlace = {
    .name = "MaxPoolWithPlace",
    .inputs = "input: T",
    .outputs = "output: T, place: uint8",
    .attrs = POOL_ATTRS ", masked: bool = false, T: float32|float64",
    .doc = "MaxPool, and where in each window the largest value is; made of it for a device.",
    .detail =
        "place is the cell's number in its window, rows first, cells in the padding counted; of\n"
        "equals the first, of NaNs, too. It is 255 where a window has no cell, and if `masked`\n"
        "where its largest value is not above 0. A window has at most 254 cells.",
    .half = HALF_KEPT,
    .cost = cost_elements,
    .shape = max_pool_with_place_shape,
    .flags = OP_NO_GRADIENT,
    .no_gradient = MADE,
};

const struct op_def op_MaxPoolPlaceGrad = {
    .name = "MaxPoolPlaceGrad",
    .inputs = "place: uint8, grad: T",
    .outputs = "output: T",
    .attrs = POOL_ATTRS ", image: list(int), T: float32|float64",
    .doc = "MaxPoolGrad from MaxPoolWithPlace's places alone; made of it for a device.",
    .detail =
        "`image` is the shape of what was pooled. Each cell adds what the windows over it give\n"
        "it, in their row-major order.",
    .half = HALF_KEPT,
    .cost = cost_elements,
    .shape = max_pool_place_grad_shape,
    .flags = OP_NO_GRADIENT,
    .no_gradient = MADE,
};
