/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom ops, in a shared object that every program of tf-tools loads with --ops FILE.so or by
 * TF_OPS_PATH. It needs this header and no library:
 *
 *     cc -shared -fPIC -O2 $(pkg-config --cflags tf-tools) my_op.c -o my_op.so
 *
 * An object declares ops (struct tf_op) and their CPU kernels (struct tf_op_kernel), and names both
 * to TF_OPS, once:
 *
 *     static const struct tf_op ops[] = {{.name = "Cube", .inputs = "x: T", .outputs = "y: T",
 *                                         .attrs = "T: float32|float64", .doc = "x * x * x.",
 *                                         .shape = cube_shape, .gradient = cube_gradient}};
 *     static const struct tf_op_kernel kernels[] = {{.op = "Cube", .run = cube_run}};
 *     TF_OPS(ops, kernels)
 *
 * The functions get opaque handles (tf_infer, tf_grad, tf_kernel), which are valid during the call;
 * everything that can be asked of them is a function of tf_op_calls.h.
 *
 * Versions. A program accepts objects whose TF_OP_ABI is its own and that were compiled with no
 * more functions than it has; it refuses all others with a line that says so.
 *
 * Threads. A program may call any of an object's functions from several threads at once, including
 * a run function for the same node. An object is never unloaded.
 */
#ifndef TF_OP_H
#define TF_OP_H

#include "tf_op_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TF_OP_ABI 1

enum tf_op_flag {
    TF_OP_STATEFUL = 1,    /* has state or an effect: never merged, folded or computed twice */
    TF_OP_COMMUTATIVE = 2, /* nodes that differ only in the order of inputs are equal */
    TF_OP_NO_GRADIENT = 4  /* contributes nothing to gradients, silently */
};

/* The declaration of an op. Grammar: an argument is `name: TYPE`, where TYPE is a type ("int32"), a
 * type attribute ("T"), a list of N tensors of one type ("N*T"), or a list of tensors whose types
 * are a list(type) attribute ("Tlist..."). An attribute is `name: KIND`, then optionally `=
 * default`, then `>= minimum`. KIND is int, float, bool, string, type, shape, list(KIND), a set of
 * strings {"SAME","VALID"}, or a set of types: names and classes (floating, integer, real, numeric,
 * any) joined by |. Several are separated by commas. Type attributes and N are inferred from the
 * inputs when a node is made. */
struct tf_op {
    const char *name;                     /* letters and digits, first a capital */
    const char *inputs, *outputs, *attrs; /* NULL: none */
    const char *doc;                      /* one line, a sentence */
    uint32_t flags;                       /* enum tf_op_flag */
    int32_t version;                      /* of the op's meaning; 0 is the first */
    /* Sets the outputs' shapes as far as known; returns 0, or the result of tf_infer_fail. NULL:
     * nothing is known. */
    int (*shape)(tf_infer *infer);
    /* Appends the nodes that compute the inputs' gradients; returns tf_grad_finish. NULL without
     * TF_OP_NO_GRADIENT: a gradient through the op is an error. */
    int (*gradient)(tf_grad *grad);
};

/* A kernel of one of the object's ops. The first one that matches a node's types is used. */
struct tf_op_kernel {
    const char *op;
    const char *types; /* "T=float32|float64 Tidx=int32"; NULL: all declared types */
    /* Allocates and fills every output; returns 0, or the result of tf_kernel_fail. */
    int (*run)(tf_kernel *kernel);
};

/* The table that an object exports as `tf_ops`. */
struct tf_ops {
    uint32_t abi;                                     /* TF_OP_ABI */
    uint32_t bytes;                                   /* of this struct, as compiled */
    uint32_t op_bytes, kernel_bytes, functions_bytes; /* of those above, as compiled */
    uint32_t n_ops, n_kernels;
    const struct tf_op *ops;
    const struct tf_op_kernel *kernels;
};

#ifdef __cplusplus
#define TF_OPS_EXTERN extern "C"
#else
#define TF_OPS_EXTERN extern
#endif

#define TF_OPS(ops_, kernels_)                                                                     \
    TF_OPS_EXTERN const struct tf_ops tf_ops __attribute__((visibility("default")));               \
    const struct tf_ops tf_ops = {TF_OP_ABI,                                                       \
                                  sizeof(struct tf_ops),                                           \
                                  sizeof(struct tf_op),                                            \
                                  sizeof(struct tf_op_kernel),                                     \
                                  sizeof(struct tf_op_functions),                                  \
                                  sizeof(ops_) / sizeof *(ops_),                                   \
                                  sizeof(kernels_) / sizeof *(kernels_),                           \
                                  (ops_),                                                          \
                                  (kernels_)};

#ifdef __cplusplus
}
#endif

#endif
