# SPDX-License-Identifier: Apache-2.0
"""Cases of ops/nn without windows, from NumPy."""
import numpy as np

from golden import FLOATS, NUMBERS, Golden, Like, rng

NAN, INF = np.nan, np.inf
SHAPES = [(), (5,), (0,), (3, 7), (4, 0), (1, 2, 1, 2, 1, 1, 1, 2), (35,)]


def smooth(dtype, *shape):
    """No value near a kink of an activation."""
    x = rng.uniform(-8, 8, shape)
    for kink in (0, 6):
        x = np.where(np.abs(x - kink) < 0.2, x + 0.5, x)
    return np.round(x).astype(dtype) if "int" in dtype else x.astype(dtype)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


FORWARD = {
    "Relu": (NUMBERS, lambda x: np.maximum(x, 0)),
    "Relu6": (NUMBERS, lambda x: np.clip(x, 0, 6)),
    "Elu": (FLOATS, lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x)),
    "Softplus": (FLOATS, softplus),
}
BACKWARD = {
    "ReluGrad": (NUMBERS, lambda g, x: np.where(x > 0, g, 0)),
    "Relu6Grad": (NUMBERS, lambda g, x: np.where((x > 0) & (x < 6), g, 0)),
    "EluGrad": (FLOATS, lambda g, y: np.where(y < 0, g * (y + 1), g)),
    "SoftplusGrad": (FLOATS, lambda g, x: g * sigmoid(x)),
}


def activations(g):
    special = np.array([NAN, INF, -INF, 0.0, -0.0, 1e-30, -1e-30, 100, -100])
    for op, (types, function) in FORWARD.items():
        for dtype in types:
            for shape in SHAPES:
                x = smooth(dtype, *shape)
                g.op(f"{op}/{dtype}", op, [x], [function(x.astype(np.float64)).astype(dtype)],
                     grad2=shape == (5,))
        for dtype in FLOATS:
            with np.errstate(all="ignore"):
                y = function(special)
            if op == "Softplus":
                y[2] = 0.0
                y[1] = INF
            g.op(f"{op}/{dtype}/special", op, [special.astype(dtype)], [y.astype(dtype)], nograd="kinks")
    for op, (types, function) in BACKWARD.items():
        for dtype in types:
            for shape in SHAPES:
                d, x = smooth(dtype, *shape), smooth(dtype, *shape)
                g.op(f"{op}/{dtype}", op, [d, x],
                     [function(d.astype(np.float64), x.astype(np.float64)).astype(dtype)])
        g.error(f"{op}/shapes", op, [np.ones(2), np.ones(3)], "same shape")


