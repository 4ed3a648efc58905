# SPDX-License-Identifier: Apache-2.0
"""Array ops: shapes, slicing, joining, repeating, gathering. Reference: NumPy's indexing."""
import itertools

import numpy as np

from golden import Golden, Like, rng

FIXED = ["float32", "float64", "float16", "bfloat16", "complex64", "int8", "int16", "int32",
         "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
NAN, INF = np.nan, np.inf


def of_type(name, values):
    """An array of any type: NumPy has no bfloat16, which stays a pair."""
    values = np.asarray(values)
    if name == "bfloat16":
        return (name, values.astype(np.float32))
    if name == "bool":
        return values % 2 == 1
    return values.astype(name)


def counting(shape, dtype="float32"):
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape).astype(dtype)


def smooth(shape):
    return rng.uniform(-2, 2, shape).round(3)


def i32(*values):
    return np.array(values, np.int32)


def every_type(g, op, f, inputs_after=(), inputs_before=(), attrs=None, shape=(2, 3), first=0):
    """op of small whole numbers, once for each type that is only moved."""
    x = np.arange(first, first + int(np.prod(shape))).reshape(shape) % 7
    for t in FIXED:
        outs = f(x)
        outs = outs if isinstance(outs, list) else [outs]
        g.op(f"{op.lower()}/{t}", op, [*inputs_before, of_type(t, x), *inputs_after],
             [of_type(t, y) for y in outs], attrs=attrs)


def identities(g):
    for op in ("Identity", "StopGradient"):
        every_type(g, op, lambda x: x)
        g.op(f"{op.lower()}/string", op, [np.array(["a", "", "c d"])], [np.array(["a", "", "c d"])])
        for shape in ((), (0,), (3, 0, 2), (1,) * 7 + (3,)):
            x = counting(shape)
            g.op(f"{op.lower()}/shape", op, [x], [x])
    g.op("identity/gradient", "Identity", [smooth((2, 3))], [None])
    every_type(g, "PlaceholderWithDefault", lambda x: x)
    g.op("placeholder-with-default/string", "PlaceholderWithDefault", [np.array("x")],
         [np.array("x")], attrs={"shape": "[]"})
    x = smooth((2, 3))
    g.op("placeholder-with-default/shape", "PlaceholderWithDefault", [x], [x],
         attrs={"shape": "[?,3]"})
    g.error("placeholder-with-default/other-shape", "PlaceholderWithDefault", [x],
            "the default has shape|is not", attrs={"shape": "[3]"})
    every_type(g, "ZerosLike", lambda x: x * 0)
    every_type(g, "OnesLike", lambda x: x * 0 + 1)
    for shape in ((), (0, 3), (2,) * 8):
        g.op("zeroslike/shape", "ZerosLike", [counting(shape)], [np.zeros(shape, np.float32)])
        g.op("oneslike/shape", "OnesLike", [counting(shape)], [np.ones(shape, np.float32)])


def check_numerics(g):
    big = Like("float32", (9999,), 97, 0.5, -3)
    g.op("checknumerics/large", "CheckNumerics", [big], [big], attrs={"message": '"m"'})
    for t in ("float32", "float64", "float16", "bfloat16"):
        x = of_type(t, [1, -2, 3])
        g.op(f"checknumerics/{t}", "CheckNumerics", [x], [x], attrs={"message": '"m"'})
        for value, name in ((NAN, "NaN"), (INF, "Inf"), (-INF, "-Inf")):
            bad = np.array([[1, 2, 3], [4, 5, value]], np.float32)
            bad = (t, bad) if t == "bfloat16" else bad.astype(t)
            g.error(f"checknumerics/{t}-{name}", "CheckNumerics", [bad],
                    f"layer 1 is {name} at [1,2] of {t}[2,3]|layer 1 is {name} at [5]",
                    attrs={"message": '"layer 1"'})
    g.op("checknumerics/extremes", "CheckNumerics",
         [np.array([3.4e38, 1e-45, -0.0, 0], np.float32)],
         [np.array([3.4e38, 1e-45, -0.0, 0], np.float32)], attrs={"message": '""'})
    g.op("checknumerics/empty", "CheckNumerics", [np.zeros((0, 2))], [np.zeros((0, 2))],
         attrs={"message": '""'}, nograd="nothing to check")


def shapes(g):
    for shape in ((), (3,), (0,), (2, 0, 5), (1, 2, 1, 2, 1, 2, 1, 2)):
        x = counting(shape)
        for t in ("int32", "int64"):
            out = {"out_type": t}
            g.op(f"shape/{t}", "Shape", [x], [np.array(shape, t)], attrs=out)
            g.op(f"size/{t}", "Size", [x], [np.array(x.size, t)], attrs=out)
        g.op("rank", "Rank", [x], [np.array(x.ndim, np.int32)])
    for t in FIXED:
        x = of_type(t, [[1, 2, 3]])
        g.op(f"shape/{t}", "Shape", [x], [i32(1, 3)])
        g.op(f"size/{t}", "Size", [x], [np.int32(3)])
        g.op(f"rank/{t}", "Rank", [x], [np.int32(2)])
    for op, y in (("Shape", i32(2)), ("Size", np.int32(2)), ("Rank", np.int32(1))):
        g.op(f"{op.lower()}/string", op, [np.array(["a", "b"])], [y])


