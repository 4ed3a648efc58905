# SPDX-License-Identifier: Apache-2.0
"""Where of numbers, from NumPy."""
import numpy as np

from golden import Golden, Like, rng

TYPES = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
         "uint64", "bool"]


with Golden("array_where") as g:
    for dtype in TYPES:
        for shape in ((), (7,), (0,), (3, 4), (2, 0, 3), (1, 2, 1, 2, 1, 2, 1, 3)):
            x = rng.integers(0, 2, shape).astype(dtype) * np.asarray(3).astype(dtype)
            g.op(f"where/{dtype}", "Where", [x], [np.argwhere(x)])
    for dtype in ("float32", "float64", "float16"):
        x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-7, -1e-7, 0.5], dtype)
        g.op(f"where/{dtype}/special", "Where", [x], [np.argwhere(x)])
    g.op("where/bfloat16", "Where", [("bfloat16", np.array([0.0, -0.0, np.nan, 1, -2]))], [np.array([[2], [3], [4]])])
    x = np.array([0, 1j, 1, -1 + 1j, complex(-0.0, 0)], np.complex64)
    g.op("where/complex64", "Where", [x], [np.argwhere(x)])
    x = Like("int64", (3, 5000), 1499, 1, 0)  # several blocks
    wanted = np.argwhere(x.array == 1234)
    g.graph("where/long", """
        x = Placeholder() {dtype=int64, shape=[3,5000]}
        c = Const() {dtype=int64, value=1234}
        e = Equal(x, c)
        n = Cast(e) {DstT=float32}
        i = Where(n)
        j = Where(e)""", [("", {"x": x}, {"i": wanted, "j": wanted})])
