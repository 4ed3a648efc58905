# SPDX-License-Identifier: Apache-2.0
"""Variables: assigning, adding, scattering, counting. Reference: NumPy, step by step."""
import numpy as np

from golden import NUMBERS, Golden

FIXED = ["float32", "float64", "float16", "bfloat16", "complex64", "int8", "int16", "int32",
         "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


def of_type(name, values):
    values = np.asarray(values)
    if name == "bfloat16":
        return (name, values.astype(np.float32))
    return values % 2 == 1 if name == "bool" else values.astype(name)


def shape_text(shape):
    return "[" + ",".join("?" if d < 0 else str(d) for d in shape) + "]"


def variable(t, shape):
    return f"w = Variable() {{dtype={t}, shape={shape_text(shape)}}}\n"


def placeholder(name, t, shape=None):
    known = f", shape={shape_text(shape)}" if shape is not None else ""
    return f"{name} = Placeholder() {{dtype={t}{known}}}\n"


def assign(g):
    for t in FIXED:
        x, y = of_type(t, [[1, 2, 3]]), of_type(t, [[3, 1, 4]])
        text = variable(t, (1, 3)) + placeholder("x", t) + "a = Assign(w, x)\n" + \
            "known = IsVariableInitialized(w)\n"
        g.graph(f"assign/{t}", text,
                [("", {}, {"known": np.array(False)}), ("a", {"x": x}, {}),
                 ("", {}, {"w": x, "known": np.array(True)}), ("", {"x": y}, {"a": y}),
                 ("", {}, {"w": y})], ops="Variable Assign IsVariableInitialized")
    for shape in ((), (0,), (2, 0), (7,), (2,) * 8):
        x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        text = variable("float32", shape) + placeholder("x",
                        "float32", shape) + "a = Assign(w, x)\n"
        g.graph("assign/shape", text, [("a", {"x": x}, {}), ("", {}, {"w": x})], ops="Assign")
    g.graph("assign/large", variable("float32", (100000,)) +
            "x = Range(start, limit, delta)\n"
            "start = Const() {dtype=float32, value=0}\n"
            "limit = Const() {dtype=float32, value=100000}\n"
            "delta = Const() {dtype=float32, value=1}\na = Assign(w, x)\n"
            "all = Const() {dtype=int32, value=[0]}\ntotal = Sum(w, all)\n",
            [("a", {}, {}), ("", {}, {"total": np.float32(4999950000)})], ops="Assign", tol=1e-5)
    text = variable("float32", (2,)) + placeholder("x", "float32") + \
        "a = Assign(w, x)\ny = Identity(w)\n"
    g.graph("assign/wrong-shape", text,
            [("a", {"x": np.ones(3, np.float32)},
              "variable 'w' is [2], the new value [3]|same shape"),
             ("y", {}, "variable 'w' is not initialized")], ops="Assign")
    g.graph("assign/static-shape", variable("float32", (2,)) +
            placeholder("x", "float32", (3,)) + "a = Assign(w, x)\n", [], ops="Assign",
            error="must have the same shape")
    free = variable("float32", (-1, 2)) + placeholder("x",
                    "float32", (-1, 2)) + "a = Assign(w, x)\n"
    one, two = np.ones((1, 2), np.float32), np.ones((2, 2), np.float32)
    g.graph("assign/open-dimension", free, [("a", {"x": two}, {}), ("", {}, {"w": two}),
                                            ("a", {"x": one}, "variable 'w' is [2,2]")],
            ops="Assign")
    loose = variable("float32", (2, 2)) + placeholder("x", "float32") + \
        "a = Assign(w, x) {validate_shape=false}\n"
    g.graph("assign/any-shape", loose,
            [("a", {"x": two}, {}), ("a", {"x": one}, {}), ("", {"x": one + 1}, {"a": one + 1})],
            ops="Assign")


def sharing(g):
    pair = 'v = Variable() {dtype=%s, shape=%s, shared_name="s"}\n' + \
        placeholder("x", "float32") + \
        'w = Variable() {dtype=float32, shape=[2], shared_name="s"%s}\na = Assign(w, x)\n' \
        "y = Identity(v, ^a)\n"
    x = np.array([1, 2], np.float32)
    g.graph("variable/shared", pair % ("float32", "[2]", ""), [("", {"x": x}, {"y": x})],
            ops="Variable")
    g.graph("variable/other-type", pair % ("int32", "[2]", ""),
            [("y", {"x": x}, "'s'")], ops="Variable")
    g.graph("variable/other-shape", pair % ("float32", "[3]", ""),
            [("y", {"x": x}, "'s'")], ops="Variable")
    g.graph("variable/other-container", pair % ("float32", "[3]", ', container="c"'),
            [("y", {"x": x}, "variable 's' is not initialized")], ops="Variable")


def update(g):
    for op, f in (("AssignAdd", np.add), ("AssignSub", np.subtract)):
        for t in NUMBERS:
            for shape in ((), (0, 2), (5,), (2, 3), (1, 2) * 4):
                n = int(np.prod(shape))
                x = np.arange(n).reshape(shape).astype(t)
                y = (np.arange(n).reshape(shape) * 3 - 4).astype(t)
                text = variable(t, shape) + placeholder("x", t) + placeholder("y", t) + \
                    f"a = Assign(w, x)\nb = {op}(w, y)\n"
                g.graph(f"{op.lower()}/{t}", text,
                        [("a", {"x": x}, {}), ("b", {"y": y}, {}), ("", {}, {"w": f(x, y)}),
                         ("", {"y": y}, {"b": f(f(x, y), y)})], ops=op)
        wrap = np.array([2**31 - 1, -2**31], np.int32)
        one = np.array([1, 1], np.int32)
        text = variable("int32", (2,)) + placeholder("x", "int32") + placeholder("y", "int32") + \
            f"a = Assign(w, x)\nb = {op}(w, y)\n"
        with np.errstate(all="ignore"):
            g.graph(f"{op.lower()}/wraps", text, [("a", {"x": wrap}, {}), ("b", {"y": one}, {}),
                                                  ("", {}, {"w": f(wrap, one)})], ops=op)
        g.graph(f"{op.lower()}/shape", text,
                [("a", {"x": wrap}, {}),
                 ("b", {"y": np.ones(3, np.int32)},
                  "variable 'w' is [2], the value [3]|same shape")], ops=op)
        g.graph(f"{op.lower()}/uninitialized", text,
                [("b", {"y": one}, "is not initialized")], ops=op)
        g.graph(f"{op.lower()}/itself", variable("float32", (2,)) + placeholder("x", "float32") +
                f"a = Assign(w, x)\nb = {op}(w, w)\n",
                [("a", {"x": np.array([1, 2], np.float32)}, {}), ("b", {}, {}),
                 ("", {}, {"w": np.array([2, 4] if op == "AssignAdd" else [0, 0], np.float32)})],
                ops=op)
    # reads come before writes of the same step, unless an edge says otherwise
    text = variable("float32", (2,)) + placeholder("x", "float32") + placeholder("y", "float32") + \
        "a = Assign(w, x)\nread = Identity(w)\nb = AssignAdd(w, y)\nlate = Identity(w, ^b)\n" \
        "through = Identity(b)\n"
    x, y = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
    g.graph("assign/order", text,
            [("a", {"x": x}, {}),
             ("", {"y": y}, {"read": x, "late": x + y, "through": x + y, "b": x + y}),
             ("", {"y": y}, {"late": x + 2 * y, "read": x + y})],
            ops="Assign AssignAdd Identity")


def scatter(g):
    for op in ("ScatterAdd", "ScatterSub", "ScatterUpdate"):
        def apply(w, i, u):
            w = np.array(w)
            if op == "ScatterUpdate":
                for k, row in zip(i.ravel(), u.reshape((i.size,) + w.shape[1:])):
                    w[k] = row
            else:
                (np.add if op == "ScatterAdd" else np.subtract).at(w, i, u)
            return w
        for t in (FIXED if op == "ScatterUpdate" else NUMBERS):
            for it in ("int32", "int64"):
                w, i = np.arange(8).reshape(4, 2), np.array([3, 0, 3], it)
                u = np.array([[1, 2], [3, 4], [5, 7]])
                if op == "ScatterSub" or op == "ScatterAdd":
                    w = w + 20
                y = apply(w, i, u)
                text = variable(t, (4, 2)) + placeholder("x", t) + placeholder("i", it) + \
                    placeholder("u", t) + f"a = Assign(w, x)\nb = {op}(w, i, u)\n"
                g.graph(f"{op.lower()}/{t}", text,
                        [("a", {"x": of_type(t, w)}, {}),
                         ("b", {"i": i, "u": of_type(t, u)}, {}),
                         ("", {}, {"w": of_type(t, y)})], ops=op)
        text = placeholder("x", "float32") + placeholder("i", "int32") + \
            placeholder("u", "float32") + \
            f"a = Assign(w, x)\nb = {op}(w, i, u)\n"
        for shape, index in (((5,), 2), ((5,), [[0, 1], [1, 4]]), ((3, 2, 2), [2, 2]),
                             ((3, 0), [1]),
                             ((3, 2), np.zeros(0, np.int32)), ((2,) * 8, [1])):
            index = np.array(index, np.int32)
            w = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
            u = (np.arange(int(np.prod(index.shape + shape[1:]))) + 10).astype(np.float32)
            u = u.reshape(index.shape + shape[1:])
            g.graph(f"{op.lower()}/shape", variable("float32", shape) + text,
                    [("a", {"x": w}, {}), ("b", {"i": index, "u": u}, {}),
                     ("", {}, {"w": apply(w, index, u)})], ops=op)
        # The variable's own rows, moved: as they were before any of them was written.
        w, i = np.array([[1], [10]], np.float32), np.array([1, 0], np.int32)
        own = variable("float32", (2, 1)) + placeholder("x", "float32") + \
            placeholder("i", "int32") + f"a = Assign(w, x)\nr = Identity(w)\nb = {op}(w, i, r)\n"
        g.graph(f"{op.lower()}/own-rows", own,
                [("a", {"x": w}, {}), ("b", {"i": i}, {}), ("", {}, {"w": apply(w, i, w)})],
                ops=op)
        own = variable("int32", (2,)) + placeholder("x", "int32") + placeholder("u", "int32") + \
            f"a = Assign(w, x)\nb = {op}(w, w, u)\n"
        g.graph(f"{op.lower()}/own-indices", own,
                [("a", {"x": i}, {}), ("b", {"u": i + 5}, {}), ("", {}, {"w": apply(i, i, i + 5)})],
                ops=op)
        w, u = np.ones((2, 2), np.float32), np.ones((1, 2), np.float32)
        g.graph(f"{op.lower()}/outside", variable("float32", (2, 2)) + text,
                [("a", {"x": w}, {}),
                 ("b", {"i": np.array([2], np.int32), "u": u}, "index 2 at [0] is outside [0, 2)"),
                 ("b", {"i": np.array([-1], np.int32), "u": u},
                  "index -1 at [0] is outside [0, 2)"),
                 ("b", {"i": np.array([0, 1], np.int32), "u": u}, "updates must be [2,2]"),
                 ("", {}, {"w": w})], ops=op)
        g.graph(f"{op.lower()}/scalar", variable("float32", ()) + text, [], ops=op,
                error="at least rank 1")


def count(g):
    for t in ("int32", "int64"):
        text = variable(t, ()) + placeholder("x", t) + \
                        "a = Assign(w, x)\nn = CountUpTo(w) {limit=3}\n"
        at = [np.array(v, t) for v in range(4)]
        g.graph(f"countupto/{t}", text,
                [("a", {"x": at[1]}, {}), ("", {}, {"n": at[1]}), ("", {}, {"n": at[2]}),
                 ("n", {}, "reached limit of 3"), ("", {}, {"w": at[3]})], ops="CountUpTo")
    g.graph("countupto/uninitialized", text, [("n", {}, "is not initialized")], ops="CountUpTo")
    g.graph("countupto/vector", variable("int32", (2,)) + "n = CountUpTo(w) {limit=3}\n", [],
            ops="CountUpTo", error="must be a scalar")


with Golden("state") as g:
    assign(g)
    sharing(g)
    update(g)
    scatter(g)
    count(g)
