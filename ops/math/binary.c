/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of two tensors, element by element with broadcasting.
 */
#include <float.h>

#include "ops/lacking.h"
#include "ops/math/elementwise_def.h"
#include "ops/math/gradients.h"

#define BINARY(op, of, half, cost, doc, ...)                                                       \
    ELEMENTWISE(op, "x: T, y: T", "z: T", "T: " of, half, cost, infer_broadcast, doc, __VA_ARGS__)

/* ---- known results: integers of 0 or more ---- */

typedef bool combine_fn(int64_t a, int64_t b, int64_t *result);

static bool combine(const struct infer *infer, combine_fn *known, struct shape *value)
{
    struct shape a, b;
    if (!infer_value_shape(infer, 0, &a) || !infer_value_shape(infer, 1, &b) ||
        (a.rank != b.rank && a.rank != 1 && b.rank != 1))
        return false;
    value->rank = a.rank == 1 ? b.rank : a.rank;
    for (int i = 0; i < value->rank; i++) {
        int64_t x = a.dims[a.rank == 1 ? 0 : i], y = b.dims[b.rank == 1 ? 0 : i];
        if (x < 0 || y < 0 || !known(x, y, &value->dims[i]))
            value->dims[i] = SHAPE_UNKNOWN;
    }
    return true;
}

/* Defines a value function; `known` says whether z, made of x and y, is a known result. */
#define VALUE(name, known)                                                                         \
    static bool name##_known(int64_t x, int64_t y, int64_t *z)                                     \
    {                                                                                              \
        return known;                                                                              \
    }                                                                                              \
    static bool name##_value(const struct infer *infer, struct shape *value)                       \
    {                                                                                              \
        return combine(infer, name##_known, value);                                                \
    }
VALUE(add, !__builtin_add_overflow(x, y, z))
VALUE(sub, (*z = x - y) >= 0)
VALUE(mul, !__builtin_mul_overflow(x, y, z))
VALUE(div, y && (*z = x / y) >= 0)

/* ---- gradients ---- */

/* Sets both gradients, reducing them from the output's shape to the inputs' shapes. */
static void set_both(struct grad *g, struct edge dx, struct edge dy)
{
    g->in[0] = grad_unbroadcast(g, dx, 0, 1);
    g->in[1] = grad_unbroadcast(g, dy, 1, 0);
}

static void add_gradient(struct grad *g)
{
    set_both(g, g->out[0], g->out[0]);
}

static void sub_gradient(struct grad *g)
{
    set_both(g, g->out[0], grad_neg(g, g->out[0]));
}

static void mul_gradient(struct grad *g)
{
    struct edge dz = g->out[0];
    set_both(g, grad_mul(g, dz, grad_input(g, 1)), grad_mul(g, grad_input(g, 0), dz));
}

/* dx = dz / y; dy = -dz z / y, where dz z is computed first: if z is 0, dz / y may overflow. */
static void div_gradient(struct grad *g)
{
    struct edge y = grad_input(g, 1), dz = g->out[0];
    struct edge product = grad_mul(g, dz, grad_output(g, 0));
    set_both(g, grad_div(g, dz, y), grad_neg(g, grad_div(g, product, y)));
}

/* The gradient flows to the larger operand (of Maximum), or the smaller one; ties go to x. */
static void extremum_gradient(struct grad *g, const char *comparison)
{
    struct edge mask = build_binary(&g->b, comparison, grad_input(g, 0), grad_input(g, 1));
    struct edge zero = build_scalar_like(&g->b, g->out[0], 0);
    set_both(g, grad_select(g, mask, g->out[0], zero), grad_select(g, mask, zero, g->out[0]));
}

static void maximum_gradient(struct grad *g)
{
    extremum_gradient(g, "GreaterEqual");
}

static void minimum_gradient(struct grad *g)
{
    extremum_gradient(g, "LessEqual");
}

/* The base of x^(y-1), such that y x^(y-1) is 0 if y is: x, but 1 if 1 / x is infinite. */
static struct edge base_of_slope(struct grad *g, struct edge one, struct edge zero)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 0), y = grad_input(g, 1);
    const struct tensor *exponent = b->err->code ? NULL : graph_constant(b->graph, y);
    bool may_be_zero = !exponent;
    for (int64_t i = 0; exponent && i < tensor_count(exponent); i++)
        may_be_zero |= tensor_get_float64(exponent, i) == 0;
    if (b->err->code || !may_be_zero)
        return x;
    double least = build_type(b, x) == FLOAT64   ? DBL_MIN
                   : build_type(b, x) == FLOAT16 ? 0x1p-14
                                                 : FLT_MIN;
    struct edge size = build_unary(b, "Abs", x);
    struct edge is_near = build_binary(b, "Less", size, build_scalar_like(b, x, least));
    struct edge is_flat = build_binary(b, "Equal", y, zero);
    return grad_select(g, build_binary(b, "LogicalAnd", is_near, is_flat), one, x);
}

