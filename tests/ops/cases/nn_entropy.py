# SPDX-License-Identifier: Apache-2.0
"""Cross entropies: rows and columns that are broadcast, and second derivatives."""
import numpy as np

from golden import FLOATS, Golden, rng

DENSE, SPARSE = "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def check(g, name, x, labels):
    both = np.broadcast_shapes(x.shape, labels.shape)
    exact = log_softmax(np.broadcast_to(x.astype(np.float64), both))
    exact_labels = np.broadcast_to(labels.astype(np.float64), both)
    g.op(f"{DENSE}/{name}", DENSE, [x, labels],
         [-(exact_labels * exact).sum(-1).astype(x.dtype), (np.exp(exact) - exact_labels).astype(x.dtype)],
         grad=[0], grad2=True)


with Golden("nn_entropy") as g:
    for dtype in FLOATS:
        for a, b in (((3, 4), (1, 4)), ((1, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 4)), ((3, 1), (3, 4)),
                     ((3, 4), (3, 1)), ((3, 1), (1, 4)), ((1, 4), (3, 1)), ((3, 4), ()), ((), (2, 5)),
                     ((3, 4), (3, 4)), ((1, 4), (0, 4)), ((2, 1), (1, 37))):
            x = rng.uniform(-2, 2, a).astype(dtype)
            labels = rng.uniform(0.1, 1, b)  # distributions, once they are broadcast
            wide = b[-1] if b else 1
            labels = labels / labels.sum(-1, keepdims=bool(b)) * (wide / np.broadcast_shapes(a, b)[-1])
            check(g, f"{dtype}/broadcast", x, np.asarray(labels, dtype))
    for kind in (np.int32, np.int64):
        x, classes = rng.uniform(-2, 2, (3, 4)), np.array([2, 0, 3], kind)
        y = log_softmax(x)
        g.op(f"{SPARSE}/second", SPARSE, [x, classes],
             [-y[np.arange(3), classes], np.exp(y) - np.eye(4)[classes]], grad=[0], grad2=True)
    g.error(f"{DENSE}/incompatible", DENSE, [np.ones((2, 3)), np.ones((2, 4))], "broadcast to a matrix, not [2,3] and [2,4]")
    g.error(f"{DENSE}/vector", DENSE, [np.ones(3), np.ones(3)], "broadcast to a matrix")
    g.error(f"{DENSE}/cube", DENSE, [np.ones((2, 2, 3)), np.ones((2, 3))], "broadcast to a matrix")
