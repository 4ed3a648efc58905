/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise ops, each once: the expression for an element x, or for x and y. The registry, the
 * kernel rows of all devices, the CPU's loops and CUDA's kernels are generated from these lists, in
 * C and C++. To add an op: a line here, its declaration (oplist.def), its cases.
 *
 * X(op, loop, types, grain, floats, integers)
 *   loop      its name in plans
 *   types     those of x (below)
 *   grain     MOVE: bound by memory; COMPUTE: a function of each element
 *   floats    the element of floats, of 16 bits by float32. FUNCTION(f) is vmath_f (vmath.h) of
 *             float32 and f of float64, BY_FLOAT(f) that of f_float32 and f_float64.
 *   integers  the element of integers: T is the type of x, U its unsigned twin, in which they wrap
 *             around. CHECKED(f) is f(x, y), which also says what error it met. 0: of floats only
 */
#ifndef TF_OPS_MATH_ELEMENTWISE_OPS_H
#define TF_OPS_MATH_ELEMENTWISE_OPS_H

#define ELEMENTS_FLOATS "floating"
#define ELEMENTS_ANGLES ELEMENTS_FLOATS /* large ones are reduced by the C library */
#define ELEMENTS_WORDS "floating|int32|int64"
#define ELEMENTS_SIGNED "floating|int8|int16|int32|int64"
#define ELEMENTS_REALS "real"

/* The functions f that FUNCTION(f) can name. */
#define ELEMENT_FUNCTIONS(X) X(exp) X(log) X(log1p) X(tanh) X(sigmoid) X(erf) X(sin) X(cos)

/* clang-format off */
/* ---- one operand ---- */

#define UNARY_OPS(X) UNARY_PLAIN_OPS(X) UNARY_EPILOGUES(X)
#define UNARY_PLAIN_OPS(X)                                                                         \
    X(Neg, neg, SIGNED, MOVE, -x, (T)(0 - (U)x))                                                   \
    X(Abs, abs, SIGNED, MOVE, fabs(x), x < 0 ? (T)(0 - (U)x) : x)                                  \
    X(Square, square, REALS, MOVE, x * x, (T)((U)x * (U)x))                                        \
    /* NaN and 0: their own */                                                                     \
    X(Sign, sign, SIGNED, MOVE, x > 0 ? 1 : x < 0 ? -1 : x, (x > 0) - (x < 0))                     \
    X(Round, round, SIGNED, MOVE, rint(x), x)                                                      \
    X(Sqrt, sqrt, FLOATS, MOVE, sqrt(x), 0)                                                        \
    X(Rsqrt, rsqrt, FLOATS, MOVE, 1 / sqrt(x), 0)                                                  \
    X(Reciprocal, reciprocal, FLOATS, MOVE, 1 / x, 0)                                              \
    X(Floor, floor, FLOATS, MOVE, floor(x), 0)                                                     \
    X(Ceil, ceil, FLOATS, MOVE, ceil(x), 0)                                                        \
    X(Exp, exp, FLOATS, COMPUTE, FUNCTION(exp)(x), 0)                                              \
    X(Log, log, FLOATS, COMPUTE, FUNCTION(log)(x), 0)                                              \
    X(Log1p, log1p, FLOATS, COMPUTE, FUNCTION(log1p)(x), 0)                                        \
    X(Sin, sin, ANGLES, COMPUTE, FUNCTION(sin)(x), 0)                                              \
    X(Cos, cos, ANGLES, COMPUTE, FUNCTION(cos)(x), 0)                                              \
    X(Erf, erf, FLOATS, COMPUTE, FUNCTION(erf)(x), 0)
/* Ops that can follow a product in one kernel. */
#define UNARY_EPILOGUES(X)                                                                         \
    X(Tanh, tanh, FLOATS, COMPUTE, FUNCTION(tanh)(x), 0)                                           \
    X(Sigmoid, sigmoid, FLOATS, COMPUTE, FUNCTION(sigmoid)(x), 0)

/* Activations. A mask, and its gradient, maps 0 to 0 and a NaN to itself. */
#define ACTIVATION_MASKS(X)                                                                        \
    X(Relu, relu, REALS, MOVE, x < 0 ? 0 : x, x > 0 ? x : 0)                                       \
    X(Relu6, relu6, REALS, MOVE, x < 0 ? 0 : x > 6 ? 6 : x, x > 6 ? 6 : x > 0 ? x : 0)
