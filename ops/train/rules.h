/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of the update rules: included by each device for floats, then, with REAL_IS_DOUBLE, for
 * doubles. w is the variable, a and b its slots, g the gradient, S(i) scalar i in declared order. A
 * quotient by 0 is 0: an element that has had no gradient yet, or only gradients whose squares
 * underflow, is left unchanged.
 */
#ifdef REAL_IS_DOUBLE
#undef REAL
#undef SQRT
#undef POW
#undef FABS
#define REAL double
#define SQRT sqrt
#define POW pow
#define FABS fabs
#else
#define REAL float
#define SQRT sqrtf
#define POW powf
#define FABS fabsf
#define PER(x, y) ((y) == 0 ? 0 : (x) / (y))
/* X(op, rule) */
#define RULES(X)                                                                                   \
    X(ApplyGradientDescent, descent)                                                               \
    X(ApplyMomentum, momentum)                                                                     \
    X(ApplyAdagrad, adagrad)                                                                       \
    X(ApplyAdadelta, adadelta)                                                                     \
    X(ApplyRMSProp, rmsprop)                                                                       \
    X(ApplyAdam, adam)                                                                             \
    X(ApplyFtrl, ftrl)
#endif

LOOP(NAME(descent), REAL, {
    REAL lr = S(0);
    EACH w[i] -= lr * g[i];
})

LOOP(NAME(momentum), REAL, {
    REAL lr = S(0), mu = S(1);
    if (u->nesterov)
        EACH
        {
            a[i] = mu * a[i] + g[i];
            w[i] -= lr * g[i] + lr * mu * a[i];
        }
    else
        EACH
        {
            a[i] = mu * a[i] + g[i];
            w[i] -= lr * a[i];
        }
})

LOOP(NAME(adagrad), REAL, {
    REAL lr = S(0);
    EACH
    {
        a[i] += g[i] * g[i];
        w[i] -= PER(lr * g[i], SQRT(a[i]));
    }
})

LOOP(NAME(adadelta), REAL, {
    REAL lr = S(0), rho = S(1), epsilon = S(2);
    EACH
    {
        a[i] = rho * a[i] + (1 - rho) * g[i] * g[i];
        REAL d = PER(SQRT(b[i] + epsilon), SQRT(a[i] + epsilon)) * g[i];
        b[i] = rho * b[i] + (1 - rho) * d * d;
        w[i] -= lr * d;
    }
})

LOOP(NAME(rmsprop), REAL, {
    REAL lr = S(0), rho = S(1), mu = S(2), epsilon = S(3);
    EACH
    {
        a[i] += (1 - rho) * (g[i] * g[i] - a[i]);
        b[i] = mu * b[i] + PER(lr * g[i], SQRT(a[i] + epsilon));
        w[i] -= b[i];
    }
})

LOOP(NAME(adam), REAL, {
    REAL beta1 = S(3), beta2 = S(4), epsilon = S(5);
    REAL rate = S(2) * SQRT(1 - S(1)) / (1 - S(0));
    EACH
    {
        a[i] += (1 - beta1) * (g[i] - a[i]);
        b[i] += (1 - beta2) * (g[i] * g[i] - b[i]);
        w[i] -= PER(rate * a[i], SQRT(b[i]) + epsilon);
    }
})

LOOP(NAME(ftrl), REAL, {
    REAL lr = S(0), l1 = S(1), l2 = S(2), power = -S(3);
    bool root = power == (REAL)0.5;
    EACH
    {
        REAL n = a[i] + g[i] * g[i];
        REAL now = root ? SQRT(n) : POW(n, power), before = root ? SQRT(a[i]) : POW(a[i], power);
        b[i] += g[i] - (now - before) / lr * w[i];
        REAL z = b[i], sign = z < 0 ? -1 : 1;
        w[i] = FABS(z) > l1 ? PER(sign * l1 - z, now / lr + 2 * l2) : 0;
        a[i] = n;
    }
})
