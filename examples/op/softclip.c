/* SPDX-License-Identifier: Apache-2.0
 *
 * An op of one's own: SoftClip, limit * tanh(x / limit), which never leaves (-limit, limit).
 *
 *     cc -shared -fPIC -O2 $(pkg-config --cflags tf-tools) softclip.c -o softclip.so -lm
 *     tf-op --ops ./softclip.so SoftClip '[-9.0, 0.1, 9]' limit=3 | tf-show
 */
#include <math.h>

#include <tf_op.h>

/* y has the shape of x, and no limit may be 0. */
static int softclip_shape(tf_infer *infer)
{
    struct tf_shape x = tf_infer_shape(infer, 0);
    double limit;
    tf_node_float(tf_infer_node(infer), "limit", &limit);
    if (!(limit > 0))
        return tf_infer_fail(infer, "limit must be above 0, not %g", limit);
    tf_infer_set(infer, 0, &x);
    return 0;
}

/* dy/dx = 1 - (y / limit)^2: from the output, so that the input need not be kept. */
static int softclip_gradient(tf_grad *grad)
{
    struct tf_edge y = tf_grad_output(grad, 0);
    double limit;
    tf_node_float(tf_grad_node(grad), "limit", &limit);
    struct tf_edge ratio = tf_grad_op2(grad, "Div", y, tf_grad_scalar(grad, y, limit));
    struct tf_edge slope =
        tf_grad_op2(grad, "Sub", tf_grad_scalar(grad, y, 1), tf_grad_op1(grad, "Square", ratio));
    tf_grad_set(grad, 0, tf_grad_op2(grad, "Mul", tf_grad_out(grad, 0), slope));
    return tf_grad_finish(grad);
}

static int softclip_run(tf_kernel *kernel)
{
    struct tf_shape shape = tf_kernel_shape(kernel, 0);
    int64_t n = tf_kernel_count(kernel, 0);
    const void *x = tf_kernel_data(kernel, 0);
    void *y = tf_kernel_output(kernel, 0, &shape);
    double limit;
    if (!y)
        return tf_kernel_failed(kernel);
    tf_node_float(tf_kernel_node(kernel), "limit", &limit);
    if (tf_kernel_type(kernel, 0) == TF_FLOAT32)
        for (int64_t i = 0; i < n; i++)
            ((float *)y)[i] = (float)limit * tanhf(((const float *)x)[i] / (float)limit);
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)y)[i] = limit * tanh(((const double *)x)[i] / limit);
    return 0;
}

static const struct tf_op ops[] = {{.name = "SoftClip",
                                    .inputs = "x: T",
                                    .outputs = "y: T",
                                    .attrs = "limit: float = 1, T: float32|float64",
                                    .doc = "limit * tanh(x / limit).",
                                    .shape = softclip_shape,
                                    .gradient = softclip_gradient}};
static const struct tf_op_kernel kernels[] = {{.op = "SoftClip", .run = softclip_run}};
TF_OPS(ops, kernels)
