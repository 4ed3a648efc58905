/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions of an op (tf_op.h, which includes this) may call. Returned texts and arrays
 * live at least as long as the handle.
 */
#ifndef TF_OP_CALLS_H
#define TF_OP_CALLS_H

#include <stdarg.h>
#include <stdio.h>

#include "tf_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tf_node tf_node;     /* a node of a graph: its name and attributes */
typedef struct tf_infer tf_infer;   /* what a shape function sees */
typedef struct tf_grad tf_grad;     /* what a gradient function sees */
typedef struct tf_kernel tf_kernel; /* one run of a kernel */

/* A tensor of a graph; node < 0: there is none. */
struct tf_edge {
    int32_t node, slot;
};

struct tf_op_attr {
    const char *name, *value; /* as in a graph's text: "true", "0.5", "[1,2]", "float32", "SAME" */
};

/* Functions that the program provides to an object: found through every handle, called by the
 * functions below. */
struct tf_op_functions {
    const char *(*node_name)(const tf_node *);
    int (*node_int)(const tf_node *, const char *name, int64_t *value);
    int (*node_float)(const tf_node *, const char *name, double *value);
    int (*node_bool)(const tf_node *, const char *name, int *value);
    const char *(*node_string)(const tf_node *, const char *name);
    enum tf_type (*node_type)(const tf_node *, const char *name);
    int (*node_shape)(const tf_node *, const char *name, struct tf_shape *value);
    const int64_t *(*node_ints)(const tf_node *, const char *name, int *n);

    const tf_node *(*infer_node)(const tf_infer *);
    int (*infer_inputs)(const tf_infer *);
    int (*infer_outputs)(const tf_infer *);
    enum tf_type (*infer_type)(const tf_infer *, int input);
    void (*infer_shape)(const tf_infer *, int input, struct tf_shape *shape);
    const void *(*infer_value)(const tf_infer *, int input, struct tf_shape *shape);
    void (*infer_set)(tf_infer *, int output, const struct tf_shape *shape);
    int (*infer_merge)(tf_infer *, int a, int b, struct tf_shape *merged);
    int (*infer_broadcast)(tf_infer *, int a, int b, struct tf_shape *result);
    int (*infer_fail)(tf_infer *, const char *text);

    const tf_node *(*grad_node)(const tf_grad *);
    struct tf_edge (*grad_input)(const tf_grad *, int i);
    struct tf_edge (*grad_output)(const tf_grad *, int k);
    struct tf_edge (*grad_out)(tf_grad *, int k, int or_zeros);
    struct tf_edge (*grad_op)(tf_grad *, const char *op, const struct tf_edge *inputs, int n_inputs,
                              const struct tf_op_attr *attrs, int n_attrs);
    struct tf_edge (*grad_scalar)(tf_grad *, struct tf_edge like, double value);
    void (*grad_set)(tf_grad *, int i, struct tf_edge gradient);
    int (*grad_finish)(const tf_grad *);
    int (*grad_fail)(tf_grad *, const char *text);

    const tf_node *(*kernel_node)(const tf_kernel *);
    int (*kernel_inputs)(const tf_kernel *);
    int (*kernel_outputs)(const tf_kernel *);
    enum tf_type (*kernel_type)(const tf_kernel *, int input);
    void (*kernel_shape)(const tf_kernel *, int input, struct tf_shape *shape);
    int64_t (*kernel_count)(const tf_kernel *, int input);
    const void *(*kernel_data)(const tf_kernel *, int input);
    const char *(*kernel_string)(const tf_kernel *, int input, int64_t element, size_t *length);
    enum tf_type (*kernel_output_type)(const tf_kernel *, int output);
    void *(*kernel_output)(tf_kernel *, int output, const struct tf_shape *shape);
    int (*kernel_output_strings)(tf_kernel *, int output, const struct tf_shape *shape,
                                 const char *const *texts, const size_t *lengths);
    void *(*kernel_temporary)(tf_kernel *, size_t bytes);
    int (*kernel_threads)(const tf_kernel *);
    int64_t (*kernel_step)(const tf_kernel *);
    int (*kernel_fail)(tf_kernel *, const char *text);
};

/* The first member of every handle. */
struct tf_op_handle {
    const struct tf_op_functions *functions;
};

#define TF_OP_CALL(handle, name)                                                                   \
    (((const struct tf_op_handle *)(const void *)(handle))->functions->name)

/* ---- a node: attributes by name; 0, NULL or TF_INVALID when it has none of that kind ---- */

static inline const char *tf_node_name(const tf_node *node)
{
    return TF_OP_CALL(node, node_name)(node);
}

static inline int tf_node_int(const tf_node *node, const char *name, int64_t *value)
{
    return TF_OP_CALL(node, node_int)(node, name, value);
}

static inline int tf_node_float(const tf_node *node, const char *name, double *value)
{
    return TF_OP_CALL(node, node_float)(node, name, value);
}