def of_nothing(shape, to):
    """What is open beside a 0 follows from the dimensions that are not 0, as in TensorFlow."""
    count = int(np.prod([d for d in shape if d or 0 not in to]))
    product = int(np.prod([d for d in to if d > 0]))
    return [d if d >= 0 else count // product for d in to]


def reshapes(g):
    every_type(g, "Reshape", lambda x: x.reshape(3, 2), [i32(3, 2)])
    g.op("reshape/string", "Reshape", [np.array(["a", "b"]), i32(2, 1)], [np.array([["a"], ["b"]])])
    for shape, to in (((), []), ((), [1, 1]), ((6,), [2, 3]), ((6,), [-1, 2]), ((2, 3), [-1]),
                      ((1,), []), ((0, 3), [0]), ((0, 3), [3, 0]), ((0, 3), [5, -1]),
                      ((0, 4, 3), [0, -1]), ((0, 4, 3), [-1, 12]), ((5, 0, 4), [2, 0, -1]),
                      ((0,), [0, -1]),
                      ((2,) * 8, [16, 16]), ((256,), [2] * 8), ((2, 3), [1, -1, 1])):
        x = smooth(shape)
        for t in ("int32", "int64"):
            y = x.reshape(to) if x.size else np.zeros(of_nothing(shape, to))
            g.op(f"reshape/{t}", "Reshape", [x, np.array(to, t)], [y])
    x = counting((2, 3))
    g.error("reshape/count", "Reshape", [x, i32(4)],
            "6 elements of shape [2,3] do not fit shape [4]")
    g.error("reshape/indivisible", "Reshape", [x, i32(4, -1)], "do not fit")
    g.error("reshape/not-empty", "Reshape", [x, i32(0, -1)], "do not fit")
    g.error("reshape/empty-indivisible", "Reshape", [np.zeros((0, 4, 3)), i32(0, 5, -1)],
            "do not fit")
    g.error("reshape/two-open", "Reshape", [x, i32(-1, -1)], "only one dimension")
    g.error("reshape/negative", "Reshape", [x, i32(-2, 3)], "dimension 0 of the shape is -2")
    g.error("reshape/rank", "Reshape", [counting((1,)), i32(*[1] * 9)], "at most 8")
    every_type(g, "ExpandDims", lambda x: x[None], [np.int32(0)])
    g.op("expanddims/string", "ExpandDims", [np.array("a"), np.int32(0)], [np.array(["a"])])
    for axis in range(-4, 4):
        x = smooth((2, 1, 3))
        for t in ("int32", "int64"):
            g.op(f"expanddims/axis-{axis}", "ExpandDims", [x, np.array(axis, t)],
                 [np.expand_dims(x, axis)])
    g.op("expanddims/empty", "ExpandDims", [np.zeros((0,)), np.int32(-1)], [np.zeros((0, 1))])
    for axis in (3, -4):
        g.error("expanddims/outside", "ExpandDims", [counting((2, 3)), np.int32(axis)], "outside")
    g.error("expanddims/vector", "ExpandDims", [counting((2, 3)), i32(0, 1)], "dim must be")
    g.error("expanddims/rank", "ExpandDims", [counting((1,) * 8), np.int32(0)], "more than 8")
    every_type(g, "Squeeze", lambda x: x[0], attrs={"squeeze_dims": "[0]"}, shape=(1, 2, 3))
    g.op("squeeze/string", "Squeeze", [np.array(["a"])], [np.array("a")])
    for shape, dims in (((1, 2, 1, 3), []), ((1, 2, 1, 3), [0]), ((1, 2, 1, 3), [0, -2]),
                        ((), []), ((1, 1), []), ((0, 1), [1]), ((1,) * 8, [1, 3, 5])):
        x = smooth(shape)
        y = np.squeeze(x) if not dims else np.squeeze(x, tuple(dims))
        g.op("squeeze", "Squeeze", [x], [y], attrs={"squeeze_dims": str(dims).replace(" ", "")})
    g.error("squeeze/not-1", "Squeeze", [counting((1, 2))],
            "is not 1", attrs={"squeeze_dims": "[1]"})
    g.error("squeeze/outside", "Squeeze", [counting((1, 2))], "outside",
            attrs={"squeeze_dims": "[2]"})


def slices(g):
    every_type(g, "Slice", lambda x: x[1:, :2], [i32(1, 0), i32(1, 2)])
    for shape, begin, size in (((), [], []), ((7,), [2], [3]), ((7,), [2], [-1]), ((7,), [7], [-1]),
                               ((7,), [3], [0]), ((4, 5), [1, 2], [
                                2, -1]), ((0, 3), [0, 1], [0, 2]),
                               ((3, 4, 5), [0, 1, 2], [3, 2, 2]),
                               ((2,) * 8, [1, 0] * 4, [1, 2] * 4)):
        x = smooth(shape)
        end = [b + s if s >= 0 else d for b, s, d in zip(begin, size, shape)]
        y = x[tuple(slice(b, e) for b, e in zip(begin, end))]
        for t in ("int32", "int64"):
            g.op(f"slice/{t}", "Slice", [x, np.array(begin, t), np.array(size, t)], [y],
                 grad2=len(shape) == 2)
    x = counting((4, 5))
    g.error("slice/beyond", "Slice", [x, i32(3, 0), i32(2, 1)], "go beyond [0, 4)")
    g.error("slice/begin-beyond", "Slice", [x, i32(0, 6), i32(1, -1)], "go beyond [0, 5)")
    g.error("slice/negative", "Slice", [x, i32(-1, 0), i32(1, 1)], "below 0")
    g.error("slice/size", "Slice", [x, i32(0, 0), i32(-2, 1)], "below")
    g.error("slice/length", "Slice", [x, i32(0), i32(1)],
            "begin has 1 elements|must be a vector of 2")
    every_type(g, "Pad", lambda x: np.pad(x, ((1, 0), (0, 2))),
               [np.array([[1, 0], [0, 2]], np.int32)])
    for shape, pads in (((), []), ((3,), [(2, 1)]), ((3,), [(0, 0)]), ((2, 3), [(1, 1), (2, 0)]),
                        ((0, 3), [(1, 0), (0, 0)]), ((2, 1, 2), [(0, 1), (1, 1), (3, 0)]),
                        ((1, 2) * 4, [(1, 0), (0, 1)] * 4)):
        x = smooth(shape)
        for t in ("int32", "int64"):
            g.op(f"pad/{t}", "Pad", [x, np.array(pads, t).reshape(-1, 2)],
                 [np.pad(x, pads) if pads else x], grad2=len(shape) == 2)
    g.error("pad/negative", "Pad", [x, np.full((8, 2), -1, np.int32)], "negative")
    g.error("pad/rank", "Pad", [counting((2, 3)), i32(1, 1)], "must be")
    g.error("pad/rows", "Pad", [counting((2, 3)), np.zeros((3, 2), np.int32)], "paddings")


def masks(**bits):
    return {f"{k}_mask": v for k, v in bits.items() if v}


def python_slice(spec):
    """x[spec] as begin, end, strides and masks."""
    begin, end, strides, bits = [], [], [], dict(
    begin=0, end=0, ellipsis=0, new_axis=0, shrink_axis=0)
    for i, s in enumerate(spec):
        b = e = 0
        step = 1
        if s is Ellipsis:
            bits["ellipsis"] |= 1 << i
        elif s is None:
            bits["new_axis"] |= 1 << i
        elif isinstance(s, slice):
            step = s.step or 1
            if s.start is None:
                bits["begin"] |= 1 << i
            if s.stop is None:
                bits["end"] |= 1 << i
            b, e = s.start or 0, s.stop or 0
        else:
            bits["shrink_axis"] |= 1 << i
            b, e = s, s + 1
        begin.append(b)
        end.append(e)
        strides.append(step)
    return begin, end, strides, masks(**bits)


def strided_slices(g):
    s = np.s_
    every_type(g, "StridedSlice", lambda x: x[::-1, 1], [i32(0, 1), i32(0, 2), i32(-1, 1)],
               attrs=masks(begin=1, end=1, shrink_axis=2))
    specs = [
        ((7,), s[2:5]), ((7,), s[:]), ((7,), s[::2]), ((7,), s[::-1]), ((7,), s[5:1:-2]),
        ((7,), s[-3:]), ((7,), s[:-3]), ((7,), s[3]), ((7,),
         s[-1]), ((7,), s[10:20]), ((7,), s[-20:3]),
        ((7,), s[5:2]), ((7,), s[100::-3]), ((7,), s[None]
         ), ((7,), s[..., None]), ((7,), s[-1:-8:-1]),
        ((4, 5), s[1:3, 2:]), ((4, 5), s[1]), ((4, 5), s[..., 1]), ((4, 5), s[None, :, None, 2]),
        ((4, 5), s[::-1, ::-2]), ((4, 5), s[-1, -1]), ((4, 5), s[0:0]), ((0, 5), s[:, 1]),
        ((2, 3, 4), s[..., None, 1:3]), ((2, 3, 4), s[1, ..., 2]), ((2, 3, 4), s[:, None, 1]),
        ((2, 3, 4), s[..., 1, :]), ((2,) * 8,
         s[0, :, 1, ..., ::-1, 0]), ((), s[None]), ((), s[...]),
    ]
    for shape, spec in specs:
        x = smooth(shape)
        y = x[spec]
        b, e, st, attrs = python_slice(spec if isinstance(spec, tuple) else (spec,))
        for t in ("int32", "int64"):
            index = [np.array(v, t) for v in (b, e, st)]
            g.op(f"stridedslice/{t}", "StridedSlice", [x, *index], [y], attrs=attrs,
                 grad2=len(shape) == 2)
            back = np.zeros(shape)
            dy = smooth(np.shape(y))
            back[spec] = dy
            g.op(f"stridedslicegrad/{t}", "StridedSliceGrad", [np.array(shape, t), *index, dy],
                 [back], attrs=attrs)
    for t in FIXED:
        g.op(f"stridedslicegrad/{t}", "StridedSliceGrad",
             [i32(4), i32(0), i32(4), i32(2), of_type(t, [1, 3])], [of_type(t, [1, 0, 3, 0])])
    x = counting((4, 5))
    g.error("stridedslice/index", "StridedSlice", [x, i32(4), i32(5), i32(1)],
            "index 4 of dimension 0 is outside [-4, 4)", attrs=masks(shrink_axis=1))
    g.error("stridedslice/negative-index", "StridedSlice", [x, i32(-5), i32(-4), i32(1)], "outside",
            attrs=masks(shrink_axis=1))
    g.error("stridedslice/stride", "StridedSlice", [x, i32(0), i32(1), i32(0)], "stride 0 is 0")
    g.error("stridedslice/shrink", "StridedSlice", [x, i32(1), i32(2), i32(-1)], "shrink",
            attrs=masks(shrink_axis=1))
    g.error("stridedslice/many", "StridedSlice", [x, i32(0, 0, 0), i32(1, 1, 1), i32(1, 1, 1)],
            "3 indices for an input of rank 2")
    g.error("stridedslice/lengths", "StridedSlice", [x, i32(0, 0), i32(1), i32(1, 1)],
            "same length|end must be")
    g.error("stridedslice/ellipses", "StridedSlice", [x, i32(0, 0), i32(1, 1), i32(1, 1)],
            "more than one ellipsis", attrs=masks(ellipsis=3))
    g.error("stridedslicegrad/shape", "StridedSliceGrad",
            [i32(4), i32(0), i32(4), i32(2), counting((3,))], "dy is [3], but the slice is [2]")


def joins(g):
    for t in FIXED:
        x = np.arange(6).reshape(2, 3)
        g.op(f"concat/{t}", "Concat", [np.int32(0), of_type(t, x), of_type(t, x[:1])],
             [of_type(t, np.concatenate([x, x[:1]]))])
        g.op(f"pack/{t}", "Pack", [of_type(t, x), of_type(t, x)], [of_type(t, np.stack([x, x]))])
        g.op(f"split/{t}", "Split", [np.int32(1), of_type(t, x)],
             [of_type(t, x[:, i:i + 1]) for i in range(3)], attrs={"num_split": 3})
        g.op(f"unpack/{t}", "Unpack", [of_type(t, x)], [of_type(t, x[0]), of_type(t, x[1])],
             attrs={"num": 2})
    for shapes_, axis in (([(3,), (4,)], 0), ([(3,), (0,), (2,)], 0), ([(2, 3), (2, 1)], 1),
                          ([(2, 3), (2, 3), (2, 3)], -1), ([(1, 3), (4, 3)], -2),
                          ([(2, 2, 3), (2, 5, 3)], 1), ([(0, 3), (0, 3)], 1),
                          ([(2,) * 8, (2, 2, 2, 3, 2, 2, 2, 2)], 3), ([(1,)] * 20, 0),
                          ([(1, 2)] * 17, 1)):
        xs = [smooth(s) for s in shapes_]
        g.op("concat", "Concat", [np.int32(axis), *xs], [np.concatenate(xs, axis)],
             grad2=len(xs) == 3)
    x = counting((2, 3))
    g.error("concat/scalars", "Concat", [np.int32(0), np.float32(1), np.float32(2)],
            "scalars cannot be joined")
    g.error("concat/ranks", "Concat", [np.int32(0), x, x[0]], "same rank|cannot be joined")
    g.error("concat/shapes", "Concat", [np.int32(0), x,
            counting((2, 4))], "differ|cannot be joined")
    g.error("concat/axis", "Concat", [np.int32(2), x, x], "concat_dim 2 is outside [-2, 2)")
    g.error("concat/one", "Concat", [np.int32(0), x], "at least 2")
    for shape, axis, n in (((6,), 0, 2), ((6,), 0, 1), ((4, 6), 1, 3), ((4, 6), -2, 4),
                           ((0, 6), 1, 2), ((0,), 0, 3), ((2,) * 8, 5, 2), ((2, 3, 5), 2, 5)):
        x = smooth(shape)
        g.op("split", "Split", [np.int32(axis), x], np.split(x, n, axis), attrs={"num_split": n})
    g.error("split/unequal", "Split", [np.int32(0), counting((5,))], "equal parts",
            attrs={"num_split": 2})
    g.error("split/absurd", "Split", [np.int32(0), counting((0,))], "at most 1048576 are possible",
            attrs={"num_split": 10**12})
    g.error("split/axis", "Split", [np.int32(1), counting((4,))], "outside", attrs={"num_split": 2})
    g.error("split/scalar", "Split", [np.int32(0), np.float32(1)], "rank|outside",
            attrs={"num_split": 1})
    for shape, n, axis in (((), 3, 0), ((), 1, -1), ((2, 3), 2, 0), ((2, 3), 2, 1), ((2, 3), 2, 2),
                           ((2, 3), 4, -1), ((0, 2), 2, 1), ((2,) * 7, 2, 3)):
        xs = [smooth(shape) for _ in range(n)]
        g.op("pack", "Pack", xs, [np.stack(xs, axis)], attrs={"axis": axis})
        y = np.stack(xs, axis)
        g.op("unpack", "Unpack", [y], xs, attrs={"num": n, "axis": axis})
    g.op("unpack/none", "Unpack", [np.zeros((0, 3))], [], attrs={"num": 0},
         nograd="there is no output")
    g.error("pack/shapes", "Pack", [x[0], x[0, 0]], "same shape")
    g.error("pack/axis", "Pack", [counting((2,))] * 2, "axis 2 is outside", attrs={"axis": 2})
    g.error("pack/rank", "Pack", [counting((1,) * 8)], "more than 8")
    g.error("unpack/num", "Unpack", [counting((3, 2))], "is not num", attrs={"num": 2})
    g.error("unpack/axis", "Unpack", [counting((3, 2))], "outside", attrs={"num": 2, "axis": 2})
    g.error("unpack/scalar", "Unpack", [np.float32(2)], "rank|outside", attrs={"num": 1})
    g.op("concatoffset", "ConcatOffset", [np.int32(1), i32(2, 3, 5), i32(2, 4, 5), i32(2, 0, 5)],
         [i32(0, 0, 0), i32(0, 3, 0), i32(0, 7, 0)])
    g.op("concatoffset/negative", "ConcatOffset", [np.int32(-1), i32(2, 3), i32(2, 4)],
         [i32(0, 0), i32(0, 3)])
    g.error("concatoffset/shapes", "ConcatOffset", [np.int32(0), i32(2, 3), i32(2, 4)],
            "differ in dimension 1")
    g.error("concatoffset/ranks", "ConcatOffset", [np.int32(0), i32(2, 3), i32(2)], "same rank")


def tiles(g):
    every_type(g, "Tile", lambda x: np.tile(x, (2, 1)), [i32(2, 1)])
    for shape, m in (((), []), ((3,), [4]), ((3,), [0]), ((3,), [1]), ((2, 3), [3, 2]),
                     ((2, 1), [1, 4]), ((1, 3), [5, 1]), ((0, 3), [2, 2]), ((2, 1, 2), [2, 3, 1]),
                     ((1, 2, 1, 2, 1, 2, 1, 2), [2, 1, 1, 2, 1, 1, 1, 2]),
                     ((2, 1, 2, 1, 1, 2), [1, 2, 2, 2, 1, 2])):
        x = smooth(shape)
        for t in ("int32", "int64"):
            g.op(f"tile/{t}", "Tile", [x, np.array(m, t)], [np.tile(x, m) if m else x])
        if 0 not in m:
            for t in ("float32", "float64", "int32", "int64"):
                dy = counting(np.tile(x, m).shape if m else (), t)
                seen = dy.reshape([v for pair in zip(m, shape) for v in pair])
                y = seen.sum(tuple(range(0, 2 * len(m), 2)), dtype=t)
                g.op(f"tilegrad/{t}", "TileGrad", [dy, i32(*m), i32(*shape)], [y])
    x = counting((2, 3))
    g.error("tile/negative", "Tile", [x, i32(1, -1)], "multiple 1 is negative")
    g.error("tile/length", "Tile", [x, i32(1)], "multiples")
    g.error("tilegrad/shape", "TileGrad", [x, i32(2, 1), i32(2, 3)], "is not made of repetitions")
    for t in FIXED:
        g.op(f"fill/{t}", "Fill", [i32(2, 3), of_type(t, 3)], [of_type(t, np.full((2, 3), 3))])
    for shape in ((), (0,), (5,), (2, 0, 3), (2,) * 8):
        for t in ("int32", "int64"):
            g.op("fill", "Fill", [np.array(shape, t), np.float64(1.5)], [np.full(shape, 1.5)])
    g.error("fill/negative", "Fill", [i32(2, -3), np.float32(1)], "negative|is -3|impossible")
    g.error("fill/open", "Fill", [i32(-1), np.float32(1)], "negative|impossible")
    g.error("fill/vector", "Fill", [i32(2), counting((2,))], "scalar")
    g.error("fill/rank", "Fill", [np.ones(9, np.int32), np.float32(1)], "at most 8|9 dimensions")
    for t in ("int32", "int64", "float32", "float64"):
        for a, b, d in ((0, 5, 1), (3, 18, 4), (5, 0, -2), (3, 3, 1), (-4, 4, 3), (0, 1, 10)):
            g.op(f"range/{t}", "Range", [np.array(v, t)
                 for v in (a, b, d)], [np.arange(a, b, d, t)])
        g.error(f"range/{t}-away", "Range", [np.array(v, t) for v in (0, 5, -1)], "leads away")
        g.error(f"range/{t}-zero", "Range", [np.array(v, t) for v in (0, 5, 0)],
                "delta is 0|no range goes")
    for a, b, d in ((0, 1, 0.25), (0.5, -1.3, -0.3), (0, 1, 0.3)):
        g.op("range/float64-fraction", "Range", [np.float64(v) for v in (a, b, d)],
             [a + np.arange(int(np.ceil((b - a) / d))) * d])
    g.error("range/nan", "Range", [np.float32(v) for v in (0, NAN, 1)], "no range goes")
    g.error("range/vector", "Range", [i32(0, 1), np.int32(2), np.int32(1)], "scalar")
    g.error("range/long", "Range", [np.int64(v) for v in (-2**62, 2**62, 1)], "too long")


def orders(g):
    every_type(g, "Transpose", lambda x: x.T, [i32(1, 0)])
    cases = [((), []), ((3,), [0]), ((3, 5), [1, 0]), ((3, 5), [0, 1]), ((0, 4), [1, 0]),
             ((2, 3, 4, 5), [0, 2, 3, 1]), ((2, 3, 4, 5), [0, 3, 1, 2]),
             ((2, 1, 3, 1, 2, 1, 1, 2), [7, 6, 5, 4, 3, 2, 1, 0]),
             ((2, 1, 3, 1, 2, 1, 1, 2), [3, 0, 7, 1, 6, 2, 5, 4])]
    cases += [((2, 3, 4), p) for p in itertools.permutations(range(3))]
    for shape, perm in cases:
        x = smooth(shape)
        for t in ("int32", "int64"):
            g.op(f"transpose/{t}", "Transpose", [x, np.array(perm, t)], [x.transpose(perm)])
    for t in ("uint8", "int16", "float32", "float64"):  # several tiles, and what is left of them
        x = (np.arange(67 * 41) * 7919 % 97).reshape(67, 41).astype(t)
        g.op(f"transpose/large-{t}", "Transpose", [x, i32(1, 0)], [x.T])
    x = counting((2, 3))
    g.error("transpose/twice", "Transpose", [x, i32(1, 1)], "not a permutation")
    g.error("transpose/outside", "Transpose", [x, i32(0, 2)], "not a permutation")
    g.error("transpose/length", "Transpose", [x, i32(0)], "perm")
    for t in ("int32", "int64"):
        for n in (0, 1, 5):
            p = rng.permutation(n).astype(t)
            g.op(f"invertpermutation/{t}", "InvertPermutation", [p], [np.argsort(p).astype(t)])
        g.error("invertpermutation/outside", "InvertPermutation", [np.array([0, 2], t)],
                "element 2 at [1] is outside [0, 2)")
        g.error("invertpermutation/twice", "InvertPermutation", [np.array([1, 1], t)],
                "element 1 occurs twice")
    every_type(g, "Reverse", lambda x: x[:, ::-1], [np.array([False, True])])
    for shape, dims in (((), []), ((5,), [1]), ((5,), [0]), ((2, 3), [1, 0]), ((2, 3), [1, 1]),
                        ((0, 3), [1, 1]), ((2, 3, 4), [0, 1, 0]), ((2,) * 8, [1, 0, 0, 1] * 2)):
        x = smooth(shape)
        y = x[tuple(slice(None, None, -1 if d else 1) for d in dims)]
        g.op("reverse", "Reverse", [x, np.array(dims, bool)], [y])
    g.error("reverse/length", "Reverse", [x, np.array([True])], "dims")


def rows(g):
    for t in FIXED:
        x = np.arange(6).reshape(3, 2)
        g.op(f"gather/{t}", "Gather", [of_type(t, x), i32(2, 0)], [of_type(t, x[[2, 0]])])
    for shape, index in (((5,), 3), ((5,), [0, 4, 4]), ((5, 3), [[1, 2], [0, 0]]), ((5, 3), []),
                         ((3, 0), [1, 2]), ((4, 2, 3), [3, 1, 3]), ((5, 2), 1),
                         ((3,) + (2,) * 7, [2]), ((3, 2), np.ones((1,) * 7, int))):
        x = smooth(shape)
        for t in ("int32", "int64"):
            index = np.array(index, t)
            g.op(f"gather/{t}", "Gather", [x, index], [x[index]], grad2=len(shape) == 2)
    x = counting((4, 2))
    g.error("gather/outside", "Gather", [x, i32(0, 1, 4)], "index 4 at [2] is outside [0, 4)")
    g.error("gather/negative", "Gather", [x, np.array([[0, -1]], np.int64)],
            "index -1 at [0,1] is outside [0, 4)|index -1 at [1] is outside [0, 4)")
    g.error("gather/scalar", "Gather", [np.float32(1), i32(0)], "rank|go together")
    g.error("gather/rank", "Gather", [counting((1,) * 5), np.zeros((1,) * 5, np.int32)],
            "more than 8|go together")
    g.error("gather/empty", "Gather", [np.zeros((0, 2), np.float32), i32(0)], "outside [0, 0)")
    for t in ("float32", "float64", "int32", "int64"):
        for shape, ids, n in (((5,), [0, 2, 2, 0, 1], 4), ((3, 2), [1, 1, 0], 2), ((0, 2), [], 3),
                              ((2, 2, 3), [[0, 1], [3, 0]], 4), ((2,), [0, 0], 1), ((), 2, 3),
                              ((3, 0), [0, 1, 1], 2), ((2,) * 7, [1, 0], 2)):
            x = smooth(shape) if t in ("float32", "float64") else rng.integers(-9, 9, shape)
            for it in ("int32", "int64"):
                ids = np.array(ids, it)
                y = np.zeros((n,) + shape[ids.ndim:])
                np.add.at(y, ids, x)
                g.op(f"unsortedsegmentsum/{t}", "UnsortedSegmentSum",
                     [x.astype(t) if shape else np.array(x, t), ids, np.int32(n)], [y.astype(t)],
                     tol=1e-5 if t == "float32" else None)
    g.error("unsortedsegmentsum/outside", "UnsortedSegmentSum", [x, i32(0, 2), np.int32(2)],
            "index 2 at [1] is outside [0, 2)")
    g.error("unsortedsegmentsum/shape", "UnsortedSegmentSum", [x, i32(0), np.int32(2)],
            "does not begin")
    g.error("unsortedsegmentsum/negative", "UnsortedSegmentSum", [x, i32(0, 1), np.int32(-1)],
            "num_segments is negative")
    for t in FIXED:
        for it in ("uint8", "int32", "int64"):
            g.op(f"onehot/{t}", "OneHot", [np.array([1, 0, 7], it), np.int32(3), of_type(t, 1),
                                           of_type(t, 0)],
                 [of_type(t, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])])
    eye = np.eye(4, dtype=np.float32) * 3 - 1
    for shape, axis in (((), -1), ((0,), -1), ((5,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3), 2),
                        ((2, 3), -2), ((1,) * 7, 3)):
        index = rng.integers(0, 4, shape)
        y = np.moveaxis(eye[index], -1, axis)
        g.op("onehot/axis", "OneHot", [index.astype(np.int64), np.int32(4), np.float32(2),
                                       np.float32(-1)], [y], attrs={"axis": axis})
    g.op("onehot/negative", "OneHot", [i32(-1), np.int32(2), np.float32(1), np.float32(0)],
         [np.zeros((1, 2), np.float32)])
    g.op("onehot/depth-0", "OneHot", [i32(0, 1), np.int32(0), np.float32(1), np.float32(0)],
         [np.zeros((2, 0), np.float32)])
    on = [np.float32(1), np.float32(0)]
    g.error("onehot/depth", "OneHot", [i32(0), np.int32(-1), *on], "depth is negative")
    g.error("onehot/axis-outside", "OneHot", [i32(0), np.int32(2), *on], "axis 3",
            attrs={"axis": 3})
    g.error("onehot/value", "OneHot", [i32(0), np.int32(2), counting((2,)), on[1]], "scalar")


