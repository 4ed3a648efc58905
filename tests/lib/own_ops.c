/* SPDX-License-Identifier: Apache-2.0
 *
 * An object with custom ops, compiled only against the public header: shows what the interface's
 * functions return, and has kernels that misbehave.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tf_op.h>

/* ---- OwnSum: N tensors; its gradient is that of each ---- */

static int sum_shape(tf_infer *infer)
{
    struct tf_shape shape = tf_infer_shape(infer, 0);
    for (int i = 1; i < tf_infer_inputs(infer); i++) {
        int code = tf_infer_merge(infer, i - 1, i, &shape);
        if (code)
            return code;
    }
    tf_infer_set(infer, 0, &shape);
    return 0;
}

static int sum_gradient(tf_grad *grad)
{
    int64_t n = 0;
    tf_node_int(tf_grad_node(grad), "N", &n);
    for (int i = 0; i < n; i++)
        tf_grad_set(grad, i, tf_grad_op1(grad, "Identity", tf_grad_out_or_zeros(grad, 0)));
    return tf_grad_finish(grad);
}

static int sum_run(tf_kernel *kernel)
{
    struct tf_shape shape = tf_kernel_shape(kernel, 0);
    int64_t n = tf_kernel_count(kernel, 0);
    double *sum = tf_kernel_temporary(kernel, (size_t)n * sizeof *sum + 1);
    float *out = tf_kernel_output(kernel, 0, &shape);
    if (!sum || !out)
        return tf_kernel_failed(kernel);
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int i = 0; i < tf_kernel_inputs(kernel); i++)
        for (int64_t k = 0; k < n; k++)
            sum[k] += ((const float *)tf_kernel_data(kernel, i))[k];
    for (int64_t k = 0; k < n; k++)
        out[k] = (float)sum[k];
    return 0;
}

/* ---- OwnSquare: its gradient is another op of the object's, with an attribute ---- */

static int same_shape(tf_infer *infer)
{
    struct tf_shape shape = tf_infer_shape(infer, 0);
    tf_infer_set(infer, 0, &shape);
    return 0;
}

static int square_gradient(tf_grad *grad)
{
    const struct tf_op_attr factor = {"factor", "2"};
    const struct tf_edge inputs[] = {tf_grad_input(grad, 0), tf_grad_out(grad, 0)};
    tf_grad_set(grad, 0, tf_grad_op(grad, "OwnScaledProduct", inputs, 2, &factor, 1));
    return tf_grad_finish(grad);
}

static int square_run(tf_kernel *kernel)
{
    struct tf_shape shape = tf_kernel_shape(kernel, 0);
    const float *x = tf_kernel_data(kernel, 0);
    float *y = tf_kernel_output(kernel, 0, &shape);
    for (int64_t i = 0; y && i < tf_kernel_count(kernel, 0); i++)
        y[i] = x[i] * x[i];
    return y ? 0 : tf_kernel_failed(kernel);
}

static int product_shape(tf_infer *infer)
{
    struct tf_shape shape;
    int code = tf_infer_broadcast(infer, 0, 1, &shape);
    if (!code)
        tf_infer_set(infer, 0, &shape);
    return code;
}

static int product_run(tf_kernel *kernel)
{
    struct tf_shape shape = tf_kernel_shape(kernel, 0);
    double factor = 0;
    const float *x = tf_kernel_data(kernel, 0), *y = tf_kernel_data(kernel, 1);
    float *z = tf_kernel_output(kernel, 0, &shape);
    tf_node_float(tf_kernel_node(kernel), "factor", &factor);
    for (int64_t i = 0; z && i < tf_kernel_count(kernel, 0); i++)
        z[i] = (float)factor * x[i] * y[i];
    return z ? 0 : tf_kernel_failed(kernel);
}

/* ---- OwnDescribe: all kinds of attributes, and strings ---- */

