/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of the gradients that are computed from an op's result: x is the result, y what flows back.
 */
#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

/* clang-format off */
#define FLOAT_OPS(X)                                                                               \
    X(TanhGrad, tanh_grad, MOVE, y * (1 - x * x))                                                  \
    X(SigmoidGrad, sigmoid_grad, MOVE, y * x * (1 - x))                                            \
    X(SqrtGrad, sqrt_grad, MOVE, y * (1 / (x + x)))                                                \
    X(RsqrtGrad, rsqrt_grad, MOVE, y * x * (x * x) / -2)                                           \
    X(ReciprocalGrad, reciprocal_grad, MOVE, -y * x * x)
/* clang-format on */

FLOAT_OPS(BINARY_FLOAT_LOOPS)

const struct binary_row binary_gradients[] = {FLOAT_OPS(FLOAT_ROWS){0}};
