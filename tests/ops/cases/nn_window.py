# SPDX-License-Identifier: Apache-2.0
"""Cases of convolution, pooling and normalization, from NumPy, window by window."""
import copy
import itertools

import numpy as np

from golden import FLOATS, Golden, Like, rng



def draw(shape):
    return np.round(rng.standard_normal(shape), 2)


TOL = {"float32": 2e-5, "float64": 1e-11}


def padding_of(size, window, stride, padding):
    if padding != "SAME":
        return 0, 0
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + window - size)
    return total // 2, total - total // 2


class Windows:
    """Windows over NHWC images: positions and the cells inside."""

    def __init__(self, shape, window, strides, padding, explicit=None, dilations=(1, 1)):
        self.shape, self.window, self.strides, self.dilations = shape, window, strides, dilations
        self.span = [(window[i] - 1) * dilations[i] + 1 for i in (0, 1)]
        pads = explicit or [padding_of(shape[1 + i], self.span[i], strides[i], padding) for i in (0, 1)]
        self.pads = pads
        self.out = [int((shape[1 + i] + sum(pads[i]) - self.span[i] + strides[i]) / strides[i])
                    for i in (0, 1)]

    def padded(self, x, value=0.0):
        return np.pad(x, [(0, 0), self.pads[0], self.pads[1], (0, 0)], constant_values=value)

    def crop(self, x):
        (top, _), (left, _) = self.pads
        return x[:, top:top + self.shape[1], left:left + self.shape[2]]

    def each(self):
        for y, x in itertools.product(range(self.out[0]), range(self.out[1])):
            sy, sx = y * self.strides[0], x * self.strides[1]
            yield y, x, (slice(None), slice(sy, sy + self.span[0], self.dilations[0]),
                         slice(sx, sx + self.span[1], self.dilations[1]))


def conv(w, x, f):
    p = w.padded(x)
    out = np.zeros((x.shape[0], *w.out, f.shape[3]))
    for i, j, at in w.each():
        out[:, i, j] = np.einsum("nhwc,hwco->no", p[at], f)
    return out


def conv_input(w, f, d):
    p = w.padded(np.zeros(w.shape))
    for i, j, at in w.each():
        p[at] += np.einsum("hwco,no->nhwc", f, d[:, i, j])
    return w.crop(p)


def conv_filter(w, x, d, shape):
    p, out = w.padded(x), np.zeros(shape)
    for i, j, at in w.each():
        out += np.einsum("nhwc,no->hwco", p[at], d[:, i, j])
    return out