static int describe_run(tf_kernel *kernel)
{
    const tf_node *node = tf_kernel_node(kernel);
    const char *texts[1];
    char text[400];
    struct tf_shape scalar = {.rank = 0}, shape = {.rank = 0};
    int64_t i = 0;
    double f = 0;
    int b = 0, n = 0;
    size_t length;
    int all = tf_node_int(node, "i", &i) && tf_node_float(node, "f", &f) &&
              tf_node_bool(node, "b", &b) && tf_node_shape(node, "p", &shape);
    const int64_t *ints = tf_node_ints(node, "l", &n);
    const char *word = tf_kernel_string(kernel, 0, 0, &length);
    if (!all || n != 2 || !word || tf_kernel_string(kernel, 0, 9, &(size_t){0}) ||
        tf_kernel_data(kernel, 0) || tf_node_int(node, "f", &i))
        return tf_kernel_fail(kernel, "%d attributes are not as they should be", n);
    snprintf(text, sizeof text, "%.*s %" PRId64 " %g %d %s %d [%" PRId64 "] %" PRId64 ",%" PRId64,
             (int)length, word, i, f, b, tf_node_string(node, "s"), (int)tf_node_type(node, "t"),
             shape.dims[1], ints[0], ints[1]);
    texts[0] = text;
    return tf_kernel_output_strings(kernel, 0, &scalar, texts, NULL);
}

/* ---- OwnFill: a shape that is a value, if it is known ---- */

static int read_shape(const void *value, const struct tf_shape *of, struct tf_shape *shape)
{
    if (of->rank != 1 || of->dims[0] > TF_RANK_MAX)
        return 0;
    shape->rank = (int32_t)of->dims[0];
    for (int i = 0; i < shape->rank; i++)
        shape->dims[i] = ((const int32_t *)value)[i];
    return 1;
}

static int fill_shape(tf_infer *infer)
{
    struct tf_shape of, shape;
    const void *value = tf_infer_value(infer, 0, &of);
    if (!value)
        return 0;
    if (!read_shape(value, &of, &shape))
        return tf_infer_fail(infer, "dims of type %d must be a vector", tf_infer_type(infer, 0));
    tf_infer_set(infer, 0, &shape);
    return 0;
}

static int fill_run(tf_kernel *kernel)
{
    struct tf_shape of = tf_kernel_shape(kernel, 0), shape;
    if (!read_shape(tf_kernel_data(kernel, 0), &of, &shape))
        return tf_kernel_fail(kernel, "dims must be a vector");
    float *y = tf_kernel_output(kernel, 0, &shape);
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++)
        n *= shape.dims[i];
    for (int64_t i = 0; y && i < n; i++)
        y[i] = (float)tf_kernel_step(kernel) + (tf_kernel_threads(kernel) < 1);
    return y ? 0 : tf_kernel_failed(kernel);
}

/* ---- OwnWrong: what = 0, 1, ... is wrong in a way of its own ---- */

static int wrong_shape(tf_infer *infer)
{
    struct tf_shape shape = {.rank = 9};
    int64_t what = 0;
    tf_node_int(tf_infer_node(infer), "what", &what);
    if (what == 10)
        tf_infer_set(infer, 0, &shape);
    if (what == 11)
        tf_infer_set(infer, 1, &(struct tf_shape){.rank = 0});
    if (what == 12)
        return tf_infer_merge(infer, 0, 3, &shape);
    if (what == 13)
        return 1;
    return what < 10 ? same_shape(infer) : 0;
}

static int wrong_gradient(tf_grad *grad)
{
    const struct tf_op_attr attr = {"factor", "two"}, unknown = {"fctor", "2"};
    struct tf_edge x = tf_grad_input(grad, 0), pair[] = {x, x};
    int64_t what = 0;
    tf_node_int(tf_grad_node(grad), "what", &what);
    if (what == 0)
        tf_grad_set(grad, 0, tf_grad_input(grad, 7));
    if (what == 1)
        tf_grad_set(grad, 0, tf_grad_op1(grad, "Ngg", x));
    if (what == 2)
        tf_grad_op(grad, "OwnScaledProduct", pair, 2, &attr, 1);
    if (what == 3)
        tf_grad_op(grad, "OwnScaledProduct", pair, 2, &unknown, 1);
    if (what == 4)
        return tf_grad_fail(grad, "no gradient where what is %d", (int)what);
    if (what == 5)
        return 1;
    tf_grad_set(grad, 9, x);
    return tf_grad_finish(grad);
}

