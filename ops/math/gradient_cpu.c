/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of the gradients that are computed from an op's result: x is the result, y what flows back.
 */
#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

#define FLOAT_LOOPS(op, ...)                                                                       \
    BINARY_LOOP(op##_float32, float, float, __VA_ARGS__)                                           \
    BINARY_LOOP(op##_float64, double, double, __VA_ARGS__)

FLOAT_LOOPS(tanh_grad, y *(1 - x * x))
FLOAT_LOOPS(sigmoid_grad, y *x *(1 - x))
FLOAT_LOOPS(sqrt_grad, y *(1 / (x + x)))
FLOAT_LOOPS(rsqrt_grad, y *x *(x *x) / -2)
FLOAT_LOOPS(reciprocal_grad, -y *x *x)

#define ROWS(op, loop)                                                                             \
    {#op, FLOAT32, loop##_float32, #loop "_float32", PARALLEL_GRAIN_MOVE},                         \
    {                                                                                              \
#op, FLOAT64, loop##_float64, #loop "_float64", PARALLEL_GRAIN_MOVE                        \
    }

const struct binary_row binary_gradients[] = {
    ROWS(TanhGrad, tanh_grad),   ROWS(SigmoidGrad, sigmoid_grad),       ROWS(SqrtGrad, sqrt_grad),
    ROWS(RsqrtGrad, rsqrt_grad), ROWS(ReciprocalGrad, reciprocal_grad), {0},
};