def bias(g):
    for dtype in NUMBERS:
        for shape in ((2, 3), (0, 3), (2, 0), (4, 5, 3), (2, 2, 3, 19), (1, 2, 1, 2, 1, 2, 1, 3), (3, 67)):
            for layout in ("NHWC", "NCHW"):
                if layout == "NCHW" and len(shape) < 3:
                    continue
                axis = len(shape) - 1 if layout == "NHWC" else 1
                x, b = smooth(dtype, *shape), smooth(dtype, shape[axis])
                along = [1] * len(shape)
                along[axis] = -1
                rest = tuple(i for i in range(len(shape)) if i != axis)
                attrs = {"data_format": f'"{layout}"'}
                big = x.size > 1000 and dtype != "float32"
                if not big:
                    g.op(f"BiasAdd/{dtype}/{layout}", "BiasAdd", [x, b], [x + b.reshape(along)], attrs,
                         nograd=None if x.size < 200 else "too large")
                    g.op(f"BiasAddGrad/{dtype}/{layout}", "BiasAddGrad", [x],
                         [x.sum(rest, dtype=np.float64).astype(dtype)], attrs,
                         tol=1e-5 if dtype == "float32" else None,
                         nograd=None if x.size < 200 else "too large")
    g.error("BiasAdd/channels", "BiasAdd", [np.ones((2, 3)), np.ones(2)], "channels")
    g.error("BiasAdd/rank", "BiasAdd", [np.ones(3), np.ones(3)], "rank 2")
    g.error("BiasAdd/bias", "BiasAdd", [np.ones((3, 3)), np.ones((3, 1))], "vector")
    g.error("BiasAddGrad/rank", "BiasAddGrad", [np.ones(3)], "rank 2")
    g.error("BiasAddGrad/nchw", "BiasAddGrad", [np.ones((3, 3))], "rank 3", {"data_format": '"NCHW"'})


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def softmaxes(g):
    for dtype in FLOATS:
        for shape in ((3, 4), (1, 1), (5,), (0, 3), (3, 0), (2, 35), (2, 3, 2), (1, 2, 1, 2, 1, 2, 1, 5)):
            x = rng.uniform(-4, 4, shape).astype(dtype)
            y = log_softmax(x.astype(np.float64)) if x.size else x
            g.op(f"Softmax/{dtype}", "Softmax", [x], [np.exp(y).astype(dtype)], grad2=shape == (3, 4))
            g.op(f"LogSoftmax/{dtype}", "LogSoftmax", [x], [y.astype(dtype)], grad2=shape == (3, 4))
        large = np.array([[1000, 999, -1000], [NAN, 0, 0], [-1000, -1000, -1000]], dtype)
        with np.errstate(all="ignore"):
            y = log_softmax(large.astype(np.float64))
            g.op(f"Softmax/{dtype}/special", "Softmax", [large], [np.exp(y).astype(dtype)], nograd="NaN")
            g.op(f"LogSoftmax/{dtype}/special", "LogSoftmax", [large], [y.astype(dtype)], nograd="NaN")
        for b, n in ((3, 4), (1, 1), (0, 3), (2, 37), (5, 10)):
            x = rng.uniform(-4, 4, (b, n)).astype(dtype)
            labels = np.exp(log_softmax(rng.uniform(-2, 2, (b, n)))).astype(dtype)
            y = log_softmax(x.astype(np.float64))
            g.op(f"SoftmaxCrossEntropyWithLogits/{dtype}", "SoftmaxCrossEntropyWithLogits", [x, labels],
                 [-(labels * y).sum(-1).astype(dtype), (np.exp(y) - labels).astype(dtype)], grad=[0])
            for kind in (np.int32, np.int64):
                classes = rng.integers(0, n, b).astype(kind)
                g.op(f"SparseSoftmaxCrossEntropyWithLogits/{dtype}", "SparseSoftmaxCrossEntropyWithLogits",
                     [x, classes], [-y[np.arange(b), classes].astype(dtype),
                                    (np.exp(y) - np.eye(n)[classes]).astype(dtype)],
                     grad2=b == 3)
        x = np.array([[-INF, 0, 1]], dtype)
        y = np.array([[-INF, -np.log1p(np.e), 1 - np.log1p(np.e)]])
        g.op(f"SoftmaxCrossEntropyWithLogits/{dtype}/impossible", "SoftmaxCrossEntropyWithLogits",
             [x, np.array([[0, 0, 1]], dtype)], [-y[:, 2].astype(dtype), (np.exp(y) - [[0, 0, 1]]).astype(dtype)],
             nograd="infinite")
    x, classes = rng.uniform(-4, 4, (3, 4)), np.array([2, 0, 3])
    g.op("SparseSoftmaxCrossEntropyWithLogits/loss", "SparseSoftmaxCrossEntropyWithLogits", [x, classes],
         [-log_softmax(x)[np.arange(3), classes], None])
    g.error("Softmax/scalar", "Softmax", [np.float64(1)], "rank 1")
    g.error("LogSoftmax/scalar", "LogSoftmax", [np.float64(1)], "rank 1")
    g.error("SoftmaxCrossEntropyWithLogits/shapes", "SoftmaxCrossEntropyWithLogits",
            [np.ones((2, 3)), np.ones((2, 4))], "broadcast to a matrix")
    g.error("SoftmaxCrossEntropyWithLogits/rank", "SoftmaxCrossEntropyWithLogits", [np.ones(3), np.ones(3)],
            "matri")
    sparse = "SparseSoftmaxCrossEntropyWithLogits"
    g.error(sparse + "/label", sparse, [np.ones((2, 3)), np.array([1, 3])], "label 3 at [1] is outside [0, 3)")
    g.error(sparse + "/negative", sparse, [np.ones((2, 3)), np.array([-1, 0])], "label -1 at [0]")
    g.error(sparse + "/rows", sparse, [np.ones((2, 3)), np.array([1])], "rows")
    g.error(sparse + "/rank", sparse, [np.ones(3), np.array([1])], "matrix")


