/* SPDX-License-Identifier: Apache-2.0
 *
 * An object that must be refused, for the reason that it is compiled with, REFUSED_abi and so on.
 */
#include <tf_op.h>

#ifdef REFUSED_nothing
extern const int something;
const int something = 1;
#else

static int run(tf_kernel *kernel)
{
    return tf_kernel_fail(kernel, "must not run");
}

static const struct tf_op ops[] = {
    {.name = "Fine", .inputs = "x: float32", .outputs = "y: float32", .doc = "Fine."},
#if defined REFUSED_taken
    {.name = "Neg", .inputs = "x: float32", .outputs = "y: float32", .doc = "Another."},
#elif defined REFUSED_twice
    {.name = "Fine", .inputs = "x: float32", .outputs = "y: float32", .doc = "Another."},
#elif defined REFUSED_name
    {.name = "fine", .inputs = "x: float32", .outputs = "y: float32", .doc = "Another."},
#elif defined REFUSED_malformed
    {.name = "Odd", .inputs = "x: float33", .outputs = "y: float32", .doc = "Another."},
#elif defined REFUSED_reference
    {.name = "Odd", .inputs = "x: Ref(float32)", .outputs = "y: float32", .doc = "Another."},
#elif defined REFUSED_flag
    {.name = "Odd", .inputs = "x: float32", .outputs = "y: float32", .flags = 1u << 30},
#endif
};
static const struct tf_op_kernel kernels[] = {
#if defined REFUSED_kernel
    {.op = "Other", .run = run},
#elif defined REFUSED_empty
    {.op = "Fine"},
#endif
    {.op = "Fine", .run = run},
};

#if defined REFUSED_abi
#define ABI 999
#else
#define ABI TF_OP_ABI
#endif
#if defined REFUSED_later
#define FUNCTIONS sizeof(struct tf_op_functions) + sizeof(void *)
#else
#define FUNCTIONS sizeof(struct tf_op_functions)
#endif
#if defined REFUSED_none
#define N_OPS 0
#else
#define N_OPS sizeof ops / sizeof *ops
#endif

extern const struct tf_ops tf_ops;
const struct tf_ops tf_ops = {ABI,
                              sizeof(struct tf_ops),
                              sizeof *ops,
                              sizeof *kernels,
                              FUNCTIONS,
                              N_OPS,
                              sizeof kernels / sizeof *kernels,
                              ops,
                              kernels};
#endif
