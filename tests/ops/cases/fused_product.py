# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions with biases and activations behind them, and sums of products: what
NumPy computes of the same in float64."""
import numpy as np

from golden import Golden, rng

TOL = {"float32": 1e-5, "float64": 1e-11}

STEPS = {
    "Relu": lambda x: np.maximum(x, 0), "Relu6": lambda x: np.clip(x, 0, 6),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Softplus": lambda x: np.log1p(np.exp(x)), "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
EPILOGUES = [["BiasAdd"], ["Relu"], ["BiasAdd", "Relu"], ["BiasAdd", "Relu6"], ["BiasAdd", "Elu"],
             ["BiasAdd", "Softplus"], ["BiasAdd", "Tanh"], ["BiasAdd", "Sigmoid"],
             ["BiasAdd", "BiasAdd", "Relu", "BiasAdd"]]


def draw(*shape):
    return np.round(rng.standard_normal(shape), 2)


def apply(y, ops, biases):
    biases = list(biases)
    for op in ops:
        y = y + biases.pop(0) if op == "BiasAdd" else STEPS[op](y)
    return y


def listed(ops):
    return "[" + ",".join(f'"{op}"' for op in ops) + "]"


def conv(x, f, stride, same):
    size = f.shape[0]
    if same:
        pads = [max(0, (-(-n // stride) - 1) * stride + size - n) for n in x.shape[1:3]]
        x = np.pad(x, [(0, 0)] + [(p // 2, p - p // 2) for p in pads] + [(0, 0)])
    rows, columns = [(n - size) // stride + 1 for n in x.shape[1:3]]
    y = np.zeros((x.shape[0], rows, columns, f.shape[3]))
    for i in range(rows):
        for j in range(columns):
            part = x[:, i * stride:i * stride + size, j * stride:j * stride + size]
            y[:, i, j] = np.einsum("nhwc,hwco->no", part, f)
    return y


NOGRAD = "it is made where gradients are there already"

with Golden("fused_product") as g:
    for dtype in TOL:
        for ops in EPILOGUES:
            name = f"{dtype}/{'-'.join(ops)}"
            for (m, k, n), ta, tb in (((3, 4, 5), False, False), ((2, 3, 9), True, True),
                                      ((0, 2, 3), False, True), ((2, 0, 3), False, False)):
                a, b = draw(m, k).astype(dtype), draw(k, n).astype(dtype)
                biases = [draw(n).astype(dtype) for op in ops if op == "BiasAdd"]
                y = apply(a.astype(np.float64) @ b.astype(np.float64), ops, biases)
                attrs = {"transpose_a": str(ta).lower(), "transpose_b": str(tb).lower(),
                         "T": dtype, "epilogue": listed(ops), "N": str(len(biases))}
                g.op(f"FusedMatMul/{name}/{m}x{k}x{n}", "FusedMatMul",
                     [a.T if ta else a, b.T if tb else b] + biases, [y.astype(dtype)], attrs,
                     TOL[dtype], nograd=NOGRAD)
            for layout, stride, same in (("NHWC", 1, True), ("NCHW", 2, False)):
                x, f = draw(2, 5, 6, 3).astype(dtype), draw(3, 3, 3, 5).astype(dtype)
                biases = [draw(5).astype(dtype) for op in ops if op == "BiasAdd"]
                y = apply(conv(x, f, stride, same), ops, biases).astype(dtype)
                if layout == "NCHW":
                    x, y = np.transpose(x, (0, 3, 1, 2)), np.transpose(y, (0, 3, 1, 2))
                strides = [1, stride, stride, 1] if layout == "NHWC" else [1, 1, stride, stride]
                attrs = {"strides": str(strides).replace(" ", ""), "data_format": f'"{layout}"',
                         "padding": '"SAME"' if same else '"VALID"',
                         "T": dtype, "epilogue": listed(ops), "N": str(len(biases))}
                g.op(f"FusedConv2D/{name}/{layout}", "FusedConv2D", [x, f] + biases, [y], attrs,
                     TOL[dtype], nograd=NOGRAD)
    a, b = np.ones((2, 3)), np.ones((3, 4))
    bias = {"T": "float64", "epilogue": '["BiasAdd"]', "N": "1"}
    for name, inputs, message, attrs in (
            ("inner", [a, a, np.ones(3)], "inner dimensions 3 and 2 differ", bias),
            ("channels", [a, b, np.ones(3)], "a vector of 4 channels, not [3]", bias),
            ("rank", [a, b, np.ones((1, 4))], "must be a vector", bias),
            ("missing", [a, b], "1 biases are added, and 0 given", dict(bias, N="0")),
            ("op", [a, b], "no loop for MatMul of 1 float64",
             dict(bias, N="0", epilogue='["MatMul"]'))):
        g.error(f"FusedMatMul/{name}", "FusedMatMul", inputs, message, attrs=attrs)
    x, f = np.ones((1, 4, 4, 2)), np.ones((3, 3, 2, 1))
    conv_attrs = {**bias, "strides": "[1,1,1,1]", "padding": '"VALID"'}
    g.error("FusedConv2D/channels", "FusedConv2D", [x, f, np.ones(2)],
            "a vector of 1 channels, not [2]", attrs=conv_attrs)
    g.error("FusedConv2D/input", "FusedConv2D", [x, np.ones((3, 3, 3, 1)), np.ones(1)],
            "input has 2 channels", attrs=conv_attrs)
    for dtype in TOL:
        for (m, n), inner, ta, tb, adds in (
                ((3, 4), (2, 3, 1), True, False, False), ((5, 7), (1, 4), False, False, True),
                ((2, 3), (3, 0, 2), False, True, True), ((4, 1), (2,), True, True, True),
                ((3, 2), (300, 200, 20, 600), True, False, False),
                ((0, 3), (2, 1), False, False, True),
                ((3, 5), (0, 0), True, False, False)):
            a = [draw(m, k).astype(dtype) for k in inner]
            b = [draw(k, n).astype(dtype) for k in inner]
            if sum(inner) > 100:  # so many are not to cancel
                a, b = [np.abs(p) for p in a], [np.abs(q) for q in b]
            x = [draw(m, n).astype(dtype)] if adds else []
            y = sum((p.astype(np.float64) @ q.astype(np.float64) for p, q in zip(a, b)),
                    sum(x, np.zeros((m, n))))
            attrs = {"transpose_a": str(ta).lower(), "transpose_b": str(tb).lower(), "T": dtype,
                     "M": str(len(x)), "N": str(len(a))}
            name = f"{m}x{n}/{'-'.join(map(str, inner))}"
            g.op(f"FusedMatMulSum/{dtype}/{name}", "FusedMatMulSum",
                 x + [p.T if ta else p for p in a] + [q.T if tb else q for q in b],
                 [y.astype(dtype)], attrs, TOL[dtype], nograd=NOGRAD)
    a, b = np.ones((2, 3)), np.ones((3, 4))
    for name, inputs, message, adds in (
            ("inner", [a, a, b, a], "inner dimensions 3 and 2 differ", 0),
            ("terms", [a, a, b, np.ones((3, 5))], "term 1 is [2,5], those before [2,4]", 0),
            ("tensor", [np.ones((4, 2)), a, b], "term 1 is [2,4], those before [4,2]", 1)):
        g.error(f"FusedMatMulSum/{name}", "FusedMatMulSum", inputs, message,
                attrs={"T": "float64", "M": str(adds), "N": str((len(inputs) - adds) // 2)})
