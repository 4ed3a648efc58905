# SPDX-License-Identifier: Apache-2.0
"""Cases of MaxPool that leaves a byte for each window, and of its gradient from those, window by
window in NumPy."""
import numpy as np

from golden import Golden, rng

MADE = "it is made where gradients are there already"
NONE = 255


def padding_of(size, window, stride, same):
    if not same:
        return 0, (size - window) // stride + 1
    out = -(-size // stride)
    return max(0, (out - 1) * stride + window - size) // 2, out


def each_window(shape, window, strides, same):
    (top, rows), (left, columns) = (padding_of(shape[1 + i], window[i], strides[i], same) for i in (0, 1))
    for oy in range(rows):
        for ox in range(columns):
            yield oy, ox, [(dy * window[1] + dx, y, x)
                           for dy in range(window[0]) for dx in range(window[1])
                           for y, x in [(oy * strides[0] + dy - top, ox * strides[1] + dx - left)]
                           if 0 <= y < shape[1] and 0 <= x < shape[2]]


def out_shape(shape, window, strides, same):
    return (shape[0],) + tuple(padding_of(shape[1 + i], window[i], strides[i], same)[1] for i in (0, 1)) + shape[3:]


def pool(image, window, strides, same, masked):
    shape = out_shape(image.shape, window, strides, same)
    y, place = np.zeros(shape, image.dtype), np.full(shape, NONE, np.uint8)
    for oy, ox, cells in each_window(image.shape, window, strides, same):
        values = np.stack([image[:, y, x] for _, y, x in cells])
        odd = np.isnan(values)
        largest = np.max(values, axis=0)  # NaN where there is one
        first = np.argmax(np.where(odd.any(0), odd, values == largest), axis=0)
        y[:, oy, ox] = largest
        numbers = np.array([n for n, _, _ in cells], np.uint8)[first]
        place[:, oy, ox] = np.where(masked & ~(largest > 0), NONE, numbers)
    return y, place


def pool_grad(place, d, shape, window, strides, same):
    grad = np.zeros(shape)
    for oy, ox, cells in each_window(shape, window, strides, same):
        for n, y, x in cells:
            grad[:, y, x] += np.where(place[:, oy, ox] == n, d[:, oy, ox], 0)
    return grad.astype(d.dtype)


def attributes(window, strides, same, nchw):
    def quadruple(pair):
        return [1, 1, *pair] if nchw else [1, *pair, 1]
    return {"ksize": str(quadruple(window)).replace(" ", ""), "strides": str(quadruple(strides)).replace(" ", ""),
            "padding": '"SAME"' if same else '"VALID"', "data_format": '"NCHW"' if nchw else '"NHWC"'}


def listed(x, nchw):
    return x.transpose(0, 3, 1, 2) if nchw else x


POOLS = [((2, 5, 4, 2), (2, 2), (2, 2), False), ((1, 5, 6, 3), (3, 2), (1, 2), True),
         ((1, 7, 7, 17), (3, 3), (2, 2), True), ((1, 6, 6, 20), (3, 3), (1, 1), True),
         ((0, 4, 4, 2), (2, 2), (1, 1), False), ((1, 4, 4, 1), (1, 1), (2, 2), False),
         ((1, 17, 17, 1), (15, 16), (1, 1), False)]

with Golden("pool_place") as g:
    for dtype in ("float32", "float64"):
        for shape, window, strides, same in POOLS:
            for nchw in (False, True):
                for masked in (False, True):
                    image = rng.integers(-4, 4, shape).astype(dtype)  # equal ones among them
                    if image.size > 300:
                        image.flat[::17] = [np.nan, np.inf, -np.inf, -0.0][strides[0]]
                    y, place = pool(image, window, strides, same, masked)
                    d = rng.integers(-9, 9, y.shape).astype(dtype)
                    name = f"{dtype}/{'x'.join(map(str, shape + window + strides))}/" \
                           f"{'SAME' if same else 'VALID'}/{'NCHW' if nchw else 'NHWC'}{'/masked' * masked}"
                    a = attributes(window, strides, same, nchw)
                    g.op(f"MaxPoolWithPlace/{name}", "MaxPoolWithPlace", [listed(image, nchw)],
                         [listed(y, nchw), listed(place, nchw)], dict(a, masked=str(masked).lower()), nograd=MADE)
                    seen = str(list(listed(image, nchw).shape)).replace(" ", "")
                    g.op(f"MaxPoolPlaceGrad/{name}", "MaxPoolPlaceGrad", [listed(place, nchw), listed(d, nchw)],
                         [listed(pool_grad(place, d, shape, window, strides, same), nchw)],
                         dict(a, image=seen), nograd=MADE)
    a = attributes((2, 2), (1, 1), False, False)
    place, d = np.zeros((1, 3, 3, 2), np.uint8), np.ones((1, 3, 3, 2))
    g.error("MaxPoolWithPlace/cells", "MaxPoolWithPlace", [np.ones((1, 17, 17, 1))], "more than 254 cells",
            attributes((16, 16), (1, 1), False, False))
    g.error("MaxPoolWithPlace/rank", "MaxPoolWithPlace", [np.ones((4, 4, 2))], "rank 4", a)
    g.error("MaxPoolPlaceGrad/image", "MaxPoolPlaceGrad", [place, d], "image must have 4 elements",
            dict(a, image="[4,4]"))
    g.error("MaxPoolPlaceGrad/negative", "MaxPoolPlaceGrad", [place, d], "image is", dict(a, image="[1,4,-4,2]"))
    g.error("MaxPoolPlaceGrad/place", "MaxPoolPlaceGrad", [place, d], "place must be", dict(a, image="[1,5,4,2]"))
    g.error("MaxPoolPlaceGrad/grad", "MaxPoolPlaceGrad", [place, np.ones((1, 3, 2, 2))], "grad must be",
            dict(a, image="[1,4,4,2]"))
