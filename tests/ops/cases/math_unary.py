# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and elementary functions of one tensor, casts. Reference: NumPy in float64."""
import math

import numpy as np

from golden import FLOATS, INTS, NUMBERS, Golden, rng

erf = np.vectorize(math.erf, otypes=[np.float64])
INF, NAN = np.inf, np.nan


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# op: function, range of the values, types
ANY, POSITIVE = (-4, 4), (0.1, 9)
OPS = {
    "Neg": (np.negative, ANY, NUMBERS), "Abs": (np.abs, ANY, NUMBERS),
    "Square": (np.square, ANY, NUMBERS),
    "Sign": (lambda x: np.where(np.isnan(x), x, np.sign(x)), ANY, NUMBERS),
    "Round": (np.rint, ANY, NUMBERS),
    "Sqrt": (np.sqrt, POSITIVE, FLOATS), "Rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, FLOATS),
    "Reciprocal": (np.reciprocal, POSITIVE, FLOATS),
    "Exp": (np.exp, ANY, FLOATS), "Log": (np.log, POSITIVE, FLOATS),
    "Log1p": (np.log1p, (-0.9, 4), FLOATS), "Tanh": (np.tanh, ANY, FLOATS),
    "Sigmoid": (sigmoid, ANY, FLOATS), "Sin": (np.sin, (-9, 9), FLOATS),
    "Cos": (np.cos, (-9, 9), FLOATS), "Erf": (erf, ANY, FLOATS),
    "Floor": (np.floor, ANY, FLOATS), "Ceil": (np.ceil, ANY, FLOATS),
    "IsNan": (np.isnan, ANY, FLOATS),
}
SHAPES = {"scalar": (), "empty": (0,), "empty-2": (3, 0), "odd": (7,), "long": (131,),
          "rank-8": (1, 2, 1, 2, 1, 2, 1, 3)}
# Ops share a kernel, which the first is to see in all shapes.
FEW = {"float32": ("scalar", "long"), "float64": ("odd", "long"), "int32": ("odd",), "int64": ("odd",)}
EDGES = np.array([0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1, -1, 88, 89, -87, -103, -104, 1e-8, -1e-8,
                  1e-30, 1e30, 1.4e-45, 1e-40, 1e6, 12345678, -3e7, INF, -INF, NAN])
TWICE = {"Square", "Sqrt", "Rsqrt", "Reciprocal", "Exp", "Log", "Log1p", "Tanh", "Sigmoid", "Sin",
         "Cos", "Erf", "Neg"}
GRADS = {
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy / (2 * y),
    "RsqrtGrad": lambda y, dy: -dy * y ** 3 / 2,
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
}