def others(g):
    for dtype in FLOATS:
        for shape in SHAPES:
            x = smooth(dtype, *shape)
            g.op(f"L2Loss/{dtype}", "L2Loss", [x], [np.asarray((x.astype(float)**2).sum() / 2, dtype)], grad2=shape == (5,))
        x = Like(dtype, (50000,), 97, 0.02, -1)
        g.op(f"L2Loss/{dtype}/large", "L2Loss", [x], [np.asarray((x.array.astype(float)**2).sum() / 2, dtype)],
             tol=1e-6 if dtype == "float32" else 1e-12, nograd="too large")
    for dtype in NUMBERS:
        for shape, k in (((5,), 2), ((3, 7), 3), ((2, 3, 4), 4), ((0, 3), 1), ((3, 5), 0), ((4, 1), 1),
                         ((1, 2, 1, 2, 1, 2, 1, 6), 2), ((1, 70), 17)):
            x = rng.permutation(int(np.prod(shape))).reshape(shape).astype(dtype)
            order = np.argsort(-x, axis=-1, kind="stable")[..., :k]
            g.op(f"TopKV2/{dtype}", "TopKV2", [x, np.int32(k)],
                 [np.take_along_axis(x, order, -1), order.astype(np.int32)],
                 grad2=shape == (3, 7), nograd="too large" if shape == (1, 70) else None)
        g.op(f"TopKV2/{dtype}/ties", "TopKV2", [np.array([1, 3, 3, 1, 3], dtype), np.int32(4)],
             [np.array([3, 3, 3, 1], dtype), np.array([1, 2, 4, 0], np.int32)], nograd="ties")
    for dtype in FLOATS:
        g.op(f"TopKV2/{dtype}/special", "TopKV2", [np.array([1, NAN, INF, -INF, NAN], dtype), np.int32(4)],
             [np.array([NAN, NAN, INF, 1], dtype), np.array([1, 4, 2, 0], np.int32)], nograd="NaN")
    for shape, k in (((2, 0), 0), ((0, 3), 2), ((2, 3), 0)):  # gradients of nothing, too
        kept = shape[:-1] + (k,)
        g.op("TopKV2/float64/empty", "TopKV2", [np.ones(shape), np.int32(k)],
             [np.zeros(kept), np.zeros(kept, np.int32)])
    g.error("TopKV2/k", "TopKV2", [np.ones(3), np.int32(4)], "k is 4, but rows have 3")
    g.error("TopKV2/negative", "TopKV2", [np.ones(3), np.int32(-1)], "k")
    g.error("TopKV2/scalar", "TopKV2", [np.float64(3), np.int32(1)], "rank 1")
    for kind in (np.int32, np.int64):
        p = np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.4], [0.3, 0.3, 0.4], [NAN, 1, 2], [1, 2, INF], [1, 2, 3],
                      [1, 2, 3]], np.float32)
        t = np.array([2, 0, 2, 1, 2, 3, -1], kind)
        g.op("InTopK", "InTopK", [p, t], [np.array([1, 1, 1, 0, 0, 0, 0], bool)], {"k": 2})
        g.op("InTopK", "InTopK", [p, t], [np.array([0, 0, 1, 0, 0, 0, 0], bool)], {"k": 1})
        near = np.array([[1, 1 + 1e-12], [1 + 1e-12, 1]])  # equal in float32
        g.op("InTopK/float64", "InTopK", [near, t[1:3] * 0], [np.array([False, True])], {"k": 1})
        g.op("InTopK/empty", "InTopK", [p[:0], t[:0]], [np.zeros(0, bool)], {"k": 1})
    g.error("InTopK/rows", "InTopK", [np.ones((2, 3), np.float32), np.zeros(3, np.int32)], "rows", {"k": 1})
    g.error("InTopK/rank", "InTopK", [np.ones(3, np.float32), np.zeros(3, np.int32)], "matrix", {"k": 1})


with Golden("nn_dense") as golden:
    activations(golden)
    bias(golden)
    softmaxes(golden)
    others(golden)
