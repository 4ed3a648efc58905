/* SPDX-License-Identifier: Apache-2.0
 *
 * The handles that functions of custom ops get, behind api/tf_op_calls.h.
 */
#ifndef TF_OPS_USER_INTERNAL_H
#define TF_OPS_USER_INTERNAL_H

#include "api/tf_op.h"
#include "base/container_of.h"
#include "exec/device/kernel.h"
#include "graph/infer.h"
#include "pass/gradient/grad.h"

/* An op of an object; its declaration is in the registry. */
struct user_op {
    struct op_def def;
    const struct tf_op *row;
};

/* Returns the row of an op from an object. */
static inline const struct tf_op *user_row(const struct node *node)
{
    const struct op_def *def = node->op->def;
    return CONTAINER_OF(def, struct user_op, def)->row;
}

struct tf_node {
    const struct tf_op_functions *functions;
    const struct node *node;
};

struct tf_infer {
    const struct tf_op_functions *functions;
    struct tf_node node;
    struct infer *infer;
};

struct tf_grad {
    const struct tf_op_functions *functions;
    struct tf_node node;
    struct grad *grad;
};

struct tf_kernel {
    const struct tf_op_functions *functions;
    struct tf_node node;
    struct kernel_call *call;
    bool *made; /* per output */
};

extern const struct tf_op_functions user_functions;

/* A kernel of an object, as the code of its row (struct kernel_row). */
struct user_code {
    struct kernel_code code; /* user_kernel_code */
    const struct tf_op_kernel *kernel;
};

extern const struct kernel_code user_kernel_code;

/* Members of struct op_def. */
int user_shape(struct infer *infer);
void user_gradient(struct grad *grad);

struct tf_shape user_shape_out(const struct shape *shape);
/* Converts a shape; false: it is invalid. */
bool user_shape_in(const struct tf_shape *shape, bool is_value, struct shape *result);

/* The functions of struct tf_op_functions, which has their types: user_node_name and so on. */
#define USER_FUNCTIONS(X)                                                                          \
    X(node_name)                                                                                   \
    X(node_int)                                                                                    \
    X(node_float)                                                                                  \
    X(node_bool)                                                                                   \
    X(node_string)                                                                                 \
    X(node_type)                                                                                   \
    X(node_shape)                                                                                  \
    X(node_ints)                                                                                   \
    X(infer_node)                                                                                  \
    X(infer_inputs)                                                                                \
    X(infer_outputs)                                                                               \
    X(infer_type)                                                                                  \
    X(infer_shape)                                                                                 \
    X(infer_value)                                                                                 \
    X(infer_set)                                                                                   \
    X(infer_merge)                                                                                 \
    X(infer_broadcast)                                                                             \
    X(infer_fail)                                                                                  \
    X(grad_node)                                                                                   \
    X(grad_input)                                                                                  \
    X(grad_output)                                                                                 \
    X(grad_out)                                                                                    \
    X(grad_op)                                                                                     \
    X(grad_scalar)                                                                                 \
    X(grad_set)                                                                                    \
    X(grad_finish)                                                                                 \
    X(grad_fail)                                                                                   \
    X(kernel_node)                                                                                 \
    X(kernel_inputs)                                                                               \
    X(kernel_outputs)                                                                              \
    X(kernel_type)                                                                                 \
    X(kernel_shape)                                                                                \
    X(kernel_count)                                                                                \
    X(kernel_data)                                                                                 \
    X(kernel_string)                                                                               \
    X(kernel_output_type)                                                                          \
    X(kernel_output)                                                                               \
    X(kernel_output_strings)                                                                       \
    X(kernel_temporary)                                                                            \
    X(kernel_threads)                                                                              \
    X(kernel_step)                                                                                 \
    X(kernel_fail)
#define X(name) extern __typeof__(*((const struct tf_op_functions *)NULL)->name) user_##name;
USER_FUNCTIONS(X)
#undef X

#endif
