/* SPDX-License-Identifier: Apache-2.0
 *
 * Pause: its result is its input, some seconds later, and its gradient's as many as it says. It
 * stands for a layer that a device computes, however busy the processors are.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <tf_op.h>

static int pause_shape(tf_infer *infer)
{
    struct tf_shape shape = tf_infer_shape(infer, 0);
    tf_infer_set(infer, 0, &shape);
    return 0;
}

static int pause_gradient(tf_grad *grad)
{
    double seconds = 0;
    char text[40];
    struct tf_op_attr attr = {"forward", text};
    struct tf_edge error = tf_grad_out(grad, 0);
    tf_node_float(tf_grad_node(grad), "backward", &seconds);
    snprintf(text, sizeof text, "%.9f", seconds);
    tf_grad_set(grad, 0, tf_grad_op(grad, "Pause", &error, 1, &attr, 1));
    return tf_grad_finish(grad);
}

static int pause_run(tf_kernel *kernel)
{
    struct tf_shape shape = tf_kernel_shape(kernel, 0);
    float *out = tf_kernel_output(kernel, 0, &shape);
    double seconds = 0;
    if (!out)
        return tf_kernel_failed(kernel);
    tf_node_float(tf_kernel_node(kernel), "forward", &seconds);
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
    memcpy(out, tf_kernel_data(kernel, 0), (size_t)tf_kernel_count(kernel, 0) * sizeof *out);
    return 0;
}

static const struct tf_op ops[] = {{.name = "Pause",
                                    .inputs = "x: float32",
                                    .outputs = "y: float32",
                                    .attrs = "forward: float = 0, backward: float = 0",
                                    .doc = "x, some seconds later.",
                                    .shape = pause_shape,
                                    .gradient = pause_gradient}};
static const struct tf_op_kernel kernels[] = {{.op = "Pause", .run = pause_run}};
TF_OPS(ops, kernels)
