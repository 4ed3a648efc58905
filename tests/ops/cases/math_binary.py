# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, comparison and logic of two tensors; Select and AddN. Reference: NumPy in float64."""
import numpy as np

from golden import FLOATS, INTS, NUMBERS, Golden, rng

INF, NAN = np.inf, np.nan

# pairs of shapes: each way of broadcasting
SHAPES = {
    "scalars": ((), ()),
    "empty": ((0,), (0,)),
    "empty-by-row": ((2, 0), (1, 0)),
    "odd": ((7,), (7,)),
    "long": ((67,), (67,)),
    "scalar-left": ((), (5,)),
    "scalar-right": ((2, 3), ()),
    "row": ((3, 5), (5,)),
    "column": ((3, 5), (3, 1)),
    "outer": ((3, 1), (1, 4)),
    "middle": ((2, 3, 4), (2, 1, 4)),
    "new-axes": ((4,), (2, 3, 4)),
    "rank-8": ((1, 2, 1, 2, 1, 2, 1, 2), (2, 1, 1, 2, 2, 1, 1, 2)),
}

LESS = ("middle", "new-axes", "column", "row")  # enough for two of the types


def values(dtype, shape, kind):
    if dtype in INTS:
        low, high = {"power": (0, 5), "divisor": (1, 9)}.get(kind, (-9, 10))
        x = rng.integers(low, high, shape)
        return (x * rng.choice([-1, 1], shape) if kind == "divisor" else x).astype(dtype)
    x = rng.uniform(0.5, 3, shape)
    if kind in ("any", "dividend"):
        x = x * rng.choice([-1, 1], shape)
    return np.round(x, 3).astype(dtype)


def wide(x):
    return x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64)


def int_or(f, g):
    return lambda x, y: f(x, y) if x.dtype.kind == "i" else g(x, y)


def truncate(x, y):
    return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(np.int64)


# op: function, kinds of x and y, differentiable
OPS = {
    "Add": (np.add, "any", "any"),
    "Sub": (np.subtract, "any", "any"),
    "Mul": (np.multiply, "any", "any"),
    "Div": (int_or(truncate, np.divide), "any", "divisor"),
    "FloorDiv": (np.floor_divide, "any", "divisor"),
    "Mod": (np.mod, "any", "divisor"),
    "Maximum": (np.maximum, "any", "any"),
    "Minimum": (np.minimum, "any", "any"),
    "Pow": (np.power, "positive", "power"),
    "SquaredDifference": (lambda x, y: (x - y) ** 2, "any", "any"),
}
COMPARE = {
    "Less": np.less, "LessEqual": np.less_equal, "Greater": np.greater,
    "GreaterEqual": np.greater_equal, "Equal": np.equal, "NotEqual": np.not_equal,
}
TWICE = {"Mul", "Div", "Pow", "SquaredDifference", "Add", "Sub"}

special = np.array([0.0, -0.0, 1, -2.5, INF, -INF, NAN])