static int wrong_run(tf_kernel *kernel)
{
    struct tf_shape shape = tf_kernel_shape(kernel, 0), larger = shape;
    const char *texts[] = {"a"};
    int64_t what = 0;
    larger.dims[0]++;
    tf_node_int(tf_kernel_node(kernel), "what", &what);
    switch (what) {
    case 0: /* no output */
        return 0;
    case 1:
        tf_kernel_output(kernel, 0, &larger);
        return 0;
    case 2:
        tf_kernel_output(kernel, 4, &shape);
        return 0;
    case 3:
        return tf_kernel_output_strings(kernel, 0, &shape, texts, NULL);
    case 4:
        shape.dims[0] = -1;
        tf_kernel_output(kernel, 0, &shape);
        return tf_kernel_failed(kernel);
    case 5:
        return tf_kernel_fail(kernel, "%d is too much", (int)what);
    case 6: /* says nothing */
        return 1;
    case 7:
        tf_kernel_output(kernel, 0, &shape);
        tf_kernel_output(kernel, 0, &shape);
        return 0;
    default:
        tf_kernel_output(kernel, 0, &shape);
        return 0;
    }
}

/* ---- OwnWhich: which of its kernels runs ---- */

static int which(tf_kernel *kernel, int32_t number)
{
    struct tf_shape shape = tf_kernel_shape(kernel, 0);
    int32_t *y = tf_kernel_output(kernel, 0, &shape);
    for (int64_t i = 0; y && i < tf_kernel_count(kernel, 0); i++)
        y[i] = number;
    return y ? 0 : tf_kernel_failed(kernel);
}

static int which_floating(tf_kernel *kernel)
{
    return which(kernel, 1);
}

static int which_int64(tf_kernel *kernel)
{
    return which(kernel, 2);
}

static const struct tf_op ops[] = {
    {.name = "OwnSum",
     .inputs = "x: N*float32",
     .outputs = "sum: float32",
     .attrs = "N: int >= 1",
     .doc = "Sum of tensors.",
     .shape = sum_shape,
     .gradient = sum_gradient},
    {.name = "OwnSquare",
     .inputs = "x: float32",
     .outputs = "y: float32",
     .doc = "x * x.",
     .shape = same_shape,
     .gradient = square_gradient},
    {.name = "OwnScaledProduct",
     .inputs = "x: float32, y: float32",
     .outputs = "z: float32",
     .attrs = "factor: float",
     .doc = "factor * x * y.",
     .flags = TF_OP_COMMUTATIVE,
     .shape = product_shape},
    {.name = "OwnDescribe",
     .inputs = "word: string",
     .outputs = "text: string",
     .attrs = "i: int, f: float, b: bool, s: string, t: type, p: shape, l: list(int)",
     .doc = "Its attributes.",
     .flags = TF_OP_NO_GRADIENT},
    {.name = "OwnFill",
     .inputs = "dims: int32",
     .outputs = "y: float32",
     .doc = "The step's number.",
     .flags = TF_OP_STATEFUL,
     .shape = fill_shape},
    {.name = "OwnWrong",
     .inputs = "x: float32",
     .outputs = "y: float32",
     .attrs = "what: int",
     .doc = "Nothing.",
     .shape = wrong_shape,
     .gradient = wrong_gradient},
    {.name = "OwnWhich",
     .inputs = "x: T",
     .outputs = "y: int32",
     .attrs = "T: numeric",
     .doc = "A number of the kernel.",
     .shape = same_shape},
    {.name = "OwnUncomputed", .inputs = "x: float32", .outputs = "y: float32", .doc = "Nothing."},
};
static const struct tf_op_kernel kernels[] = {
    {.op = "OwnSum", .run = sum_run},
    {.op = "OwnSquare", .run = square_run},
    {.op = "OwnScaledProduct", .run = product_run},
    {.op = "OwnDescribe", .run = describe_run},
    {.op = "OwnFill", .run = fill_run},
    {.op = "OwnWrong", .run = wrong_run},
    {.op = "OwnWhich", .types = "T=float32|float64", .run = which_floating},
    {.op = "OwnWhich", .types = "T=int64", .run = which_int64},
};
TF_OPS(ops, kernels)