def data_dependent(g):
    for shape in ((), (0,), (7,), (3, 4), (2, 0), (2,) * 8):
        x = np.array(rng.integers(0, 2, shape) > 0)
        y = np.argwhere(x) if shape else np.zeros((int(x), 0), np.int64)
        g.op("where", "Where", [x], [y])
    g.op("where/none", "Where", [np.zeros((2, 3), bool)], [np.zeros((0, 2), np.int64)])
    g.op("where/true", "Where", [np.array(True)], [np.zeros((1, 0), np.int64)])
    for t in [t for t in FIXED if t != "complex64"]:
        values = np.array([3, 1, 3, 2, 1, 5]) if t != "bool" else np.array([1, 0, 1, 1, 0, 0])
        y = list(dict.fromkeys(values.tolist()))
        for it in ("int32", "int64"):
            idx = np.array([y.index(v) for v in values], it)
            g.op(f"unique/{t}", "Unique", [of_type(t, values)], [of_type(t, y), idx],
                 attrs={"out_idx": it})
    g.op("unique/empty", "Unique", [np.zeros(0, np.float32)], [np.zeros(0, np.float32), i32()])
    g.op("unique/zeros", "Unique", [np.array([0.0, -0.0, 1, -1])], [np.array([0.0, 1, -1]),
                                                                   i32(0, 0, 1, 2)])
    g.op("unique/nan", "Unique", [np.array([NAN, 1, NAN, INF, -INF, INF], np.float32)],
         [np.array([NAN, 1, NAN, INF, -INF], np.float32), i32(0, 1, 2, 3, 4, 3)])
    many = np.arange(500) * 7919 % 97
    y = list(dict.fromkeys(many.tolist()))
    g.op("unique/many", "Unique", [many.astype(np.int64)],
         [np.array(y, np.int64), i32(*[y.index(v) for v in many])])
    g.error("unique/matrix", "Unique", [counting((2, 2))], "must be a vector")