def by_groups(groups):
    """conv, conv_input and conv_filter, each group of channels by itself."""
    def split(a):
        return np.split(a, groups, -1)

    def forward(w, x, f):
        return np.concatenate([conv(w, *each) for each in zip(split(x), split(f))], -1)

    def image(w, f, d):
        part = copy.copy(w)
        part.shape = (*w.shape[:3], w.shape[3] // groups)
        return np.concatenate([conv_input(part, *each) for each in zip(split(f), split(d))], -1)

    def filters(w, x, d, shape):
        own = (*shape[:3], shape[3] // groups)
        return np.concatenate([conv_filter(w, *each, own) for each in zip(split(x), split(d))], -1)
    return forward, image, filters


def max_pool(w, x):
    p = w.padded(x, -np.inf)
    return np.stack([p[at].max((1, 2)) for _, _, at in w.each()], 1).reshape(
        x.shape[0], *w.out, x.shape[3]) if all(w.out) else np.zeros((x.shape[0], *w.out, x.shape[3]))


def max_pool_grad(w, x, d):
    p = w.padded(x, -np.inf)
    out = np.zeros(p.shape)
    for i, j, at in w.each():
        part = p[at].reshape(x.shape[0], w.window[0] * w.window[1], x.shape[3])
        first = part.argmax(1)
        mask = np.arange(part.shape[1])[None, :, None] == first[:, None]
        out[at] += (mask * d[:, i, j][:, None]).reshape(p[at].shape)
    return w.crop(out)


def max_pool_grad_grad(w, x, e):
    p, q = w.padded(x, -np.inf), w.padded(e)
    out = np.zeros((x.shape[0], *w.out, x.shape[3]))
    for i, j, at in w.each():
        flat = (x.shape[0], w.window[0] * w.window[1], x.shape[3])
        first = p[at].reshape(flat).argmax(1)
        out[:, i, j] = np.take_along_axis(q[at].reshape(flat), first[:, None], 1)[:, 0]
    return out


def avg_pool(w, x):
    p, one = w.padded(x), w.padded(np.ones(x.shape))
    out = np.zeros((x.shape[0], *w.out, x.shape[3]))
    for i, j, at in w.each():
        out[:, i, j] = p[at].sum((1, 2)) / one[at].sum((1, 2))
    return out


def avg_pool_grad(w, d):
    one = w.padded(np.ones(w.shape))
    out = np.zeros(one.shape)
    for i, j, at in w.each():
        out[at] += one[at] * (d[:, i, j] / one[at].sum((1, 2)))[:, None, None]
    return w.crop(out)


def to_format(x, layout):
    return np.ascontiguousarray(np.transpose(x, (0, 3, 1, 2))) if layout == "NCHW" else x


def four(a, b, layout):
    return [1, 1, a, b] if layout == "NCHW" else [1, a, b, 1]


def listed(values):
    return "[" + ",".join(map(str, values)) + "]"


def attributes(layout, strides, padding, ksize=None, explicit=None, dilations=None):
    attrs = {"strides": listed(four(*strides, layout)), "padding": f'"{padding}"',
             "data_format": f'"{layout}"'}
    if dilations:
        attrs["dilations"] = listed(four(*dilations, layout))
    if ksize:
        attrs["ksize"] = listed(four(*ksize, layout))
    if explicit:
        (a, b), (c, d) = explicit
        image = [a, b, c, d]
        attrs["explicit_paddings"] = listed([0, 0] * 2 + image if layout == "NCHW"
                                            else [0, 0] + image + [0, 0])
    return attrs


# image, filter, strides; the last two also with explicit padding
CONVS = [((2, 4, 5, 2), (3, 3, 2, 2), (1, 1)), ((2, 4, 5, 2), (3, 2, 2, 3), (2, 2)),
         ((1, 4, 4, 1), (1, 1, 1, 1), (1, 1)), ((1, 5, 4, 2), (1, 1, 2, 2), (2, 2)),
         ((0, 5, 5, 1), (3, 3, 1, 2), (1, 1)), ((1, 6, 5, 1), (5, 4, 1, 2), (1, 2))]


def convolutions(g):
    for dtype, layout, padding in itertools.product(FLOATS, ("NHWC", "NCHW"),
                                                    ("SAME", "VALID", "EXPLICIT")):
        for shape, f_shape, strides in CONVS[:2] if padding == "EXPLICIT" else CONVS:
            explicit = [(2, 1), (0, 1)] if padding == "EXPLICIT" else None
            w = Windows(shape, f_shape[:2], strides, padding, explicit)
            x = draw(shape).astype(dtype)
            f = draw(f_shape).astype(dtype)
            d = draw((shape[0], *w.out, f_shape[3])).astype(dtype)
            attrs = attributes(layout, strides, padding, explicit=explicit)
            name, tol = f"{dtype}/{layout}-{padding}", TOL[dtype]
            image = to_format(x, layout)
            g.op(f"Conv2D/{name}", "Conv2D", [image, f], [to_format(conv(w, x, f).astype(dtype), layout)],
                 attrs, tol, grad2=shape == (2, 4, 5, 2) and padding != "VALID")
            g.op(f"Conv2DBackpropInput/{name}", "Conv2DBackpropInput",
                 [np.array(image.shape, np.int32), f, to_format(d, layout)],
                 [to_format(conv_input(w, f, d).astype(dtype), layout)], attrs, tol)
            g.op(f"Conv2DBackpropFilter/{name}", "Conv2DBackpropFilter",
                 [image, np.array(f_shape, np.int32), to_format(d, layout)],
                 [conv_filter(w, x, d, f_shape).astype(dtype)], attrs, tol)
    # Large enough for Winograd and for blocks of channels: few outputs, many terms.
    for layout in ("NCHW",):
        x = Like("float32", (1, 10, 10, 34) if layout == "NHWC" else (1, 34, 10, 10), 97, 0.02, -1)
        f = Like("float32", (3, 3, 34, 33), 89, 0.002, -0.1)
        image = x.array if layout == "NHWC" else np.transpose(x.array, (0, 2, 3, 1))
        w = Windows(image.shape, (3, 3), (1, 1), "SAME")
        y = conv(w, image.astype(np.float64), f.array.astype(np.float64))
        g.op(f"Conv2D/float32/{layout}-winograd", "Conv2D", [x, f],
             [to_format(y, layout).astype(np.float32)], attributes(layout, (1, 1), "SAME"), 1e-4)
    x, f, a = np.ones((1, 4, 4, 2)), np.ones((3, 3, 2, 1)), attributes("NHWC", (1, 1), "VALID")
    g.error("Conv2D/channels", "Conv2D", [x, np.ones((3, 3, 3, 1))], "input has 2 channels", a)
    g.error("Conv2D/rank", "Conv2D", [np.ones((4, 4, 2)), f], "rank 4", a)
    g.error("Conv2D/window", "Conv2D", [x, np.ones((6, 3, 2, 1))], "does not fit", a)
    g.error("Conv2D/strides", "Conv2D", [x, f], "strides", dict(a, strides="[1,1,1]"))
    g.error("Conv2D/batch-stride", "Conv2D", [x, f], "batch and channels must be 1", dict(a, strides="[2,1,1,1]"))
    g.error("Conv2D/zero-stride", "Conv2D", [x, f], "positive", dict(a, strides="[1,0,1,1]"))
    g.error("Conv2D/large-stride", "Conv2D", [x, f], "too large", dict(a, strides="[1,2147483648,1,1]"))
    # A sum over no channels is zero, however many cells the window has.
    for layout in ("NHWC", "NCHW"):
        same = attributes(layout, (1, 1), "SAME")
        none, wide = np.ones((1, 4, 4, 0)), np.ones((10**6, 10**6, 0, 2))
        g.op(f"Conv2D/float64/{layout}-no-channels", "Conv2D", [to_format(none, layout), wide],
             [to_format(np.zeros((1, 4, 4, 2)), layout)], same, grad="")
        g.op(f"Conv2DBackpropInput/float64/{layout}-no-channels", "Conv2DBackpropInput",
             [np.array(to_format(x, layout).shape, np.int32), np.ones((10**5, 10**6, 2, 0)),
              to_format(none, layout)], [to_format(np.zeros(x.shape), layout)], same, grad="")
    g.error("Conv2D/explicit", "Conv2D", [x, f], "explicit_paddings", dict(a, padding='"EXPLICIT"'))
    g.error("Conv2DBackpropInput/output", "Conv2DBackpropInput",
            [np.array(x.shape, np.int32), f, np.ones((1, 3, 3, 1))], "out_backprop must be", a)
    g.error("Conv2DBackpropInput/sizes", "Conv2DBackpropInput",
            [np.array([1, 2, 3], np.int32), f, np.ones((1, 2, 2, 1))], "sizes must", a)
    g.error("Conv2DBackpropFilter/output", "Conv2DBackpropFilter",
            [x, np.array(f.shape, np.int32), np.ones((1, 3, 3, 1))], "out_backprop must be", a)
    g.error("Conv2DBackpropFilter/sizes", "Conv2DBackpropFilter",
            [x, np.array([3, 3, 2], np.int32), np.ones((1, 2, 2, 1))], "sizes must", a)


# image, filter, strides, dilations
DILATED = [((2, 7, 6, 2), (3, 2, 2, 3), (1, 1), (2, 3)), ((1, 6, 7, 1), (2, 3, 1, 2), (2, 1), (3, 2)),
           ((2, 4, 5, 2), (3, 3, 2, 2), (1, 1), (1, 1)), ((1, 3, 4, 17), (3, 3, 17, 16), (1, 1), (2, 1))]


def dilated(g):
    for dtype, layout, padding in itertools.product(FLOATS, ("NHWC", "NCHW"), ("SAME", "VALID", "EXPLICIT")):
        for shape, f_shape, strides, dilations in DILATED:
            if f_shape[2] > 2 and (padding != "SAME" or dtype == "float64"):
                continue  # blocks of channels: of float32 only
            explicit = [(2, 1), (0, 3)] if padding == "EXPLICIT" else None
            w = Windows(shape, f_shape[:2], strides, padding, explicit, dilations)
            x, f = draw(shape).astype(dtype), draw(f_shape).astype(dtype)
            d = draw((shape[0], *w.out, f_shape[3])).astype(dtype)
            attrs = attributes(layout, strides, padding, explicit=explicit, dilations=dilations)
            name, tol = f"{dtype}/{layout}-{padding}-dilated", TOL[dtype]
            image = to_format(x, layout)
            exact = [a.astype(np.float64) for a in (x, f, d)]
            g.op(f"Conv2D/{name}", "Conv2D", [image, f],
                 [to_format(conv(w, *exact[:2]).astype(dtype), layout)], attrs, tol, grad2=True)
            g.op(f"Conv2DBackpropInput/{name}", "Conv2DBackpropInput",
                 [np.array(image.shape, np.int32), f, to_format(d, layout)],
                 [to_format(conv_input(w, *exact[1:]).astype(dtype), layout)], attrs, tol)
            g.op(f"Conv2DBackpropFilter/{name}", "Conv2DBackpropFilter",
                 [image, np.array(f_shape, np.int32), to_format(d, layout)],
                 [conv_filter(w, exact[0], exact[2], f_shape).astype(dtype)], attrs, tol)
    x, f = np.ones((1, 4, 4, 2)), np.ones((3, 3, 2, 1))
    a = attributes("NHWC", (1, 1), "VALID")
    for name, dilations, message in (("count", "[1,1]", "dilations must have 4"), ("batch", "[2,1,1,1]", "must be 1"),
                                     ("zero", "[1,0,1,1]", "positive"), ("large", "[1,2147483648,1,1]", "too large"),
                                     ("span", "[1,3,1,1]", "height 7 does not fit into 4")):
        g.error(f"Conv2D/dilations-{name}", "Conv2D", [x, f], message, dict(a, dilations=dilations))


# image, filter, strides, dilations; the filter's third dimension tells the groups. Groups of one
# channel with one or more outputs each; of some, with fewer and with more outputs; of whole vectors.
GROUPED = [((2, 5, 4, 6), (3, 3, 2, 3), (1, 1), (1, 1)), ((1, 6, 5, 4), (2, 3, 2, 6), (2, 1), (1, 2)),
           ((2, 4, 5, 3), (3, 3, 1, 3), (1, 1), (1, 1)), ((1, 5, 6, 3), (3, 2, 1, 6), (2, 2), (1, 1)),
           ((1, 3, 4, 4), (1, 1, 2, 4), (1, 1), (1, 1)), ((1, 3, 3, 32), (2, 2, 16, 32), (1, 1), (1, 1)),
           ((1, 4, 3, 17), (3, 3, 1, 17), (1, 1), (1, 1)), ((0, 4, 4, 4), (3, 3, 1, 4), (1, 1), (1, 1))]


def grouped(g):
    for dtype, layout, padding in itertools.product(FLOATS, ("NHWC", "NCHW"), ("SAME", "VALID", "EXPLICIT")):
        for shape, f_shape, strides, dilations in GROUPED:
            if (shape[3] > 16 and dtype == "float64") or (padding != "SAME" and shape[1] < 5):
                continue  # vectors of channels: of float32 only
            explicit = [(2, 1), (0, 2)] if padding == "EXPLICIT" else None
            w = Windows(shape, f_shape[:2], strides, padding, explicit, dilations)
            forward, of_image, of_filter = by_groups(shape[3] // f_shape[2])
            x, f = draw(shape).astype(dtype), draw(f_shape).astype(dtype)
            d = draw((shape[0], *w.out, f_shape[3])).astype(dtype)
            attrs = attributes(layout, strides, padding, explicit=explicit, dilations=dilations)
            name, tol = f"{dtype}/{layout}-{padding}-grouped", TOL[dtype]
            image = to_format(x, layout)
            exact = [a.astype(np.float64) for a in (x, f, d)]
            g.op(f"Conv2D/{name}", "Conv2D", [image, f],
                 [to_format(forward(w, *exact[:2]).astype(dtype), layout)], attrs, tol,
                 grad2=padding == "SAME")
            g.op(f"Conv2DBackpropInput/{name}", "Conv2DBackpropInput",
                 [np.array(image.shape, np.int32), f, to_format(d, layout)],
                 [to_format(of_image(w, *exact[1:]).astype(dtype), layout)], attrs, tol)
            g.op(f"Conv2DBackpropFilter/{name}", "Conv2DBackpropFilter",
                 [image, np.array(f_shape, np.int32), to_format(d, layout)],
                 [of_filter(w, exact[0], exact[2], f_shape).astype(dtype)], attrs, tol)
    a = attributes("NHWC", (1, 1), "SAME")
    for name, channels, f_shape, message in (
            ("channels", 5, (1, 1, 2, 4), "input has 5 channels, filter is for 2: [1,1,2,4]"),
            ("deep", 2, (1, 1, 4, 4), "input has 2 channels, filter is for 4: [1,1,4,4]"),
            ("none", 0, (1, 1, 2, 4), "input has 0 channels"),
            ("no-depth", 2, (1, 1, 0, 4), "input has 2 channels"),
            ("outputs", 6, (1, 1, 2, 4), "3 groups for filter [1,1,2,4], whose outputs they do not divide")):
        x, f = np.ones((1, 2, 2, channels)), np.ones(f_shape)
        d = np.ones((1, 2, 2, f_shape[3]))
        g.error(f"Conv2D/groups-{name}", "Conv2D", [x, f], message, a)
        g.error(f"Conv2DBackpropInput/groups-{name}", "Conv2DBackpropInput",
                [np.array(x.shape, np.int32), f, d], message, a)
        g.error(f"Conv2DBackpropFilter/groups-{name}", "Conv2DBackpropFilter",
                [x, np.array(f_shape, np.int32), d], message, a)


def larger_than_image(g):
    """out = (in - span + stride) / stride, cut toward zero: 0, or an error if it is negative."""
    for dtype, layout in itertools.product(FLOATS, ("NHWC", "NCHW")):
        for size, stride in ((5, 1), (6, 2), (7, 2), (9, 3)):
            attrs = attributes(layout, (stride, 1), "VALID")
            x, f = np.ones((1, 4, 4, 2), dtype), np.ones((size, 2, 2, 3), dtype)
            none, pooled = np.zeros((1, 0, 3, 3), dtype), np.zeros((1, 0, 3, 2), dtype)
            image, name = to_format(x, layout), f"{dtype}/{layout}-larger"
            g.op(f"Conv2D/{name}", "Conv2D", [image, f], [to_format(none, layout)], attrs, grad="")
            g.op(f"Conv2DBackpropInput/{name}", "Conv2DBackpropInput",
                 [np.array(image.shape, np.int32), f, to_format(none, layout)], [image * 0], attrs, grad="")
            g.op(f"Conv2DBackpropFilter/{name}", "Conv2DBackpropFilter",
                 [image, np.array(f.shape, np.int32), to_format(none, layout)], [f * 0], attrs, grad="")
            attrs = attributes(layout, (stride, 1), "VALID", (size, 2))
            empty = to_format(pooled, layout)
            g.op(f"MaxPool/{name}", "MaxPool", [image], [empty], attrs, grad="")
            g.op(f"MaxPoolGrad/{name}", "MaxPoolGrad", [image, empty, empty], [image * 0], attrs, grad="")
            g.op(f"AvgPool/{name}", "AvgPool", [image], [empty], attrs, grad="")
            g.op(f"AvgPoolGrad/{name}", "AvgPoolGrad", [np.array(image.shape, np.int32), empty], [image * 0],
                 attrs, grad="")
    for size, stride in ((6, 1), (8, 2), (10, 3)):
        g.error("Conv2D/much-larger", "Conv2D", [np.ones((1, 4, 4, 2)), np.ones((size, 2, 2, 3))], "does not fit",
                attributes("NHWC", (stride, 1), "VALID"))


POOLS = [((2, 5, 4, 2), (2, 2), (2, 2)), ((1, 5, 4, 2), (3, 2), (1, 1)), ((1, 4, 4, 1), (1, 1), (2, 2)),
         ((0, 4, 4, 2), (2, 2), (1, 1)), ((1, 2, 2, 67), (2, 2), (1, 2))]


def pools(g):
    for dtype, layout, padding in itertools.product(FLOATS, ("NHWC", "NCHW"), ("SAME", "VALID")):
        for shape, ksize, strides in POOLS:
            w = Windows(shape, ksize, strides, padding)
            # All values differ, by more than a central difference sees.
            x = (rng.permutation(int(np.prod(shape))).reshape(shape) * 0.125).astype(dtype)
            d = draw((shape[0], *w.out, shape[3])).astype(dtype)
            attrs = attributes(layout, strides, padding, ksize)
            name, tol = f"{dtype}/{layout}-{padding}", TOL[dtype]
            image, y = to_format(x, layout), max_pool(w, x).astype(dtype)
            g.op(f"MaxPool/{name}", "MaxPool", [image], [to_format(y, layout)], attrs, grad2=True)
            g.op(f"MaxPoolGrad/{name}", "MaxPoolGrad", [image, to_format(y, layout), to_format(d, layout)],
                 [to_format(max_pool_grad(w, x, d).astype(dtype), layout)], attrs, tol, grad=[2], grad2=True)
            e = rng.standard_normal(shape).round(2).astype(dtype)
            g.op(f"MaxPoolGradGrad/{name}", "MaxPoolGradGrad",
                 [image, to_format(y, layout), to_format(e, layout)],
                 [to_format(max_pool_grad_grad(w, x, e).astype(dtype), layout)], attrs, tol, grad=[2], grad2=True)
            g.op(f"AvgPool/{name}", "AvgPool", [image], [to_format(avg_pool(w, x).astype(dtype), layout)],
                 attrs, tol, grad2=True)
            g.op(f"AvgPoolGrad/{name}", "AvgPoolGrad", [np.array(image.shape, np.int32), to_format(d, layout)],
                 [to_format(avg_pool_grad(w, d).astype(dtype), layout)], attrs, tol)
        explicit = [(1, 0), (0, 1)]
        w = Windows((1, 4, 4, 2), (2, 2), (1, 1), "EXPLICIT", explicit)
        x = rng.permutation(32).reshape(1, 4, 4, 2).astype(dtype)
        g.op(f"MaxPool/{dtype}/{layout}-EXPLICIT", "MaxPool", [to_format(x, layout)],
             [to_format(max_pool(w, x).astype(dtype), layout)],
             attributes(layout, (1, 1), "EXPLICIT", (2, 2), explicit))
    for dtype in FLOATS:
        a = attributes("NHWC", (2, 2), "VALID", (2, 2))
        ties = np.array([[1, 1], [1, 0]], dtype).reshape(1, 2, 2, 1)
        one = np.full((1, 1, 1, 1), 1, dtype)
        g.op(f"MaxPoolGrad/{dtype}/ties", "MaxPoolGrad", [ties, one, one],
             [np.array([[1, 0], [0, 0]], dtype).reshape(1, 2, 2, 1)], a, grad=[2])
        g.op(f"MaxPoolGradGrad/{dtype}/ties", "MaxPoolGradGrad",
             [ties, one, np.array([[5, 6], [7, 8]], dtype).reshape(1, 2, 2, 1)], [one * 5], a, grad=[2])
        special = np.array([[1, np.nan], [np.inf, 0]], dtype).reshape(1, 2, 2, 1)
        g.op(f"MaxPool/{dtype}/nan", "MaxPool", [special], [one * np.nan], a, nograd="NaN")
        infinite = np.array([[-np.inf, -np.inf], [-np.inf, -np.inf]], dtype).reshape(1, 2, 2, 1)
        g.op(f"MaxPool/{dtype}/infinite", "MaxPool", [infinite], [one * -np.inf], a, nograd="infinite")
    x, a = np.ones((1, 4, 4, 2)), attributes("NHWC", (1, 1), "VALID", (2, 2))
    y = np.ones((1, 3, 3, 2))
    for op in ("MaxPool", "AvgPool"):
        g.error(f"{op}/rank", op, [np.ones((4, 4, 2))], "rank 4", a)
        g.error(f"{op}/ksize", op, [x], "ksize", dict(a, ksize="[1,2,2]"))
        g.error(f"{op}/depth", op, [x], "batch and channels must be 1", dict(a, ksize="[1,1,1,2]"))
        g.error(f"{op}/window", op, [x], "does not fit", dict(a, ksize="[1,6,1,1]"))
    g.error("MaxPoolGrad/output", "MaxPoolGrad", [x, x, y], "orig_output must be", a)
    g.error("MaxPoolGrad/grad", "MaxPoolGrad", [x, y, x], "grad must be", a)
    g.error("MaxPoolGradGrad/output", "MaxPoolGradGrad", [x, x, x], "orig_output must be", a)
    g.error("MaxPoolGradGrad/grad", "MaxPoolGradGrad", [x, y, y], "grad must be", a)
    g.error("AvgPoolGrad/grad", "AvgPoolGrad", [np.array(x.shape, np.int32), x], "grad must be", a)
    g.error("AvgPoolGrad/shape", "AvgPoolGrad", [np.array([1, 4, 4], np.int32), y], "4 elements", a)


def lrn(x, radius, bias, alpha, beta):
    c = x.shape[3]
    near = np.abs(np.subtract.outer(np.arange(c), np.arange(c))) <= radius
    norm = bias + alpha * np.einsum("nhwk,kc->nhwc", x**2, near)
    return x * norm**-beta, norm, near


def normalizations(g):
    for dtype, shape in itertools.product(FLOATS, ((2, 2, 3, 7), (1, 1, 1, 1), (0, 2, 2, 3), (1, 1, 1, 35))):
        for radius, bias, alpha, beta in ((5, 1, 1, 0.5), (2, 2, 0.1, 0.75), (0, 1, 1, 1)):
            x, d = draw(shape).astype(dtype), draw(shape).astype(dtype)
            exact = x.astype(np.float64)
            y, norm, near = lrn(exact, radius, bias, alpha, beta)
            dx = d * norm**-beta - 2 * alpha * beta * exact * np.einsum("nhwk,kc->nhwc", d * y / norm, near)
            attrs = {"depth_radius": radius, "bias": bias, "alpha": alpha, "beta": beta}
            g.op(f"LRN/{dtype}", "LRN", [x], [y.astype(dtype)], attrs, TOL[dtype], grad2=True)
            g.op(f"LRNGrad/{dtype}", "LRNGrad", [d, x, y.astype(dtype)], [dx.astype(dtype)], attrs, TOL[dtype],
                 grad2=shape == (2, 2, 3, 7))
    g.error("LRN/rank", "LRN", [np.ones((2, 3))], "rank 4")
    g.error("LRNGrad/shapes", "LRNGrad", [np.ones((1, 1, 1, 2)), np.ones((1, 1, 1, 2)), np.ones((1, 1, 1, 3))],
            "must be")
    for dtype, layout, training in itertools.product(FLOATS, ("NHWC", "NCHW"), (True, False)):
        for shape in ((2, 3, 4, 3), (1, 2, 2, 19), (3, 1, 1, 1)):
            c, n = shape[3], shape[0] * shape[1] * shape[2]
            x = draw(shape).astype(dtype)
            d = draw(shape).astype(dtype)
            scale, offset = (rng.uniform(0.5, 2, c).astype(dtype) for _ in range(2))
            mean, var = (rng.uniform(0.5, 2, c).astype(dtype) for _ in range(2))
            given = [mean, var] if not training else [mean[:0], var[:0]]
            exact = x.astype(np.float64)
            if training:
                mean, var = exact.mean((0, 1, 2)), exact.var((0, 1, 2))
            eps = 1e-2
            r = 1 / np.sqrt(var.astype(np.float64) + eps)
            xc = exact - mean
            y = xc * r * scale + offset
            unbiased = var * n / (n - 1) if training else var
            vectors = [v.astype(dtype) for v in (mean, unbiased, mean, var)]
            attrs = {"epsilon": eps, "data_format": f'"{layout}"', "is_training": str(training).lower()}
            name, tol = f"{dtype}/{layout}-{'training' if training else 'inference'}", TOL[dtype]
            image = to_format(x, layout)
            g.op(f"FusedBatchNorm/{name}", "FusedBatchNorm", [image, scale, offset, *given],
                 [to_format(y.astype(dtype), layout), *vectors], attrs, tol,
                 grad=[0, 1, 2], grad2=shape == (2, 3, 4, 3))
            g.op(f"FusedBatchNorm/{name}-y", "FusedBatchNorm", [image, scale, offset, *given],
                 [to_format(y.astype(dtype), layout), None, None, None, None], attrs, tol, grad=[0, 1, 2],
                 grad2=n > 1)
            if training:
                dx = scale * r * (d - d.mean((0, 1, 2)) - xc * r**2 * (d * xc).mean((0, 1, 2)))
            else:
                dx = scale * r * d
            g.op(f"FusedBatchNormGrad/{name}", "FusedBatchNormGrad",
                 [to_format(d, layout), image, scale, vectors[2], vectors[3]],
                 [to_format(dx.astype(dtype), layout), (d * xc * r).sum((0, 1, 2)).astype(dtype),
                  d.sum((0, 1, 2), dtype=np.float64).astype(dtype), None, None], attrs, tol * 4,
                 grad2=shape == (2, 3, 4, 3))
    for dtype in FLOATS:  # as in TensorFlow: statistics of nothing are NaN, its gradients 0
        none, v, nan = np.zeros((0, 2, 2, 3), dtype), np.ones(3, dtype), np.full(3, np.nan, dtype)
        g.op(f"FusedBatchNorm/{dtype}-nothing", "FusedBatchNorm", [none, v, v, v[:0], v[:0]], [none, nan, nan, nan, nan],
             nograd="statistics of nothing have none")
        g.op(f"FusedBatchNormGrad/{dtype}-nothing", "FusedBatchNormGrad", [none, none, v, nan, nan],
             [none, 0 * v, 0 * v, None, None], nograd="of nothing")
    x, v = np.ones((1, 2, 2, 3)), np.ones(3)
    g.error("FusedBatchNorm/scale", "FusedBatchNorm", [x, np.ones(2), v, v[:0], v[:0]], "one per channel")
    g.error("FusedBatchNorm/rank", "FusedBatchNorm", [np.ones((2, 3)), v, v, v[:0], v[:0]], "rank 4")
    g.error("FusedBatchNorm/mean", "FusedBatchNorm", [x, v, v, v[:0], v[:0]], "mean must have 3",
            {"is_training": "false"})
    g.error("FusedBatchNorm/given", "FusedBatchNorm", [x, v, v, v, v[:0]], "mean must be empty in training")
    g.error("FusedBatchNormGrad/scale", "FusedBatchNormGrad", [x, x, np.ones(2), v, v], "one per channel")
    g.error("FusedBatchNormGrad/shapes", "FusedBatchNormGrad", [np.ones((1, 2, 1, 3)), x, v, v, v],
            "same shape|must be")


with Golden("nn_conv") as golden:
    convolutions(golden)
with Golden("nn_conv_dilated") as golden:
    dilated(golden)
    larger_than_image(golden)
with Golden("nn_conv_grouped") as golden:
    grouped(golden)
with Golden("nn_pool") as golden:
    pools(golden)
with Golden("nn_norm") as golden:
    normalizations(golden)
