# SPDX-License-Identifier: Apache-2.0
"""Reductions, positions of extrema, cumulative sums and products. Reference: NumPy in float64."""
import itertools

import numpy as np

from golden import FLOATS, INTS, NUMBERS, Golden, Like, rng

INF, NAN = np.inf, np.nan

# shape, axes
CASES = [
    ((), []), ((), None), ((7,), [0]), ((7,), []), ((7,), 0), ((67,), [-1]), ((3, 5), [0]),
    ((3, 5), [1]), ((3, 5), [0, 1]), ((3, 5), [-1, 0]), ((2, 3, 4), [1]), ((2, 3, 4), [0, 2]),
    ((2, 3, 4), [0, 1]), ((2, 3, 4), [2, 1]), ((2, 1, 4), [1]), ((0,), [0]), ((0, 3), [0]),
    ((0, 3), [1]), ((2, 0, 3), [0, 2]), ((3, 2, 2, 3, 2), [1, 3]), ((3, 2, 2, 3, 2), [0, 2, 4]),
    ((2, 1, 2, 1, 2, 1, 2, 2), [0, 3, 5, 7]), ((2, 1, 2, 1, 2, 1, 2, 2), [1, 2, 4, 6]),
]


def as_type(x, scale, dtype):
    return (np.round(x, 2) if dtype in FLOATS else np.rint(x * scale)).astype(dtype)