def partitions(g):
    for t in FIXED:
        x = np.arange(8).reshape(4, 2)
        g.op(f"dynamicpartition/{t}", "DynamicPartition", [of_type(t, x), i32(1, 0, 1, 1)],
             [of_type(t, x[[1]]), of_type(t, x[[0, 2, 3]])], attrs={"num_partitions": 2})
        g.op(f"dynamicstitch/{t}", "DynamicStitch",
             [i32(2, 0), i32(1), of_type(t, x[:2]), of_type(t, x[2:3])],
             [of_type(t, x[[1, 2, 0]])])
    for shape, p, n in (((6,), [0, 2, 0, 2, 2, 0], 3), ((0,), [], 2), ((3, 2), [0, 0, 0], 1),
                        ((2, 2, 3), [[0, 1], [1, 0]], 2), ((), 1, 2), ((2, 0), [1, 0], 2),
                        ((2,) * 8, [1, 0], 2)):
        x, p = smooth(shape), np.array(p, np.int32)
        g.op("dynamicpartition", "DynamicPartition", [x, p], [x[p == i] for i in range(n)],
             attrs={"num_partitions": n})
    x = counting((2, 2))
    g.error("dynamicpartition/outside", "DynamicPartition", [x, i32(0, 2)],
            "index 2 at [1] is outside [0, 2)", attrs={"num_partitions": 2})
    g.error("dynamicpartition/shape", "DynamicPartition", [x, i32(0, 1, 0)], "does not begin",
            attrs={"num_partitions": 2})
    a, b = smooth((2, 3)), smooth((2, 2, 3))
    y = np.zeros((7, 3))
    y[[1, 6]] = a
    y[[0, 3]] = b[0]
    y[[2, 4]] = b[1]
    g.op("dynamicstitch/gap", "DynamicStitch", [i32(1, 6), i32(0, 3, 2, 4).reshape(2, 2), a, b],
         [y])
    g.op("dynamicstitch/last-wins", "DynamicStitch",
         [i32(0, 1), i32(1, 1), counting((2,)), counting((2,)) + 5],
         [np.array([0, 6], np.float32)])
    rows, numbers = Like("float32", (500, 3), 997, 1, 0), Like("int32", (500,), 5, 1, 0)
    wanted = [rows.array[numbers.array == i] for i in range(5)]
    g.op("dynamicpartition/long", "DynamicPartition", [rows, numbers], wanted,
         attrs={"num_partitions": 5})
    numbers, more = Like("int32", (500,), 991, 1, 0), Like("int32", (30, 20), 701, 1, 2)
    rest = Like("float32", (30, 20, 3), 499, 1, 1)
    y = np.zeros((991, 3), np.float32)
    y[numbers.array] = rows.array
    y[more.array.ravel()] = rest.array.reshape(600, 3)
    g.op("dynamicstitch/long", "DynamicStitch", [numbers, more, rows, rest],
         [y[:1 + max(numbers.array.max(), more.array.max())]])
    g.op("dynamicstitch/scalars", "DynamicStitch", [np.int32(1), np.int32(0), np.float64(3),
                                                    np.float64(4)], [np.array([4.0, 3.0])])
    g.op("dynamicstitch/empty", "DynamicStitch", [i32(), np.zeros((0, 2))], [np.zeros((0, 2))])
    g.error("dynamicstitch/negative", "DynamicStitch", [i32(-1), counting((1,))],
            "index -1 at [0] is outside")
    g.error("dynamicstitch/rows", "DynamicStitch", [i32(0), i32(1), counting((1, 2)),
                                                   counting((1, 3))], "rows unlike")
    g.error("dynamicstitch/shape", "DynamicStitch", [i32(0, 1), counting((3,))], "does not begin")


