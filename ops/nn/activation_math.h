/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of activations shared by devices, like those of ops/math/vmath.h.
 */
#ifndef TF_OPS_NN_ACTIVATION_MATH_H
#define TF_OPS_NN_ACTIVATION_MATH_H

#include "ops/math/vmath.h"

/* Near 0 computes exp(x) - 1 from t = tanh(x/2), which is accurate there: e - 1 = t (e + 1). */
VMATH_FUNCTION float activation_expm1_float32(float x)
{
    float e = vmath_exp(x), near = vmath_tanh(0.5f * x) * (e + 1.0f);
    return x < -0.5f ? e - 1.0f : near;
}

VMATH_FUNCTION double activation_expm1_float64(double x)
{
    return expm1(x);
}

VMATH_FUNCTION float activation_softplus_float32(float x)
{
    float near = vmath_log1p(vmath_exp(-fabsf(x)));
    return x > 0.0f ? x + near : near;
}

VMATH_FUNCTION double activation_softplus_float64(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Returns the gradient through a softplus of x. */
VMATH_FUNCTION float activation_softplus_grad_float32(float gradient, float x)
{
    return gradient * vmath_sigmoid(x);
}

VMATH_FUNCTION double activation_softplus_grad_float64(double gradient, double x)
{
    return gradient / (1 + exp(-x));
}

#endif
