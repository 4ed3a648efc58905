/* SPDX-License-Identifier: Apache-2.0
 *
 * What the declarations of all element-wise ops have in common. After the documentation string come
 * an op's own members: .detail, .flags, .gradient.
 */
#ifndef TF_OPS_MATH_ELEMENTWISE_DEF_H
#define TF_OPS_MATH_ELEMENTWISE_DEF_H

#include "graph/op_cost.h"

#define ELEMENTWISE(op, takes, gives, its_attrs, its_half, its_cost, its_shape, its_doc, ...)      \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .inputs = takes,                                                \
                                   .outputs = gives,                                               \
                                   .attrs = its_attrs,                                             \
                                   .doc = its_doc,                                                 \
                                   .rule = "each",                                                 \
                                   .half = HALF_##its_half,                                        \
                                   .cost = its_cost,                                               \
                                   .shape = its_shape,                                             \
                                   __VA_ARGS__}

#endif