def large(g):
    """So large that several threads share the work; every 9973th element is looked at."""
    x = Like("float32", (300, 700), 32749, 0.25, -3)
    flat = "flat = Const() {dtype=int32, value=[-1]}\nv = Reshape(y, flat)\n" \
        "zero = Const() {dtype=int32, value=[0]}\nstep = Const() {dtype=int32, value=[9973]}\n" \
        "s = StridedSlice(v, zero, zero, step) {begin_mask=1, end_mask=1}\n"

    def sample(name, ops, text, y):
        g.graph(f"large/{name}", "x = Placeholder() {dtype=float32}\n" + text + flat,
                [("", {"x": x}, {"s": np.ascontiguousarray(y).reshape(-1)[::9973]})], ops=ops)

    def const(name, value, t="int32"):
        return f"{name} = Const() {{dtype={t}, value={value}}}\n"

    a = x.array
    sample("transpose", "Transpose", const("p", "[1,0]") + "y = Transpose(x, p)\n", a.T)
    sample("reverse", "Reverse", const("d", "[true,true]", "bool") + "y = Reverse(x, d)\n",
           a[::-1, ::-1])
    sample("slice", "Slice", const("b", "[1,3]") + const("n", "[298,-1]") + "y = Slice(x, b, n)\n",
           a[1:299, 3:])
    sample("pad", "Pad", const("p", "[[1,2],[3,0]]") + "y = Pad(x, p)\n",
           np.pad(a, ((1, 2), (3, 0))))
    sample("tile", "Tile", const("m", "[2,3]") + "y = Tile(x, m)\n", np.tile(a, (2, 3)))
    for axis in (0, 1):
        sample(f"concat-{axis}", "Concat", const("c", axis) + "y = Concat(c, x, x)\n",
               np.concatenate([a, a], axis))
        sample(f"pack-{axis}", "Pack", f"y = Pack(x, x) {{axis={axis}}}\n", np.stack([a, a], axis))
        sample(f"split-{axis}", "Split", const("c", axis) + "p = Split(c, x) {num_split=2}\n"
               "y = Identity(p:1)\n", np.split(a, 2, axis)[1])
    sample("fill", "Fill", const("n", "[300000]") + const("value", 2.5, "float32") +
           "y = Fill(n, value)\n",
           np.full(300000, 2.5, np.float32))
    rows_ = np.arange(1000) * 7919 % 300
    text = const("i", str(rows_.tolist()).replace(" ", ""))
    sample("gather", "Gather", text + "y = Gather(x, i)\n", a[rows_])
    ids = np.arange(300) * 7919 % 37
    total = np.zeros((37, 700), np.float32)
    np.add.at(total, ids, a)
    sample("segments", "UnsortedSegmentSum", const("i", str(ids.tolist()).replace(" ", "")) +
           const("n", 37) + "y = UnsortedSegmentSum(x, i, n)\n", total)


with Golden("array") as g:
    identities(g)
    check_numerics(g)
    shapes(g)
    reshapes(g)
    large(g)
with Golden("array_slice") as g:
    slices(g)
    strided_slices(g)
with Golden("array_join") as g:
    joins(g)
    tiles(g)
    orders(g)
with Golden("array_rows") as g:
    rows(g)
    data_dependent(g)
    partitions(g)