/* dx = dz y x^(y-1); dy = dz z ln x where x > 0, else 0. The logarithm never gets another x, so
 * that no NaN arises, not even in the second derivative. */
static void pow_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 0), y = grad_input(g, 1), dz = g->out[0], z = grad_output(g, 0);
    struct edge one = build_scalar_like(b, x, 1), zero = build_scalar_like(b, x, 0);
    struct edge power =
        build_binary(b, "Pow", base_of_slope(g, one, zero), build_binary(b, "Sub", y, one));
    struct edge log =
        build_unary(b, "Log", grad_select(g, build_binary(b, "Greater", x, zero), x, one));
    /* of z's shape: a vector would select rows */
    struct edge wide = build_binary(b, "Add", x, build_unary(b, "ZerosLike", z));
    struct edge known = grad_select(g, build_binary(b, "Greater", wide, zero), z, zero);
    set_both(g, grad_mul(g, grad_mul(g, dz, y), power), grad_mul(g, grad_mul(g, dz, known), log));
}

static void squared_difference_gradient(struct grad *g)
{
    struct edge difference = build_binary(&g->b, "Sub", grad_input(g, 0), grad_input(g, 1));
    struct edge dx = grad_mul(g, grad_scale(g, 2, g->out[0]), difference);
    set_both(g, dx, grad_neg(g, dx));
}

BINARY(Add, "real", INFERRED, cost_elements, "x + y, with broadcasting.",
       .flags = OP_COMMUTATIVE | OP_SUMS, .detail = NO_COMPLEX " Strings are not joined.",
       .identity = {SAME_OPERAND, -0.0, DTYPES_REAL, "adds nothing"}, .value = add_value,
       .gradient = add_gradient);

BINARY(Sub, "real", INFERRED, cost_elements, "x - y, with broadcasting.", .detail = NO_COMPLEX,
       .identity = {SAME_OPERAND, 0.0, DTYPES_REAL, "subtracts nothing"}, .value = sub_value,
       .gradient = sub_gradient);

BINARY(Mul, "real", INFERRED, cost_elements, "x * y element by element, with broadcasting.",
       .flags = OP_COMMUTATIVE, .detail = NO_COMPLEX,
       .identity = {SAME_OPERAND, 1.0, DTYPES_REAL, "multiplies by 1"}, .value = mul_value,
       .gradient = mul_gradient);

BINARY(Div, "real", INFERRED, cost_elements,
       "x / y, with broadcasting; of integers, cut toward zero.",
       .detail = "An integer divided by zero is an error."
                 "\n" NO_COMPLEX,
       .identity = {SAME_OPERAND, 1.0, DTYPES_REAL, "divides by 1"}, .by_reciprocal = "Mul",
       .value = div_value, .gradient = div_gradient);

BINARY(FloorDiv, "real", DENIED, cost_elements,
       "The largest whole number that is not above x / y, with broadcasting.",
       .flags = OP_NO_GRADIENT,
       .detail =
           "An integer divided by zero is an error. Of floats it is NumPy's floor_divide: that of "
           "the exact quotient, which goes with Mod, and NaN where x is infinite."
           "\n" NO_COMPLEX,
       .identity = {SAME_OPERAND, 1.0, DTYPES_INTEGER, "divides by 1"}, .value = div_value,
       .no_gradient = "its result changes in steps");

BINARY(Mod, "real", DENIED, cost_elements,
       "x - FloorDiv(x, y) * y, the remainder that has the sign of y; with broadcasting.",
       .detail =
           "As Lua's and Python's %: TensorFlow's FloorMod, not its Mod, which has the sign of x. "
           "An integer divided by zero is an error; of floats the result is NaN there."
           "\n" NO_COMPLEX,
       .no_gradient = "it jumps wherever x / y is a whole number");

/* Not commutative: for 0 and -0 the second is returned. */
BINARY(Maximum, "real", CLEAR, cost_elements, "The larger of x and y, with broadcasting.",
       .detail = "NaN if either is NaN. The gradient of equal elements goes to x.",
       .gradient = maximum_gradient);

BINARY(Minimum, "real", CLEAR, cost_elements, "The smaller of x and y, with broadcasting.",
       .detail = "NaN if either is NaN. The gradient of equal elements goes to x.",
       .gradient = minimum_gradient);

BINARY(Pow, "floating|int8|int16|int32|int64", DENIED, cost_functions,
       "x to the power of y, with broadcasting.",
       .detail = "An integer to a negative power is an error. The gradient of y is 0 where x <= 0."
                 "\n" NO_COMPLEX,
       .gradient = pow_gradient);

BINARY(SquaredDifference, "floating|int32|int64", DENIED, cost_elements,
       "(x - y) * (x - y), with broadcasting.", .flags = OP_COMMUTATIVE, .detail = NO_COMPLEX,
       .gradient = squared_difference_gradient);
