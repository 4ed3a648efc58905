/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions of users' ops are given: the handles behind api/tf_op_calls.h.
 */
#ifndef TF_OPS_USER_INTERNAL_H
#define TF_OPS_USER_INTERNAL_H

#include "api/tf_op.h"
#include "base/container_of.h"
#include "exec/device/kernel.h"
#include "graph/infer.h"
#include "pass/gradient/grad.h"

/* An op of an object; its declaration is what the registry has. */
struct user_op {
    struct op_def def;
    const struct tf_op *row;
};

/* The row of an op that an object brought. */
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

/* Of struct op_def. */
int user_shape(struct infer *infer);
void user_gradient(struct grad *grad);

struct tf_shape user_shape_out(const struct shape *shape);
/* False: that is no shape. */
bool user_shape_in(const struct tf_shape *shape, bool is_value, struct shape *result);

/* ---- the functions, by handle ---- */

const char *user_node_name(const tf_node *node);
int user_node_int(const tf_node *node, const char *name, int64_t *value);
int user_node_float(const tf_node *node, const char *name, double *value);
int user_node_bool(const tf_node *node, const char *name, int *value);
const char *user_node_string(const tf_node *node, const char *name);
enum tf_type user_node_type(const tf_node *node, const char *name);
int user_node_shape(const tf_node *node, const char *name, struct tf_shape *value);
const int64_t *user_node_ints(const tf_node *node, const char *name, int *n);

const tf_node *user_infer_node(const tf_infer *infer);
int user_infer_inputs(const tf_infer *infer);
int user_infer_outputs(const tf_infer *infer);
enum tf_type user_infer_type(const tf_infer *infer, int input);
void user_infer_shape(const tf_infer *infer, int input, struct tf_shape *shape);
const void *user_infer_value(const tf_infer *infer, int input, struct tf_shape *shape);
void user_infer_set(tf_infer *infer, int output, const struct tf_shape *shape);
int user_infer_merge(tf_infer *infer, int a, int b, struct tf_shape *merged);
int user_infer_broadcast(tf_infer *infer, int a, int b, struct tf_shape *result);
int user_infer_fail(tf_infer *infer, const char *text);

const tf_node *user_grad_node(const tf_grad *grad);
struct tf_edge user_grad_input(const tf_grad *grad, int i);
struct tf_edge user_grad_output(const tf_grad *grad, int k);
struct tf_edge user_grad_out(tf_grad *grad, int k, int or_zeros);
struct tf_edge user_grad_op(tf_grad *grad, const char *op, const struct tf_edge *inputs,
                            int n_inputs, const struct tf_op_attr *attrs, int n_attrs);
struct tf_edge user_grad_scalar(tf_grad *grad, struct tf_edge like, double value);
void user_grad_set(tf_grad *grad, int i, struct tf_edge gradient);
int user_grad_finish(const tf_grad *grad);
int user_grad_fail(tf_grad *grad, const char *text);

const tf_node *user_kernel_node(const tf_kernel *kernel);
int user_kernel_inputs(const tf_kernel *kernel);
int user_kernel_outputs(const tf_kernel *kernel);
enum tf_type user_kernel_type(const tf_kernel *kernel, int input);
void user_kernel_shape(const tf_kernel *kernel, int input, struct tf_shape *shape);
int64_t user_kernel_count(const tf_kernel *kernel, int input);
const void *user_kernel_data(const tf_kernel *kernel, int input);
const char *user_kernel_string(const tf_kernel *kernel, int input, int64_t element, size_t *length);
enum tf_type user_kernel_output_type(const tf_kernel *kernel, int output);
void *user_kernel_output(tf_kernel *kernel, int output, const struct tf_shape *shape);
int user_kernel_output_strings(tf_kernel *kernel, int output, const struct tf_shape *shape,
                               const char *const *texts, const size_t *lengths);
void *user_kernel_temporary(tf_kernel *kernel, size_t bytes);
int user_kernel_threads(const tf_kernel *kernel);
int64_t user_kernel_step(const tf_kernel *kernel);
int user_kernel_fail(tf_kernel *kernel, const char *text);

#endif