static inline int tf_node_bool(const tf_node *node, const char *name, int *value)
{
    return TF_OP_CALL(node, node_bool)(node, name, value);
}

static inline const char *tf_node_string(const tf_node *node, const char *name)
{
    return TF_OP_CALL(node, node_string)(node, name);
}

static inline enum tf_type tf_node_type(const tf_node *node, const char *name)
{
    return TF_OP_CALL(node, node_type)(node, name);
}

static inline int tf_node_shape(const tf_node *node, const char *name, struct tf_shape *value)
{
    return TF_OP_CALL(node, node_shape)(node, name, value);
}

/* Returns the numbers of a list(int). */
static inline const int64_t *tf_node_ints(const tf_node *node, const char *name, int *n)
{
    return TF_OP_CALL(node, node_ints)(node, name, n);
}

/* ---- a shape function ---- */

static inline const tf_node *tf_infer_node(const tf_infer *infer)
{
    return TF_OP_CALL(infer, infer_node)(infer);
}

static inline int tf_infer_inputs(const tf_infer *infer)
{
    return TF_OP_CALL(infer, infer_inputs)(infer);
}

static inline int tf_infer_outputs(const tf_infer *infer)
{
    return TF_OP_CALL(infer, infer_outputs)(infer);
}

static inline enum tf_type tf_infer_type(const tf_infer *infer, int input)
{
    return TF_OP_CALL(infer, infer_type)(infer, input);
}

static inline struct tf_shape tf_infer_shape(const tf_infer *infer, int input)
{
    struct tf_shape shape;
    TF_OP_CALL(infer, infer_shape)(infer, input, &shape);
    return shape;
}

/* Returns the elements of a constant input, and its shape; NULL: they are not known yet. */
static inline const void *tf_infer_value(const tf_infer *infer, int input, struct tf_shape *shape)
{
    return TF_OP_CALL(infer, infer_value)(infer, input, shape);
}

static inline void tf_infer_set(tf_infer *infer, int output, const struct tf_shape *shape)
{
    TF_OP_CALL(infer, infer_set)(infer, output, shape);
}

/* Merges what is known of a shape that both inputs share; fails if they contradict each other. */
static inline int tf_infer_merge(tf_infer *infer, int a, int b, struct tf_shape *merged)
{
    return TF_OP_CALL(infer, infer_merge)(infer, a, b, merged);
}

/* Computes the shape to which NumPy broadcasts both inputs; fails if there is none. */
static inline int tf_infer_broadcast(tf_infer *infer, int a, int b, struct tf_shape *result)
{
    return TF_OP_CALL(infer, infer_broadcast)(infer, a, b, result);
}

/* Reports what is wrong ("x must be a matrix"), prefixed with the node's name. Returns the value
 * for the shape function to return. */
__attribute__((format(printf, 2, 3), unused)) static int tf_infer_fail(tf_infer *infer,
                                                                       const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return TF_OP_CALL(infer, infer_fail)(infer, text);
}

/* ---- a gradient function: it appends nodes to the graph, nothing is computed. After the first
 * failure everything gives no edge, so that it reads like its formula. ---- */

static inline int tf_edge_exists(struct tf_edge edge)
{
    return edge.node >= 0;
}

static inline const tf_node *tf_grad_node(const tf_grad *grad)
{
    return TF_OP_CALL(grad, grad_node)(grad);
}

/* Return the forward node's input i; its output k. */
static inline struct tf_edge tf_grad_input(const tf_grad *grad, int i)
{
    return TF_OP_CALL(grad, grad_input)(grad, i);
}

static inline struct tf_edge tf_grad_output(const tf_grad *grad, int k)
{
    return TF_OP_CALL(grad, grad_output)(grad, k);
}

/* Returns the gradient of output k, or none if none flows back through it. At least one has one. */
static inline struct tf_edge tf_grad_out(tf_grad *grad, int k)
{
    return TF_OP_CALL(grad, grad_out)(grad, k, 0);
}

static inline struct tf_edge tf_grad_out_or_zeros(tf_grad *grad, int k)
{
    return TF_OP_CALL(grad, grad_out)(grad, k, 1);
}

/* Adds a node of any op, built-in or custom; returns output 0 (others: same node, another slot). */
static inline struct tf_edge tf_grad_op(tf_grad *grad, const char *op, const struct tf_edge *inputs,
                                        int n_inputs, const struct tf_op_attr *attrs, int n_attrs)
{
    return TF_OP_CALL(grad, grad_op)(grad, op, inputs, n_inputs, attrs, n_attrs);
}

static inline struct tf_edge tf_grad_op1(tf_grad *grad, const char *op, struct tf_edge x)
{
    return tf_grad_op(grad, op, &x, 1, NULL, 0);
}