with Golden("math_unary") as g, np.errstate(all="ignore"):
    for op, (f, (low, high), types) in OPS.items():
        for dtype in types:
            for label in SHAPES if op == next(iter(OPS)) else FEW[dtype]:
                x = np.round(rng.uniform(low, high, SHAPES[label]), 3).astype(dtype)
                out = f(x.astype(np.float64))
                g.op(f"{op}/{dtype}/{label}", op, [x],
                     [out if op == "IsNan" else out.astype(dtype)],
                     grad2=op in TWICE and dtype == "float64" and label == "odd")
            if dtype in FLOATS:
                x = EDGES.astype(dtype)
                out = f(x.astype(np.float64))
                g.op(f"{op}/{dtype}/special", op, [x],
                     [out if op == "IsNan" else out.astype(dtype)])
    for dtype in INTS:
        low = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, -1, 0], dtype)
        for op, f in (("Neg", lambda x: -x), ("Abs", np.abs), ("Square", lambda x: x * x),
                      ("Sign", np.sign), ("Round", lambda x: x)):
            g.op(f"{op}/{dtype}/limits", op, [low], [f(low)])
    for label, shape in SHAPES.items():
        x = rng.integers(0, 2, shape).astype(bool)
        g.op(f"LogicalNot/{label}", "LogicalNot", [x], [~x])

    for op, f in GRADS.items():
        for dtype in FLOATS:
            for label, shape in SHAPES.items():
                y, dy = (np.round(rng.uniform(0.2, 0.9, shape), 3).astype(dtype) for _ in range(2))
                g.op(f"{op}/{dtype}/{label}", op, [y, dy],
                     [f(y.astype(np.float64), dy.astype(np.float64)).astype(dtype)],
                     grad2=dtype == "float64" and label == "odd")
            y, dy = (a.astype(dtype) for a in np.meshgrid([0, 1, INF, NAN], [0, -2, INF, NAN]))
            g.op(f"{op}/{dtype}/special", op, [y, dy],
                 [f(y.astype(np.float64), dy.astype(np.float64)).astype(dtype)])
        g.error(f"{op}/shapes", op, [np.ones(2), np.ones(3)], "[2]|[3]|broadcast")

    # casts: what fits, what is cut, what is too large
    every = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16",
             "uint32", "uint64", "bool"]
    for source in every:
        for target in every:
            if source == "bool":
                x = np.array([True, False, True])
            elif source.startswith("uint"):
                x = np.array([0, 1, 2, 100], source)
            elif source.startswith("int"):
                x = np.array([-100, -1, 0, 1, 2, 100], source)
            else:
                x = np.array([0, 1, 2.75, 100.5], source)
                if target in FLOATS + ["float16", "bool"] + ["int8", "int16", "int32", "int64"]:
                    x = np.append(x, np.array([-0.0, -1.5, -100.25], source))
            g.op(f"Cast/{source}/{target}", "Cast", [x], [x.astype(target)],
                 attrs={"DstT": target})
    for shape in SHAPES.values():
        x = np.round(rng.uniform(-9, 9, shape), 2)
        g.op("Cast/shapes", "Cast", [x], [x.astype(np.float32)], attrs={"DstT": "float32"},
             nograd="the result is float32")
        g.op("Cast/same", "Cast", [x], [x], attrs={"DstT": "float64"},
             grad2=shape == SHAPES["odd"])
    for source in FLOATS:
        x = np.array([NAN, INF, -INF, 1e20, -1e20, -1.5], source)
        for target in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
            limits = np.iinfo(target)
            expected = [0, limits.max, limits.min, limits.max, limits.min, -1 if limits.min else 0]
            g.op(f"Cast/{source}/{target}/saturates", "Cast", [x], [np.array(expected, target)],
                 attrs={"DstT": target})
        g.op(f"Cast/{source}/float16/special", "Cast",
             [np.array([NAN, INF, -INF, 65519, 65520, 1e-8, 6e-8, 2049, 2051], source)],
             [np.array([NAN, INF, -INF, 65519, 65520, 1e-8, 6e-8, 2049, 2051],
                       source).astype(np.float16)], attrs={"DstT": "float16"})
    g.op("Cast/float64/float16/once", "Cast", [np.array([1 + 2.0 ** -11 + 2.0 ** -40])],
         [np.array([1 + 2.0 ** -10], np.float16)], attrs={"DstT": "float16"},
         nograd="the result is float16")
    wrapped = np.array([300, -200, 65537, 2 ** 31 - 1], np.int32)
    for target in ("int8", "uint8", "int16", "uint16"):
        g.op(f"Cast/int32/{target}/wraps", "Cast", [wrapped], [wrapped.astype(target)],
             attrs={"DstT": target})
    g.op("Cast/uint64/float64/large", "Cast", [np.array([2 ** 64 - 1, 2 ** 63], np.uint64)],
         [np.array([2.0 ** 64, 2.0 ** 63])], attrs={"DstT": "float64"})
    g.error("Cast/string", "Cast", [np.array(["a"])], "SrcT|string", attrs={"DstT": "float32"})
