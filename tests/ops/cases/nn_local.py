# SPDX-License-Identifier: Apache-2.0
"""Cases of LocallyConnected2D and its gradients, from PyTorch: windows by unfold, products by einsum,
gradients by its own differentiation."""
import itertools

import numpy as np
import torch

from golden import FLOATS, Golden, Like, array

rng = np.random.default_rng(2012)
TOL = {"float32": 2e-5, "float64": 1e-11}
NAMES = ("LocallyConnected2D", "LocallyConnected2DBackpropInput", "LocallyConnected2DBackpropFilter")


def draw(shape):
    return np.round(rng.standard_normal(shape), 2)


def padding_of(size, window, stride, padding):
    if padding != "SAME":
        return (0, 0)
    total = max(0, (-(-size // stride) - 1) * stride + window - size)
    return (total // 2, total - total // 2)


class Layer:
    """images [n, h, w, c], windows, strides, and padding ((top, bottom), (left, right))."""

    def __init__(self, shape, size, strides, padding):
        self.shape, self.size, self.strides = shape, size, strides
        self.pads = padding if isinstance(padding, list) else [
            padding_of(shape[1 + i], size[i], strides[i], padding) for i in (0, 1)]
        self.out = [(shape[1 + i] + sum(self.pads[i]) - size[i]) // strides[i] + 1 for i in (0, 1)]

    def filter_shape(self, channels):
        return (*self.out, *self.size, self.shape[3], channels)

    def run(self, x, f):
        (top, bottom), (left, right) = self.pads
        p = torch.nn.functional.pad(x, (0, 0, left, right, top, bottom))
        windows = p.unfold(1, self.size[0], self.strides[0]).unfold(2, self.size[1], self.strides[1])
        return torch.einsum("nyxchw,yxhwco->nyxo", windows, f)

    def all(self, x, f, d):
        """Output, and the gradients of input and filter, in float64."""
        x, f, d = (torch.tensor(a.astype(np.float64)) for a in (x, f, d))
        x.requires_grad_(True)
        f.requires_grad_(True)
        y = self.run(x, f)
        dx, df = torch.autograd.grad((y * d).sum(), (x, f))
        return y.detach().numpy(), dx.numpy(), df.numpy()


def to_format(x, layout):
    return np.ascontiguousarray(np.transpose(x, (0, 3, 1, 2))) if layout == "NCHW" else x


def from_format(x, layout):
    return np.transpose(x, (0, 2, 3, 1)) if layout == "NCHW" else x


def attributes(layout, strides, padding):
    a, b = strides
    nchw = layout == "NCHW"
    attrs = {"strides": f"[1,1,{a},{b}]" if nchw else f"[1,{a},{b},1]",
             "padding": f'"{padding}"' if isinstance(padding, str) else '"EXPLICIT"',
             "data_format": f'"{layout}"'}
    if not isinstance(padding, str):
        image = ",".join(str(n) for pair in padding for n in pair)
        attrs["explicit_paddings"] = f"[0,0,0,0,{image}]" if nchw else f"[0,0,{image},0,0]"
    return attrs


# image, window, output channels, strides; the first two also with explicit padding
LAYERS = [((2, 3, 4, 2), (3, 3), 2, (1, 1)), ((2, 4, 5, 2), (3, 2), 3, (2, 2)),
          ((1, 4, 3, 1), (1, 1), 1, (1, 1)), ((0, 5, 5, 1), (3, 3), 2, (1, 1)),
          ((3, 5, 4, 2), (1, 1), 2, (2, 2)), ((1, 5, 4, 1), (4, 3), 2, (1, 2)),
          ((2, 3, 4, 3), (3, 4), 1, (1, 1)), ((2, 7, 3, 1), (2, 2), 1, (3, 1))]
EXPLICIT = [(2, 1), (0, 3)]


def write(g, name, layer, images, attrs, tol, grad=None, grad2=False):
    """images, filter and output's gradient, as they are given to the op."""
    layout = "NCHW" if "NCHW" in attrs["data_format"] else "NHWC"
    x, f, d = images
    dtype = array(x).dtype
    y, dx, df = layer.all(from_format(array(x), layout), array(f), from_format(array(d), layout))
    inputs = [[x, f], [np.array(array(x).shape, np.int32), f, d], [x, np.array(array(f).shape, np.int32), d]]
    results = [to_format(y, layout), to_format(dx, layout), df]
    for op, given, result in zip(NAMES, inputs, results):
        g.op(f"{op}/{name}", op, given, [result.astype(dtype)], attrs, tol, grad=grad,
             grad2=grad2 and op == NAMES[0])


def layers(g):
    for dtype, layout, padding in itertools.product(FLOATS, ("NHWC", "NCHW"), ("SAME", "VALID", EXPLICIT)):
        several = 4 if dtype == "float32" else len(LAYERS)
        for shape, size, channels, strides in LAYERS[:2 if padding == EXPLICIT else several]:
            layer = Layer(shape, size, strides, padding)
            x, f = draw(shape).astype(dtype), draw(layer.filter_shape(channels)).astype(dtype)
            d = draw((shape[0], *layer.out, channels)).astype(dtype)
            kind = padding if isinstance(padding, str) else "EXPLICIT"
            write(g, f"{dtype}/{layout}-{kind}", layer, (to_format(x, layout), f, to_format(d, layout)),
                  attributes(layout, strides, padding), TOL[dtype],
                  grad2=shape == (2, 3, 4, 2) and padding != "VALID")


# Large enough for a library's products, and of images beyond one block.
LARGE = [((5, 3, 3, 34), (3, 2), 33, (1, 1)), ((300, 2, 3, 40), (2, 3), 17, (1, 2)),
         ((9, 3, 3, 1), (3, 3), 200, (2, 1)), ((1, 2, 3, 70), (2, 2), 40, (1, 1))]


def large(g):
    for i, (shape, size, channels, strides) in enumerate(LARGE):
        layout = ("NHWC", "NCHW")[i % 2]
        layer = Layer(shape, size, strides, "SAME")
        dims = shape if layout == "NHWC" else (shape[0], shape[3], *shape[1:3])
        out = (shape[0], *layer.out, channels) if layout == "NHWC" else (shape[0], channels, *layer.out)
        x, d = Like("float32", dims, 97, 0.02, -1), Like("float32", out, 83, 0.02, -0.8)
        f = Like("float32", layer.filter_shape(channels), 89, 0.002, -0.1)
        write_large(g, f"float32/{layout}-large", layer, (x, f, d), attributes(layout, strides, "SAME"))


def write_large(g, name, layer, images, attrs):
    """Sums over rows and over columns: the results themselves would fill the file."""
    layout = "NCHW" if "NCHW" in attrs["data_format"] else "NHWC"
    x, f, d = images
    results = layer.all(from_format(x.array, layout), f.array, from_format(d.array, layout))
    text = " ".join(f"{key}={value}," for key, value in attrs.items()).rstrip(",")
    sizes = [np.array(a.array.shape) for a in (x, f)]
    given = ["x, f", "sx, f, d", "x, sf, d"]
    for op, inputs, result in zip(NAMES, given, results):
        result = to_format(result, layout) if op != NAMES[2] else result
        rows = result.reshape(-1, result.shape[-1]) if op == NAMES[2] else result.reshape(result.shape[0], -1)
        g.graph(f"{op}/{name}", f"""
            x = Placeholder() {{dtype=float32}}
            f = Placeholder() {{dtype=float32}}
            d = Placeholder() {{dtype=float32}}
            sx = Const() {{dtype=int32, value=[{",".join(map(str, sizes[0]))}]}}
            sf = Const() {{dtype=int32, value=[{",".join(map(str, sizes[1]))}]}}
            y = {op}({inputs}) {{{text}}}
            flat = Const() {{dtype=int32, value=[{rows.shape[0]},{rows.shape[1]}]}}
            rows = Reshape(y, flat)
            zero = Const() {{dtype=int32, value=0}}
            one = Const() {{dtype=int32, value=1}}
            over = Sum(rows, zero)
            across = Sum(rows, one)
            """, [("", {"x": x, "f": f, "d": d},
                   {"over:0": rows.sum(0).astype(np.float32), "across:0": rows.sum(1).astype(np.float32)})],
                ops=op, tol=1e-4)


def errors(g):
    x, f = np.ones((1, 4, 4, 2)), np.ones((2, 2, 3, 3, 2, 1))
    a, y = attributes("NHWC", (1, 1), "VALID"), np.ones((1, 2, 2, 1))
    forward, of_input, of_filter = NAMES
    for name, images, filters, message in (
            ("channels", x, np.ones((2, 2, 3, 3, 3, 1)), "input has 2 channels, filter is for 3"),
            ("rank", np.ones((4, 4, 2)), f, "rank 4"), ("filter-rank", x, f[0, 0], "rank 6"),
            ("positions", x, np.ones((3, 2, 3, 3, 2, 1)), "filter is for [3,2] positions, the output has [2,2]"),
            ("window", x, np.ones((2, 2, 6, 3, 2, 1)), "height 6 does not fit into 4")):
        g.error(f"{forward}/{name}", forward, [images, filters], message, a)
    for name, strides, message in (("strides", "[1,1,1]", "4 elements, not 3"),
                                   ("batch-stride", "[2,1,1,1]", "must be 1"),
                                   ("zero-stride", "[1,0,1,1]", "positive, not 0 and 1")):
        g.error(f"{forward}/{name}", forward, [x, f], message, dict(a, strides=strides))
    g.error(f"{forward}/explicit", forward, [x, f], "explicit_paddings", dict(a, padding='"EXPLICIT"'))
    sizes, f_sizes = np.array(x.shape, np.int32), np.array(f.shape, np.int32)
    g.error(f"{of_input}/output", of_input, [sizes, f, x], "out_backprop must be", a)
    g.error(f"{of_input}/positions", of_input, [sizes + 1, f, y], "positions|channels", a)
    g.error(f"{of_input}/sizes", of_input, [sizes[:3], f, y], "sizes must", a)
    g.error(f"{of_filter}/output", of_filter, [x, f_sizes, x], "out_backprop must be", a)
    g.error(f"{of_filter}/positions", of_filter, [x, np.array([2, 1, 3, 3, 2, 1], np.int32), y], "positions", a)
    g.error(f"{of_filter}/sizes", of_filter, [x, f_sizes[2:], y], "sizes must", a)


with Golden("nn_local") as golden:
    layers(golden)
    large(golden)
    errors(golden)
