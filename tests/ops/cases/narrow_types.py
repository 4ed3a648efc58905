# SPDX-License-Identifier: Apache-2.0
"""Types that are stored in few bits, and unsigned ones: floats of 16 bits, and what integers do at
the ends of their range. Reference: exact integers, cut to the type's bits, and NumPy in float64.

Of ops whose results are smooth, 16 bits are held against the cases of float64: these scripts come
first."""
import re

import numpy as np

from golden import FOLDER, Golden, rng, typed


HALVES = ["float16", "bfloat16"]
SIGNED = ["int8", "int16"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
WHOLE = SIGNED + UNSIGNED
NEW = HALVES + WHOLE
LIMITS = {t: (int(np.iinfo(t).min), int(np.iinfo(t).max)) for t in WHOLE}

# ---- smooth results: the cases of float64 ----

# op: how many cases; inputs are rounded to 16 bits, hence the tolerance
SMOOTH = {
    "math_unary": "*",  # all that take floats alone
    "nn_pool": "AvgPool AvgPoolGrad",
    "nn_conv": "Conv2D Conv2DBackpropFilter Conv2DBackpropInput",
    "nn_dense": "Elu EluGrad Softplus SoftplusGrad L2Loss Softmax LogSoftmax "
                "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits",
    "nn_norm": "FusedBatchNorm FusedBatchNormGrad LRN LRNGrad",
    "matrix": "BatchMatMul MatMul Cholesky CholeskyGrad MatrixDeterminant MatrixInverse "
              "MatrixSolve MatrixTriangularSolve",
    "train": "ApplyAdadelta ApplyAdagrad ApplyAdam ApplyFtrl ApplyGradientDescent ApplyMomentum "
             "ApplyRMSProp",
    "nn_local": "LocallyConnected2D LocallyConnected2DBackpropFilter LocallyConnected2DBackpropInput",
}
# not declared; or 0.999, which a case of Adam has, is 1
EXACT = "Cast Ceil Floor IsNan LogicalNot".split()
NO_BFLOAT16 = "Cholesky CholeskyGrad MatrixDeterminant MatrixInverse MatrixSolve ApplyAdam".split()
TOLERANCE = {"float16": 8e-3, "bfloat16": 6e-2}
CASES = 2


def read_cases(family):
    with open(f"{FOLDER}/{family}.txt", encoding="utf-8") as f:
        return [block.strip().split("\n") for block in f.read().split("\n\n")[1:]]


def is_fit(case, op):
    """A small one of float64 with values that 16 bits have room for."""
    text = "\n".join(case)
    literals = re.findall(r"^(?:in|out|feed \S+|fetch \S+) \w+\[[\d,]*\] ([-\d.e,[\]]+)$", text, re.M)
    numbers = [float(x) for x in re.split(r"[][,]+", ",".join(literals)) if x]
    return (f"op {op}" in case and "float64[" in text and "error " not in text and
            not case[0].endswith("-nothing") and len(text) < 2600 and len(numbers) > 4 and np.all(np.isfinite(numbers)) and
            max(map(abs, numbers)) < 1000)


def float_ops(cases):
    """Ops in their order, but those whose results of 16 bits are exact: they are held against that."""
    types = {}
    for case in cases:
        types.setdefault(case[1].split()[1], set()).update(re.findall(r"^in (\w+)", "\n".join(case), re.M))
    return [op for op, has in types.items() if "int32" not in has and op not in EXACT]


def smooth(g):
    for family, ops in SMOOTH.items():
        cases = read_cases(family)
        for op in float_ops(cases) if ops == "*" else ops.split():
            fit = sorted((c for c in cases if is_fit(c, op)), key=lambda c: len("".join(c)))
            step = max(1, len(fit) // CASES)
            assert fit, op
            for t in ["float16"] if op in NO_BFLOAT16 else HALVES:
                for case in fit[::step][:CASES]:
                    g.start(f"{op}/{t}/smooth")
                    lines = [x.replace("float64", t) for x in case[1:-1]
                             if x.split()[0] not in ("tol", "grad", "grad2", "nograd", "symmetric")]
                    at = 1 + sum(x.startswith("attr ") for x in lines)
                    while lines[at:] and lines[at].startswith("in "):
                        at += 1
                    while lines[at:] and lines[at].startswith("out "):
                        at += 1
                    g.lines += lines[:at] + [f"tol {TOLERANCE[t]:g}"] + lines[at:] + ["end"]


# ---- whole numbers, and quarters in 16 bits ----

def quarters(shape, low=-4, high=4):
    return rng.integers(4 * low, 4 * high + 1, shape) / 4


def some(t, shape):
    """Any values of a type, its ends among them."""
    if t in HALVES:
        return quarters(shape)
    low, high = LIMITS[t]
    flat = [int(x) for x in rng.integers(max(low, -2**40), min(high, 2**40) + 1, int(np.prod(shape)))]
    for k, end in enumerate((low, high, 0, 1, high - 1, low + 1)):
        if k < len(flat):
            flat[k] = end
    return np.array(flat, object).reshape(shape)


def small(t, shape, low=0, high=9):
    return quarters(shape) if t in HALVES else rng.integers(low, high, shape).astype(object)


def wrap(t, values):
    """Exact results in a type: integers keep their lowest bits."""
    if t in HALVES:
        return typed(t, np.asarray(values, np.float64))
    low, high = LIMITS[t]
    cut = np.vectorize(lambda v: (int(v) - low) % (high - low + 1) + low, otypes=[object])
    values = np.asarray(values, object)
    return np.array(cut(values) if values.size else values).astype(t).reshape(values.shape)


def truncated(x, y):
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


each = np.vectorize(lambda f, *x: f(*x), otypes=[object])


def binary(g):
    ops = {"Add": lambda x, y: x + y, "Sub": lambda x, y: x - y, "Mul": lambda x, y: x * y,
           "Maximum": max, "Minimum": min}
    for t in NEW:
        x, y = some(t, (3, 20)), some(t, (20,))
        x[1] = np.roll(x[1], 7)
        divisor = np.where(y == 0, 3, y)
        for op, f in ops.items():
            g.op(f"{op}/{t}", op, [wrap(t, x), wrap(t, y)], [wrap(t, each(f, x, y))])
            g.op(f"{op}/{t}/scalar", op, [wrap(t, x[0]), wrap(t, y[1])],
                 [wrap(t, each(f, x[0], y[1]))])
        div = truncated if t in WHOLE else lambda x, y: x / y
        g.op(f"Div/{t}", "Div", [wrap(t, x), wrap(t, divisor)], [wrap(t, each(div, x, divisor))])
        g.op(f"FloorDiv/{t}", "FloorDiv", [wrap(t, x), wrap(t, divisor)],
             [wrap(t, each(lambda x, y: x // y, x, divisor))])
        if t in WHOLE:
            g.op(f"Mod/{t}", "Mod", [wrap(t, x), wrap(t, divisor)],
                 [wrap(t, each(lambda x, y: x % y, x, divisor))])
        for op in ("Div", "FloorDiv", "Mod"):
            if t in WHOLE:
                g.error(f"{op}/{t}/zero", op, [wrap(t, x), wrap(t, x[0] * 0)],
                        "integer division by zero")
        for op, f in {"Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">=",
                      "Equal": "==", "NotEqual": "!="}.items():
            z = np.where(rng.integers(0, 2, x.shape) == 1, x, np.roll(x, 1))
            out = each(lambda a, b: eval(f"a {f} b"), x, z).astype(bool)
            g.op(f"{op}/{t}", op, [wrap(t, x), wrap(t, z)], [out])
        condition = rng.integers(0, 2, x.shape).astype(bool)
        g.op(f"Select/{t}", "Select", [condition, wrap(t, x), wrap(t, -x)],
             [wrap(t, np.where(condition, x, -x))])
        n = [wrap(t, v) for v in (x[0], x[1], x[2])]
        g.op(f"AddN/{t}", "AddN", n, [wrap(t, x[0] + x[1] + x[2])])
    for t in HALVES + SIGNED:
        x, y = small(t, (40,), -5, 6), np.abs(small(t, (40,), 0, 9)) // 1
        g.op(f"Pow/{t}", "Pow", [wrap(t, x), wrap(t, y)], [wrap(t, each(lambda a, b: a ** b, x, y))])
        if t in SIGNED:
            g.error(f"Pow/{t}/negative", "Pow", [wrap(t, x), wrap(t, x)], "negative power")
    for t in HALVES:
        x, y = quarters((40,)), np.where(quarters((40,)) > 0, 1.5, -0.75)
        g.op(f"Mod/{t}", "Mod", [wrap(t, x), wrap(t, y)], [wrap(t, np.mod(x, y))])
        g.op(f"SquaredDifference/{t}", "SquaredDifference", [wrap(t, x), wrap(t, y)],
             [wrap(t, (x - y) ** 2)])
    z = np.array([1 + 2j, 1 + 2j, 0j, 3 + 1j], np.complex64)
    w = np.array([1 + 2j, 1 - 2j, complex(-0.0, -0.0), 1j], np.complex64)
    g.op("Equal/complex64", "Equal", [z, w], [np.array([True, False, True, False])])
    g.op("NotEqual/complex64", "NotEqual", [z, w], [np.array([False, True, False, True])])
    g.op("Select/complex64", "Select", [np.array([True, False, True, False]), z[:1], w],
         [np.array([z[0], w[1], z[0], w[3]])])
    # once rounded, to even: 256 is the first integer whose successor bfloat16 lacks
    g.op("Add/bfloat16/ties", "Add", [typed("bfloat16", [256.0, 258, 256]),
                                      typed("bfloat16", [1.0, 1, 1.0078125])],
         [typed("bfloat16", [256.0, 260, 258])], tol=0)
    g.op("Add/float16/ties", "Add", [typed("float16", [2048.0, 2050, 65504]),
                                     typed("float16", [1.0, 1, 16])],
         [typed("float16", [2048.0, 2052, np.inf])], tol=0)


def unary(g):
    ops = {"Neg": lambda x: -x, "Abs": abs, "Sign": lambda x: (x > 0) - (x < 0), "Round": round,
           "Square": lambda x: x * x}
    relu = {"Relu": lambda x: max(x, 0), "Relu6": lambda x: min(max(x, 0), 6)}
    for t in NEW:
        x, dy = some(t, (5, 9)), small(t, (5, 9), 0, 100)
        x[2] = small(t, (9,))
        signed = t not in UNSIGNED
        for op, f in {**(ops if signed else {"Square": ops["Square"]}), **relu}.items():
            g.op(f"{op}/{t}", op, [wrap(t, x)], [wrap(t, each(f, x))])
        g.op(f"ReluGrad/{t}", "ReluGrad", [wrap(t, dy), wrap(t, x)], [wrap(t, np.where(x > 0, dy, 0))])
        g.op(f"Relu6Grad/{t}", "Relu6Grad", [wrap(t, dy), wrap(t, x)],
             [wrap(t, np.where((x > 0) & (x < 6), dy, 0))])
    for t in HALVES:
        x = quarters((30,))
        for op, f in (("Ceil", np.ceil), ("Floor", np.floor)):
            g.op(f"{op}/{t}", op, [wrap(t, x)], [wrap(t, f(x))])
        x[3:6] = np.inf, np.nan, -np.inf
        g.op(f"IsNan/{t}", "IsNan", [wrap(t, x)], [np.isnan(x)])
        g.op(f"InTopK/{t}", "InTopK", [wrap(t, [[1, 2, 1.5], [1, 2, np.inf]]),
                                       np.array([2, 1], np.int32)], [np.array([True, False])],
             attrs={"k": 2})
        for op, f in (("Relu", lambda x: np.where(x < 0, 0, x)), ("Square", np.square)):
            g.op(f"{op}/{t}/special", op, [wrap(t, x)], [wrap(t, f(x))])
    g.op("Cast/bfloat16", "Cast", [typed("bfloat16", [1.5, -2, 300, np.nan])],
         [np.array([1, -2, 127, 0], np.int8)], attrs={"DstT": "int8"})


def reductions(g):
    def mean(x, axis):
        total = x.sum(axis)
        n = x.size // max(1, np.size(total))
        return each(lambda v: truncated(v, n), total) if x.dtype == object else total / n
    ops = {"Sum": lambda x, a: x.sum(a), "Prod": lambda x, a: x.prod(a), "Mean": mean,
           "Max": lambda x, a: x.max(a), "Min": lambda x, a: x.min(a)}
    for t in NEW:
        for op, f in ops.items():
            for label, axis in (("rows", 1), ("columns", 0), ("all", (0, 1))):
                x = some(t, (4, 20))
                if op == "Prod":
                    x = some(t, (4, 5)) if t in WHOLE else np.abs(quarters((4, 5))) + 0.5
                if op == "Mean" and t in ("uint64",):
                    x = x // 2**16
                g.op(f"{op}/{t}/{label}", op, [wrap(t, x), np.array(axis, np.int32)],
                     [wrap(t, f(x, axis))])
        low, high = LIMITS.get(t, (-np.inf, np.inf))
        for op, nothing in (("Sum", 0), ("Prod", 1), ("Max", low), ("Min", high)):
            g.op(f"{op}/{t}/nothing", op, [wrap(t, np.zeros((2, 0))), np.int32(1)],
                 [wrap(t, np.array([nothing] * 2, object if t in WHOLE else float))])
        x = some(t, (6, 7))
        for op, f in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
            g.op(f"{op}/{t}", op, [wrap(t, x), np.int32(1)], [f(x, 1)])
        for op, f in (("Cumsum", np.cumsum), ("Cumprod", np.cumprod)):
            y = quarters((5, 4), -2, 2) if t in HALVES else x
            g.op(f"{op}/{t}", op, [wrap(t, y), np.int32(0)], [wrap(t, f(y, 0))])
        order = np.argsort([-v for v in x.ravel()], kind="stable")[:9]
        g.op(f"TopKV2/{t}", "TopKV2", [wrap(t, x.ravel()), np.int32(9)],
             [wrap(t, x.ravel()[order]), order.astype(np.int32)])
        ids = np.array([2, 0, 2, 2, 0, 2], np.int32)
        sums = np.array([x[ids == k].sum(0) if k in ids else x[0] * 0 for k in range(4)])
        g.op(f"UnsortedSegmentSum/{t}", "UnsortedSegmentSum", [wrap(t, x), ids, np.int32(4)],
             [wrap(t, sums)])
        g.op(f"TileGrad/{t}", "TileGrad", [wrap(t, x), np.array([3, 1], np.int32),
                                           np.array([2, 7], np.int32)],
             [wrap(t, x[:2] + x[2:4] + x[4:])])
        g.op(f"BiasAdd/{t}", "BiasAdd", [wrap(t, x), wrap(t, x[0])], [wrap(t, x + x[0])])
        g.op(f"BiasAddGrad/{t}", "BiasAddGrad", [wrap(t, x)], [wrap(t, x.sum(0))])
    # many terms: sums are carried in float32, not in the type
    ones = np.ones((600,))
    g.op("Sum/bfloat16/many", "Sum", [wrap("bfloat16", ones), np.int32(0)],
         [wrap("bfloat16", np.float64(600))], tol=0)


def ranges(g):
    for t in HALVES + SIGNED + UNSIGNED[1:]:
        low, high = LIMITS.get(t, (-3, 5))
        steps = [(0, 10, 3)] + ([(-2, 3.5, 0.5)] if t in HALVES else [(high - 9, high, 2)])
        steps += [] if t in UNSIGNED else [(5, low + 2 if t == "int8" else -5, -4)]
        for start, limit, delta in steps:
            n = int(np.ceil((limit - start) / delta)) if t in HALVES else \
                -((start - limit) // delta) if delta > 0 else -((limit - start) // -delta)
            out = np.array([start + k * delta for k in range(n)], object)
            g.op(f"Range/{t}", "Range", [wrap(t, np.array(v, object)) for v in (start, limit, delta)],
                 [wrap(t, out)])
    g.error("Range/uint64/away", "Range", [np.uint64(2**63), np.uint64(1), np.uint64(1)],
            "leads away from")


def matrices(g):
    for t in UNSIGNED:
        a, b = some(t, (7, 5)), some(t, (5, 9))
        for ta in (False, True):
            for tb in (False, True):
                g.op(f"MatMul/{t}", "MatMul", [wrap(t, a.T if ta else a), wrap(t, b.T if tb else b)],
                     [wrap(t, a.dot(b))],
                     attrs={"transpose_a": str(ta).lower(), "transpose_b": str(tb).lower()})
    for t in NEW + ["bool", "complex64"]:
        x = rng.integers(1, 9, (3, 4))
        y = x * (np.abs(np.subtract.outer(np.arange(3), np.arange(4))) < 2)
        x, y = (v % 2 if t == "bool" else v for v in (x, y))
        g.op(f"MatrixBandPart/{t}", "MatrixBandPart", [typed(t, x), np.int64(1), np.int64(1)],
             [typed(t, y)])


def pools(g):
    attrs = {"ksize": "[1,2,2,1]", "strides": "[1,2,2,1]", "padding": '"VALID"'}
    for t in NEW + ["int32", "int64"]:
        if t in ("int32", "int64"):
            LIMITS[t] = (int(np.iinfo(t).min), int(np.iinfo(t).max))
        flat = some(t, (2 * 4 * 6 * 3,))
        x = np.array(sorted(set(flat)) * 144)[:144][rng.permutation(144)].reshape(2, 4, 6, 3)
        windows = x.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(2, 2, 3, 3, 4)
        y, at = windows.max(-1), np.argmax(windows, -1)
        dy = small(t, y.shape, 0, 100)
        chosen = np.arange(4) == at[..., None]
        dx = np.where(chosen, dy[..., None], 0).reshape(2, 2, 3, 3, 2, 2)
        dx = dx.transpose(0, 1, 4, 2, 5, 3).reshape(x.shape)
        if t not in ("uint32", "uint64"):
            g.op(f"MaxPool/{t}", "MaxPool", [wrap(t, x)], [wrap(t, y)], attrs=attrs)
        g.op(f"MaxPoolGrad/{t}", "MaxPoolGrad", [wrap(t, x), wrap(t, y), wrap(t, dy)],
             [wrap(t, dx)], attrs=attrs)
        back = small(t, x.shape, 0, 100)
        taken = back.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(2, 2, 3, 3, 4)
        g.op(f"MaxPoolGradGrad/{t}", "MaxPoolGradGrad", [wrap(t, x), wrap(t, y), wrap(t, back)],
             [wrap(t, np.where(chosen, taken, 0).sum(-1))], attrs=attrs)
        if t in ("int32", "int64"):
            del LIMITS[t]


# ---- variables ----

def variables(g):
    for t in NEW:
        n = 300 if t in HALVES else 12  # these in blocks
        w, x = some(t, (5, n)), some(t, (5, n))
        rows = np.array([4, 1, 4], np.int32)
        for op, f in (("Add", lambda a, b: a + b), ("Sub", lambda a, b: a - b)):
            text = f"""
                w = Variable() {{dtype={t}, shape=[5,{n}]}}
                start = Placeholder() {{dtype={t}, shape=[5,{n}]}}
                x = Placeholder() {{dtype={t}, shape=[5,{n}]}}
                init = Assign(w, start)
                y = Assign{op}(w, x)"""
            g.graph(f"Assign{op}/{t}", text,
                    [("init", {"start": wrap(t, w)}, {}),
                     ("", {"x": wrap(t, x)}, {"y": wrap(t, f(w, x))})])
            after = w.copy()
            for k, row in enumerate(rows):
                after[row] = f(after[row], x[k])
            text = text.replace(f"Assign{op}(w, x)", f"Scatter{op}(w, rows, few)") + f"""
                rows = Const() {{dtype=int32, value=[4,1,4]}}
                few = Placeholder() {{dtype={t}, shape=[3,{n}]}}"""
            g.graph(f"Scatter{op}/{t}", text,
                    [("init", {"start": wrap(t, w)}, {}),
                     ("", {"few": wrap(t, x[:3])}, {"y": wrap(t, after)})])


def adam(g):
    """Scalars that 16 bits hold; the variable, its slots and the gradient are rounded to them."""
    beta1, beta2, epsilon, lr = 0.5, 0.75, 2.0**-10, 0.25
    for t in HALVES:
        w, grad = quarters((700,)), quarters((700,))
        m = (1 - beta1) * grad
        v = (1 - beta2) * grad**2
        after = w - lr * np.sqrt(1 - beta2) / (1 - beta1) * m / (np.sqrt(v) + epsilon)
        slots = "".join(f"""
            {name} = Variable() {{dtype={t}, shape=[700]}}
            from_{name} = Placeholder() {{dtype={t}, shape=[700]}}
            init_{name} = Assign({name}, from_{name})""" for name in "wmv")
        scalars = "".join(f"\n s{k} = Const() {{dtype={t}, value={value}}}" for k, value in
                          enumerate((beta1, beta2, lr, beta1, beta2, epsilon)))
        g.graph(f"ApplyAdam/{t}/exact", slots + scalars + f"""
            g = Placeholder() {{dtype={t}, shape=[700]}}
            y = ApplyAdam(w, m, v, s0, s1, s2, s3, s4, s5, g)""",
                [("init_w init_m init_v", {"from_w": wrap(t, w), "from_m": wrap(t, w * 0),
                                           "from_v": wrap(t, w * 0)}, {}),
                 ("", {"g": wrap(t, grad)}, {"y": wrap(t, after)}),
                 ("", {}, {"m": wrap(t, m), "v": wrap(t, v)})])


with Golden("narrow_types") as g, np.errstate(all="ignore"):
    smooth(g)
    binary(g)
    unary(g)
    reductions(g)
    ranges(g)
    matrices(g)
    pools(g)
    variables(g)
    adam(g)