def mean_int(x, axis, keepdims):
    n = np.prod([x.shape[a] for a in axis])
    total = np.sum(x, axis=axis, keepdims=keepdims)
    return np.sign(total) * (np.abs(total) // n)


def ends(dtype):
    """Whose sum does not fit, as rows of two."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([[high, high], [low, low], [low, high], [high - 1, high]], dtype)


def reduce(op, x, axes, keep):
    axes = tuple(sorted({a % x.ndim for a in axes})) if x.ndim else ()
    f = {"Sum": np.sum, "Prod": np.prod, "All": np.all, "Any": np.any, "Mean": np.mean}.get(op)
    if op in ("Max", "Min"):
        f = np.max if op == "Max" else np.min
        info = np.iinfo(x.dtype) if x.dtype.kind == "i" else None
        start = (info.min if op == "Max" else info.max) if info else (-INF if op == "Max" else INF)
        return f(x, axis=axes, keepdims=keep, initial=start)
    if op == "Mean" and x.dtype.kind == "i":
        return mean_int(x.astype(np.int64), axes, keep)
    return f(x.astype(np.float64) if x.dtype.kind == "f" else x, axis=axes, keepdims=keep)


def distinct(shape, dtype):
    """No ties: the gradients of Max and Min jump there."""
    x = rng.permutation(int(np.prod(shape))).reshape(shape)
    return (x * 0.25 - 2).astype(dtype) if dtype in FLOATS else (x - 3).astype(dtype)


with Golden("reduce") as g, np.errstate(all="ignore"):
    for op in ("Sum", "Mean", "Prod", "Max", "Min", "All", "Any"):
        for dtype in NUMBERS if op not in ("All", "Any") else ["bool"]:
            for (shape, axes), keep in itertools.product(CASES, (False, True)):
                if axes is None or keep and dtype in ("float32", "int64"):
                    continue
                if len(shape) == 5 and dtype not in ("float32", "float64"):
                    continue
                if dtype == "bool":
                    x = rng.integers(0, 4, shape) > (0 if op == "All" else 2)
                elif op in ("Max", "Min"):
                    x = distinct(shape, dtype)
                else:
                    x = rng.uniform(-2, 2, shape)
                    x = as_type(x, 3, dtype)
                indices = np.array(axes, np.int32)
                list_axes = list(np.atleast_1d(axes)) if not isinstance(axes, list) else axes
                if op == "Mean" and dtype in INTS and not all(shape[a] for a in list_axes):
                    if np.prod([d for i, d in enumerate(shape) if i not in
                                [a % len(shape) for a in list_axes]]) > 0:
                        g.error(f"{op}/{dtype}/nothing", op, [x, indices],
                                "the mean of no integers", attrs={"keep_dims": str(keep).lower()})
                        continue
                    out_shape = np.sum(x, axis=tuple(list_axes), keepdims=keep).shape
                    g.op(f"{op}/{dtype}/empty", op, [x, indices], [np.zeros(out_shape, dtype)],
                         attrs={"keep_dims": str(keep).lower()})
                    continue
                out = np.asarray(reduce(op, x, list_axes, keep))
                by = '.'.join(map(str, list_axes))
                name = f"{op}/{dtype}/{'x'.join(map(str, shape))}-by-{by}"
                g.op(name + ("-kept" if keep else ""), op, [x, indices],
                     [out if dtype == "bool" else out.astype(dtype)],
                     attrs={"keep_dims": str(keep).lower()},
                     grad2=dtype == "float64" and op != "Prod" and shape == (2, 3, 4))
            x = np.ones((2, 3), dtype) if dtype == "bool" else distinct((2, 3), dtype)
            g.op(f"{op}/{dtype}/int64-axes", op, [x, np.array([1])],
                 [np.asarray(reduce(op, x, [1], False)).astype(dtype)])
            g.error(f"{op}/{dtype}/axis", op, [np.ones((2, 3), dtype), np.array([2], np.int32)],
                    "axis 2 is outside [-2, 2)")
        g.error(f"{op}/twice", op, [np.ones((2, 3), "bool" if op in ("All", "Any") else "float32"),
                                    np.array([1, -1], np.int32)], "axis -1 is named twice")
        g.error(f"{op}/matrix", op, [np.ones((2, 3), "bool" if op in ("All", "Any") else "float32"),
                                     np.array([[1]], np.int32)], "scalar or a vector")
        if op not in ("All", "Any"):
            for dtype in FLOATS:
                x = np.array([[1, NAN, 3], [INF, 2, 1], [-INF, 2, INF], [0, -0.0, 1]], dtype)
                for axes in ([0], [1]):
                    g.op(f"{op}/{dtype}/special-{axes[0]}", op, [x, np.array(axes, np.int32)],
                         [np.asarray(reduce(op, x, axes, False)).astype(dtype)])
    g.op("Prod/float64/zeros", "Prod", [np.array([[0.0, 2, 3], [0, 0, 4], [1, 5, 2]]),
                                        np.array([1], np.int32)], [np.array([0.0, 0, 10])])
    # a second derivative divides by the elements
    g.op("Prod/float64/second", "Prod", [np.array([[1.5, 2, -3], [0.5, 4, 1]]),
                                         np.array([1], np.int32)], [np.array([-9.0, 2])], grad2=True)
    zeros = np.array([[[0.0, 2], [3, 4]], [[5, 6], [0, 0]], [[1, 0], [2, 3]]])
    for axes in ([0], [2, 0], [-2], [0, 1, 2]):
        g.op(f"Prod/float64/zeros-{'.'.join(map(str, axes))}", "Prod",
             [zeros, np.array(axes, np.int32)],
             [np.asarray(np.prod(zeros, axis=tuple(axes)))])

    # large: blocks, tiles and threads; what is summed is exact in the type
    for dtype in NUMBERS:
        big = [((200003,), [0]), ((70001, 3), [0]), ((3, 70001), [1]), ((130, 1100), [0]),
               ((130, 1100), [1]), ((40, 50, 60), [1]), ((40, 50, 60), [0, 2])]
        for shape, axes in big:
            x = Like(dtype, shape, 1009, 1, -504)
            for op in ("Sum", "Max"):
                out = np.asarray(reduce(op, x.array, axes, False)).astype(dtype)
                if out.size <= 400 or op == "Sum" and dtype == "float32" and out.size < 3001:
                    g.op(f"{op}/{dtype}/large-{'x'.join(map(str, shape))}-by-{axes[0]}", op,
                         [x, np.array(axes, np.int32)], [out], nograd="large")
    x = Like("float32", (300000,), 1000003, 1e-6, 0.25)
    g.op("Sum/float32/accurate", "Sum", [x, np.array([0], np.int32)],
         [np.float32(x.array.astype(np.float64).sum())], tol=1.2e-7)
    x = Like("float32", (3000, 70), 1000003, 1e-6, 0.25)
    g.op("Mean/float32/accurate", "Mean", [x, np.array([0], np.int32)],
         [x.array.astype(np.float64).mean(0).astype(np.float32)], tol=1.2e-7)

    # sums that no integer holds
    for dtype in INTS:
        x = ends(dtype)
        g.op(f"Mean/{dtype}/ends", "Mean", [x, np.array([1], np.int32)],
             [np.array([x[0, 0], x[1, 0], 0, x[0, 0] - 1], dtype)])
        x = np.full((70, 3), x[0, 0])
        g.op(f"Mean/{dtype}/columns", "Mean", [x, np.array([0], np.int32)], [x[0]])
        g.op(f"Mean/{dtype}/run", "Mean", [x, np.array([0, 1], np.int32)], [x[0, 0]])

    # positions
    for op, f in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        for dtype in NUMBERS:
            for shape, axis in (((7,), 0), ((67,), -1), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1),
                                ((0, 3), 1), ((3, 300), 0), ((2, 1, 2, 1, 2, 1, 2, 2), 6)):
                x = rng.integers(-3, 4, shape).astype(dtype)
                g.op(f"{op}/{dtype}/{'x'.join(map(str, shape))}-{axis}", op,
                     [x, np.int32(axis)], [np.asarray(f(x, axis=axis), np.int64)])
            x = np.array([[1, 2], [2, 1]], dtype)
            g.op(f"{op}/{dtype}/int32", op, [x, np.int64(1)], [f(x, 1).astype(np.int32)],
                 attrs={"output_type": "int32"})
            g.error(f"{op}/{dtype}/dimension", op, [x, np.int32(2)],
                    "dimension 2 is outside [-2, 2)")
            g.error(f"{op}/{dtype}/nothing", op, [np.zeros((2, 0), dtype), np.int32(1)],
                    "has no elements")
        for dtype in FLOATS:
            x = np.array([[1, NAN, 3], [NAN, 2, NAN], [-INF, INF, INF], [0, -0.0, 0]], dtype)
            g.op(f"{op}/{dtype}/special", op, [x, np.int32(1)], [f(x, 1)])
        x = np.array([[False, True, True], [True, False, True], [False, False, False]])
        for axis in (0, 1):
            g.op(f"{op}/bool-{axis}", op, [x, np.int32(axis)], [f(x, axis)])
        g.op(f"{op}/bool-int32", op, [x, np.int64(0)], [f(x, 0).astype(np.int32)],
             attrs={"output_type": "int32"})
        g.error(f"{op}/vector", op, [np.ones(2), np.array([0], np.int32)], "scalar|rank 0")
        g.error(f"{op}/scalar", op, [np.float64(2), np.int32(0)],
                "no dimension|outside [0, 0)")

    # cumulative
    def scan(f, x, axis, exclusive, reverse, start):
        x = np.flip(x, axis) if reverse else x
        y = f(x, axis=axis)
        if exclusive and x.shape[axis]:
            first = np.full_like(np.take(y, [0], axis), start)
            y = np.concatenate([first, np.delete(y, -1, axis)], axis)
        return np.flip(y, axis) if reverse else y

    for op, f, start in (("Cumsum", np.cumsum, 0), ("Cumprod", np.cumprod, 1)):
        for dtype in NUMBERS:
            for (shape, axis), exclusive, reverse in itertools.product(
                    (((5,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 3, 2), 1), ((0, 2), 0),
                     ((2, 1, 2, 1, 2, 1, 2, 2), 4)), (False, True), (False, True)):
                x = rng.uniform(0.5, 2, shape)
                x = as_type(x, 2, dtype)
                wide = x.astype(np.float64) if dtype in FLOATS else x
                g.op(f"{op}/{dtype}/{'x'.join(map(str, shape))}-{axis}", op, [x, np.int32(axis)],
                     [scan(f, wide, axis, exclusive, reverse, start).astype(dtype)],
                     attrs={"exclusive": str(exclusive).lower(), "reverse": str(reverse).lower()},
                     grad2=dtype == "float64" and shape == (3, 4))
            g.op(f"{op}/{dtype}/int64-axis", op, [np.array([1, 2, 3], dtype), np.int64(0)],
                 [f(np.array([1, 2, 3])).astype(dtype)])
            g.error(f"{op}/{dtype}/axis", op, [np.ones(2, dtype), np.int32(1)],
                    "axis 1 is outside [-1, 1)")
        for dtype in FLOATS:
            x = np.array([1, INF, 2, NAN, 3], dtype)
            g.op(f"{op}/{dtype}/special", op, [x, np.int32(0)], [f(x)])
        g.error(f"{op}/vector", op, [np.ones(2), np.array([0], np.int32)], "scalar|rank 0")
    # the gradient at zeros, of which a line has none, one or more
    x = np.array([[0.0, 2, 3, 1.5], [1, 0, 2, 0], [2, 3, -1.5, 0], [0, 0, 1, 2], [1, 2, 3, 4]])
    for exclusive, reverse in itertools.product((False, True), (False, True)):
        g.op(f"Cumprod/float64/zeros-{int(exclusive)}{int(reverse)}", "Cumprod", [x, np.int32(1)],
             [scan(np.cumprod, x, 1, exclusive, reverse, 1)],
             attrs={"exclusive": str(exclusive).lower(), "reverse": str(reverse).lower()}, grad=[0])
