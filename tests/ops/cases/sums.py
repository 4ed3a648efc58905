# SPDX-License-Identifier: Apache-2.0
"""Long sums of float32 against float64: all that is left is the rounding of the result."""
import numpy as np

from golden import Golden, Like

TOL = 4e-7  # a naive sum of as many terms is off by 1e-5 and more


def like(shape, modulus=9973, scale=0.001, offset=0.1):
    return Like("float32", shape, modulus, scale, offset)


def check(g, name, op, inputs, outputs, attrs=None, tol=TOL):
    g.op(f"{op}/{name}", op, inputs, [None if y is None else np.asarray(y).astype(np.float32)
                                      for y in outputs], attrs, tol)


def columns(g):
    for shape in ((400000, 3), (400000, 1), (20000, 67), (1, 400000, 2)):
        x = like(shape)
        exact = x.array.astype(np.float64)
        rows = tuple(range(len(shape) - 1))
        check(g, "long", "BiasAddGrad", [x], [exact.sum(rows)])
        check(g, "long-columns", "Sum", [x, np.array(rows, np.int32)], [exact.sum(rows)])
        check(g, "long-columns", "Mean", [x, np.array(rows, np.int32)], [exact.mean(rows)])
    for shape in ((2, 3, 200000), (2000, 3, 200), (1, 2, 450, 450), (700, 3, 1, 700)):
        x = like(shape)
        exact = x.array.astype(np.float64)
        rest = tuple(i for i in range(len(shape)) if i != 1)
        check(g, "long-nchw", "BiasAddGrad", [x], [exact.sum(rest)], {"data_format": '"NCHW"'})
        check(g, "long-nchw", "Sum", [x, np.array(rest, np.int32)], [exact.sum(rest)])
    x = like((3, 400001))
    exact = x.array.astype(np.float64)
    check(g, "long-rows", "Sum", [x, np.int32(1)], [exact.sum(1)])
    check(g, "long", "L2Loss", [x], [(exact**2).sum() / 2])


def statistics(g):
    for layout, shape in (("NHWC", (4, 300, 300, 2)), ("NCHW", (4, 2, 300, 300))):
        x, d = like(shape), like(shape, 9949, 0.002, -3)
        exact, back = x.array.astype(np.float64), d.array.astype(np.float64)
        rest = (0, 1, 2) if layout == "NHWC" else (0, 2, 3)
        mean, var, n = exact.mean(rest), exact.var(rest), exact.size // 2
        one = np.ones(2, np.float32)
        attrs = {"epsilon": 0.01, "data_format": f'"{layout}"'}
        check(g, "long", "FusedBatchNorm", [x, one, one, one[:0], one[:0]],
              [None, mean, var * n / (n - 1), mean, var], attrs)
        # The statistics as the op gets them: rounded.
        mean, var = mean.astype(np.float32), var.astype(np.float32)
        wide = [2, 1, 1] if layout == "NCHW" else [2]
        centred = exact - mean.astype(np.float64).reshape(wide)
        check(g, "long", "FusedBatchNormGrad", [d, x, one, mean, var],
              [None, (back * centred).sum(rest) / np.sqrt(var + 0.01), back.sum(rest), None, None], attrs)


def softmaxes(g):
    x = like((2, 300000), scale=0.0001)
    exact = x.array.astype(np.float64)
    labels = Like("float32", (2, 300000), 9941, 1e-9, 1e-7)
    ln = np.log(np.exp(exact - exact.max(1, keepdims=True)).sum(1, keepdims=True))
    log = exact - exact.max(1, keepdims=True) - ln
    check(g, "long", "SoftmaxCrossEntropyWithLogits", [x, labels],
          [-(labels.array.astype(np.float64) * log).sum(1), None])
    check(g, "long", "SparseSoftmaxCrossEntropyWithLogits", [x, np.array([5, 7])], [-log[[0, 1], [5, 7]], None])


def windows(g):
    for layout, shape in (("NHWC", (1, 500, 500, 2)), ("NCHW", (1, 2, 500, 500))):
        x = like(shape)
        exact = x.array.astype(np.float64)
        size = "[1,500,500,1]" if layout == "NHWC" else "[1,1,500,500]"
        check(g, "long", "AvgPool", [x], [exact.mean((1, 2) if layout == "NHWC" else (2, 3), keepdims=True)],
              {"ksize": size, "strides": "[1,1,1,1]", "padding": '"VALID"', "data_format": f'"{layout}"'})


with Golden("sums") as golden:
    columns(golden)
    statistics(golden)
    softmaxes(golden)
    windows(golden)