#define ACTIVATION_CURVES(X)                                                                       \
    X(Elu, elu, FLOATS, COMPUTE, x < 0 ? BY_FLOAT(activation_expm1)(x) : x, 0)                     \
    X(Softplus, softplus, FLOATS, COMPUTE, BY_FLOAT(activation_softplus)(x), 0)
#define OPS_OF_ONE(X) UNARY_OPS(X) ACTIVATION_MASKS(X) ACTIVATION_CURVES(X)

/* ---- two operands ---- */

#define BINARY_OPS(X)                                                                              \
    X(Add, add, REALS, MOVE, x + y, (T)((U)x + (U)y))                                              \
    X(Sub, sub, REALS, MOVE, x - y, (T)((U)x - (U)y))                                              \
    X(Mul, mul, REALS, MOVE, x * y, (T)((U)x * (U)y))                                              \
    X(Div, div, REALS, MOVE, x / y, CHECKED(divide))                                               \
    X(FloorDiv, floor_div, REALS, COMPUTE, BY_FLOAT(floor_divide)(x, y), CHECKED(floor_divide))    \
    X(Mod, mod, REALS, COMPUTE, BY_FLOAT(floor_mod)(x, y), CHECKED(floor_mod))                     \
    /* A NaN on either side comes through: x if it is one, else y, since y is then not less. */    \
    X(Maximum, maximum, REALS, MOVE, x > y || x != x ? x : y, x > y ? x : y)                       \
    X(Minimum, minimum, REALS, MOVE, x < y || x != x ? x : y, x < y ? x : y)                       \
    X(Pow, pow, SIGNED, COMPUTE, BY_FLOAT(power)(x, y), CHECKED(power))                            \
    X(SquaredDifference, squared_difference, WORDS, MOVE, (x - y) * (x - y),                       \
      (T)(((U)x - (U)y) * ((U)x - (U)y)))                                                          \
    /* Gradients: x is the op's result, y what flows back. */                                      \
    X(TanhGrad, tanh_grad, FLOATS, MOVE, y * (1 - x * x), 0)                                       \
    X(SigmoidGrad, sigmoid_grad, FLOATS, MOVE, y * x * (1 - x), 0)                                 \
    X(SqrtGrad, sqrt_grad, FLOATS, MOVE, y * (1 / (x + x)), 0)                                     \
    X(RsqrtGrad, rsqrt_grad, FLOATS, MOVE, y * x * (x * x) / -2, 0)                                \
    X(ReciprocalGrad, reciprocal_grad, FLOATS, MOVE, -y * x * x, 0)

/* x is the incoming gradient, y the activation's input or result. */
#define ACTIVATION_MASK_GRADS(X)                                                                   \
    X(ReluGrad, relu_grad, REALS, MOVE, y > 0 ? x : 0, y > 0 ? x : 0)                              \
    X(Relu6Grad, relu6_grad, REALS, MOVE, y > 0 && y < 6 ? x : 0, y > 0 && y < 6 ? x : 0)
#define ACTIVATION_CURVE_GRADS(X)                                                                  \
    X(EluGrad, elu_grad, FLOATS, MOVE, y < 0 ? x * (y + 1) : x, 0)                                 \
    X(SoftplusGrad, softplus_grad, FLOATS, COMPUTE, BY_FLOAT(activation_softplus_grad)(x, y), 0)
#define OPS_OF_TWO(X) BINARY_OPS(X) ACTIVATION_MASK_GRADS(X) ACTIVATION_CURVE_GRADS(X)

/* ---- results are booleans: X(op, loop, element) ---- */

#define ORDER_OPS(X) /* of reals */                                                                \
    X(Less, less, x < y)                                                                           \
    X(LessEqual, less_equal, x <= y)                                                               \
    X(Greater, greater, x > y)                                                                     \
    X(GreaterEqual, greater_equal, x >= y)
#define EQUALITY_OPS(X) /* of complex numbers and booleans, too */                                 \
    X(Equal, equal, EQUALS(x, y))                                                                  \
    X(NotEqual, not_equal, !EQUALS(x, y))
#define LOGIC_OPS(X)                                                                               \
    X(LogicalAnd, logical_and, x & y)                                                              \
    X(LogicalOr, logical_or, x | y)
/* clang-format on */

#define FUSED_OPERANDS 2 /* of FusedElementwise, for each op; -1: it has one operand */

#endif