with Golden("math_binary") as g, np.errstate(all="ignore"):
    for op, (f, kx, ky) in OPS.items():
        for dtype in NUMBERS:
            for label, (sx, sy) in SHAPES.items():
                if dtype in ("float32", "int64") and label in LESS:
                    continue
                x, y = values(dtype, sx, kx), values(dtype, sy, ky)
                if dtype == "float64" and op in ("Maximum", "Minimum"):
                    x = x + 0.0625  # no ties, where the gradient jumps
                out = f(wide(x), wide(y)).astype(dtype)
                g.op(f"{op}/{dtype}/{label}", op, [x, y], [out],
                     grad2=op in TWICE and dtype == "float64" and label in ("odd", "row", "outer"),
                     tol=1e-5 if dtype == "float32" and op == "Pow" else None)
        for dtype in FLOATS:
            x, y = (a.astype(dtype) for a in np.meshgrid(special, special))
            g.op(f"{op}/{dtype}/special", op, [x, y], [f(wide(x), wide(y)).astype(dtype)])
        for dtype in NUMBERS:
            g.error(f"{op}/{dtype}/shapes", op, [np.ones((2, 3), dtype), np.ones((2,), dtype)],
                    "broadcast")
    for op, f in COMPARE.items():
        for dtype in NUMBERS + (["bool"] if "Equal" in op and len(op) in (5, 8) else []):
            if op in ("LessEqual", "GreaterEqual") and dtype == "bool":
                continue
            for label in ("scalars", "empty", "odd", "long", "scalar-left", "scalar-right", "outer",
                          "rank-8"):
                sx, sy = SHAPES[label]
                x, y = (rng.integers(0, 2 if dtype == "bool" else 4, s).astype(dtype)
                        for s in (sx, sy))
                g.op(f"{op}/{dtype}/{label}", op, [x, y], [f(x, y)])
        for dtype in FLOATS:
            x, y = (a.astype(dtype) for a in np.meshgrid(special, special))
            g.op(f"{op}/{dtype}/special", op, [x, y], [f(x, y)])
        g.error(f"{op}/shapes", op, [np.ones(3), np.ones(2)], "broadcast")
    for op, f in {"LogicalAnd": np.logical_and, "LogicalOr": np.logical_or}.items():
        for label, (sx, sy) in SHAPES.items():
            x, y = (rng.integers(0, 2, s).astype(bool) for s in (sx, sy))
            g.op(f"{op}/{label}", op, [x, y], [f(x, y)])
        g.error(f"{op}/shapes", op, [np.ones(3, bool), np.ones(2, bool)], "broadcast")

    # whole numbers: what has no result, and what wraps around
    for dtype in INTS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        a = np.array([low, low, high, -7, 7, 6], dtype)
        b = np.array([-1, 2, -2, 2, -2, 3], dtype)
        g.op(f"Div/{dtype}/limits", "Div", [a, b],
             [np.array([low, low // 2, -(high // 2), -3, -3, 2], dtype)])
        g.op(f"FloorDiv/{dtype}/limits", "FloorDiv", [a, b],
             [np.array([low, low // 2, high // -2, -4, -4, 2], dtype)])
        g.op(f"Mod/{dtype}/limits", "Mod", [a, b], [np.array([0, 0, -1, 1, -1, 0], dtype)])
        for op in ("Div", "FloorDiv", "Mod"):
            g.error(f"{op}/{dtype}/zero", op, [np.array([1, 2], dtype), np.array([1, 0], dtype)],
                    "division by zero")
        g.error(f"Pow/{dtype}/negative", "Pow", [np.array([2], dtype), np.array([-1], dtype)],
                "negative power")
        for op, result in (("Add", low), ("Sub", high), ("Mul", -2)):
            x = np.array({"Add": high, "Sub": low, "Mul": high}[op], dtype)
            y = np.array({"Add": 1, "Sub": 1, "Mul": 2}[op], dtype)
            g.op(f"{op}/{dtype}/wraps", op, [x, y], [np.array(result, dtype)])

    # quotients of decimals, which round to whole numbers that they do not reach
    for dtype in FLOATS:
        x, y = np.meshgrid(np.arange(-40, 41), [-0.7, -0.2, -0.1, 0.1, 0.3, 0.6, 1.1])
        x, y = (x / 10).astype(dtype), y.astype(dtype)
        g.op(f"FloorDiv/{dtype}/decimals", "FloorDiv", [x, y], [np.floor_divide(x, y)])
        g.op(f"Mod/{dtype}/decimals", "Mod", [x, y], [np.mod(x, y)], tol=0)

    # as many bytes in as out, but not as many elements: nothing may be overwritten early
    y = np.array([[1.0], [2], [3]])
    x = np.arange(24.0).reshape(2, 3, 4) % 3 + 1
    g.op("Equal/float64/bytes", "Equal", [y, x], [y == x])

    # the gradient of Pow where x is 0, and of ties
    g.op("Pow/float64/zero", "Pow", [np.array([0.0, 0.0]), np.array([2.0, 3.0])],
         [np.array([0.0, 0.0])], grad=[0])

    for dtype in NUMBERS + ["bool"]:
        def draw(shape):
            x = rng.integers(0, 2, shape) if dtype == "bool" else rng.integers(-9, 9, shape)
            return x.astype(dtype)
        for label, (sc, st, se) in {
            "scalars": ((), (), ()), "empty": ((0,), (0,), (0,)), "odd": ((7,), (7,), (7,)),
            "scalar-condition": ((), (2, 3), (2, 3)), "rows": ((3,), (3, 2), (3, 2)),
            "square-rows": ((3,), (3, 3), (3, 3)), "last-axis": ((2,), (3, 2), (3, 2)),
            "values-scalar": ((2, 3), (), ()), "value-row": ((2, 3), (3,), (2, 1)),
            "condition-column": ((2, 1), (2, 3), (2, 3)), "long": ((67,), (67,), ()),
            "rank-8": ((1, 2, 1, 2, 1, 2, 1, 2), (2,) * 8, (1,) * 8),
        }.items():
            c, t, e = rng.integers(0, 2, sc).astype(bool), draw(st), draw(se)
            values_shape = np.broadcast_shapes(st, se)
            as_rows = len(sc) == 1 and len(values_shape) > 1 and sc[0] == values_shape[0]
            condition = c.reshape(sc + (1,) * (len(values_shape) - 1)) if as_rows else c
            g.op(f"Select/{dtype}/{label}", "Select", [c, t, e], [np.where(condition, t, e)],
                 grad2=dtype == "float64" and label == "value-row")
    x = np.array([NAN, INF, -0.0], np.float32)
    g.op("Select/float32/special", "Select", [np.array([True, False, True]), x, x[::-1]],
         [np.array([NAN, INF, -0.0], np.float32)])
    g.error("Select/values", "Select", [np.array(True), np.ones(2), np.ones(3)], "broadcast|fit")
    g.error("Select/condition", "Select", [np.array([True] * 4), np.ones((2, 3)), np.ones((2, 3))],
            "does not fit")

    for dtype in NUMBERS:
        for n, shape in ((1, (3,)), (2, ()), (3, (7,)), (5, (2, 3)), (4, (0, 2)), (3, (67,)),
                         (2, (1, 2) * 4)):
            xs = [rng.integers(-9, 9, shape).astype(dtype) for _ in range(n)]
            name = f"AddN/{dtype}/{n}-of-{'x'.join(map(str, shape))}"
            g.op(name, "AddN", xs, [np.sum(xs, 0, dtype)],
                 grad2=dtype == "float64" and n == 3)
        if dtype in FLOATS:
            xs = [special.astype(dtype), np.ones(7, dtype), special[::-1].astype(dtype)]
            g.op(f"AddN/{dtype}/special", "AddN", xs, [xs[0] + xs[1] + xs[2]])
    # The same memory by two names: the sum must not be written over it in between.
    x = np.array([1, 2, 3], np.float32)
    g.graph("AddN/alias", "x = Placeholder() {dtype=float32, shape=[3]}\na = Neg(x)\n"
            "b = Identity(a)\nc = Square(x)\ny = AddN(a, c, b)\n", [("", {"x": x}, {"y": x * x - 2 * x})],
            ops="AddN")
    g.error("AddN/shapes", "AddN", [np.ones(2), np.ones(2), np.ones(3)], "input 2 is [3]")

    for dtype in INTS:
        for a, b in (((), ()), ((2, 3), (2, 3)), ((2, 1), (1, 3)), ((3,), (2, 3)), ((), (2,)),
                     ((1, 1), (1,)), ((0, 1), (1, 4)), ((2, 3, 5, 4), (3, 1, 4))):
            full = np.broadcast_shapes(a, b)
            axes = []
            for own, other in ((a, b), (b, a)):
                padded = (1,) * (len(full) - len(own)) + own
                axes.append(np.array([i for i, d in enumerate(padded) if d == 1 and
                                      (full[i] != 1 or i < len(full) - len(own))], dtype))
            g.op(f"BroadcastGradientArgs/{dtype}", "BroadcastGradientArgs",
                 [np.array(a, dtype), np.array(b, dtype)], axes)
    g.error("BroadcastGradientArgs/shapes", "BroadcastGradientArgs",
            [np.array([2, 3], np.int32), np.array([4], np.int32)], "3 and 4 cannot be broadcast")
    g.error("BroadcastGradientArgs/rank", "BroadcastGradientArgs",
            [np.array(2, np.int32), np.array([4], np.int32)], "vector|rank 1|no shapes")