static inline struct tf_edge tf_grad_op2(tf_grad *grad, const char *op, struct tf_edge x,
                                         struct tf_edge y)
{
    struct tf_edge inputs[2];
    inputs[0] = x;
    inputs[1] = y;
    return tf_grad_op(grad, op, inputs, 2, NULL, 0);
}

/* Adds a constant of the type of `like`. */
static inline struct tf_edge tf_grad_scalar(tf_grad *grad, struct tf_edge like, double value)
{
    return TF_OP_CALL(grad, grad_scalar)(grad, like, value);
}

/* Sets input i's gradient, of the input's shape; inputs that are not set have none. */
static inline void tf_grad_set(tf_grad *grad, int i, struct tf_edge gradient)
{
    TF_OP_CALL(grad, grad_set)(grad, i, gradient);
}

/* A gradient function returns this: 0, or the code of the first failure. */
static inline int tf_grad_finish(const tf_grad *grad)
{
    return TF_OP_CALL(grad, grad_finish)(grad);
}

__attribute__((format(printf, 2, 3), unused)) static int tf_grad_fail(tf_grad *grad,
                                                                      const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return TF_OP_CALL(grad, grad_fail)(grad, text);
}

/* ---- a kernel: inputs are in the host's memory and must not be written to ---- */

static inline const tf_node *tf_kernel_node(const tf_kernel *kernel)
{
    return TF_OP_CALL(kernel, kernel_node)(kernel);
}

static inline int tf_kernel_inputs(const tf_kernel *kernel)
{
    return TF_OP_CALL(kernel, kernel_inputs)(kernel);
}

static inline int tf_kernel_outputs(const tf_kernel *kernel)
{
    return TF_OP_CALL(kernel, kernel_outputs)(kernel);
}

static inline enum tf_type tf_kernel_type(const tf_kernel *kernel, int input)
{
    return TF_OP_CALL(kernel, kernel_type)(kernel, input);
}

static inline struct tf_shape tf_kernel_shape(const tf_kernel *kernel, int input)
{
    struct tf_shape shape;
    TF_OP_CALL(kernel, kernel_shape)(kernel, input, &shape);
    return shape;
}

/* Returns the number of elements. */
static inline int64_t tf_kernel_count(const tf_kernel *kernel, int input)
{
    return TF_OP_CALL(kernel, kernel_count)(kernel, input);
}

/* Returns the elements; not for strings. */
static inline const void *tf_kernel_data(const tf_kernel *kernel, int input)
{
    return TF_OP_CALL(kernel, kernel_data)(kernel, input);
}

/* Returns an element of a string tensor, which has no terminating NUL and may contain NULs. */
static inline const char *tf_kernel_string(const tf_kernel *kernel, int input, int64_t element,
                                           size_t *length)
{
    return TF_OP_CALL(kernel, kernel_string)(kernel, input, element, length);
}

static inline enum tf_type tf_kernel_output_type(const tf_kernel *kernel, int output)
{
    return TF_OP_CALL(kernel, kernel_output_type)(kernel, output);
}

/* Allocates an output, not zeroed; not for strings. NULL if out of memory or if the shape
 * contradicts the shape function; the kernel then returns tf_kernel_failed. */
static inline void *tf_kernel_output(tf_kernel *kernel, int output, const struct tf_shape *shape)
{
    return TF_OP_CALL(kernel, kernel_output)(kernel, output, shape);
}

/* Sets an output of strings, which are copied; lengths NULL: NUL-terminated. 0 or the code to
 * return. */
static inline int tf_kernel_output_strings(tf_kernel *kernel, int output,
                                           const struct tf_shape *shape, const char *const *texts,
                                           const size_t *lengths)
{
    return TF_OP_CALL(kernel, kernel_output_strings)(kernel, output, shape, texts, lengths);
}

/* Allocates memory until the end of the step, not zeroed; NULL: out of memory. */
static inline void *tf_kernel_temporary(tf_kernel *kernel, size_t bytes)
{
    return TF_OP_CALL(kernel, kernel_temporary)(kernel, bytes);
}

/* Returns how many threads the kernel may use, including its own. */
static inline int tf_kernel_threads(const tf_kernel *kernel)
{
    return TF_OP_CALL(kernel, kernel_threads)(kernel);
}

/* The number of the step: 1, 2, ... */
static inline int64_t tf_kernel_step(const tf_kernel *kernel)
{
    return TF_OP_CALL(kernel, kernel_step)(kernel);
}

/* A kernel returns this when a function above has failed. */
static inline int tf_kernel_failed(tf_kernel *kernel)
{
    return TF_OP_CALL(kernel, kernel_fail)(kernel, NULL);
}

/* Fails the step with this text, prefixed with the node's name. Returns the value for the kernel to
 * return. */
__attribute__((format(printf, 2, 3), unused)) static int tf_kernel_fail(tf_kernel *kernel,
                                                                        const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return TF_OP_CALL(kernel, kernel_fail)(kernel, text);
}

#ifdef __cplusplus
}
#endif

#endif
