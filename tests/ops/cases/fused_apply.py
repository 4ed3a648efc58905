# SPDX-License-Identifier: Apache-2.0
"""Cases of FusedApply: two updates of several variables, by the formulas in float64 (train.py); and
of FusedMatMulApply: of one, by a gradient that is a product."""
import numpy as np

from golden import Golden, typed, rng
from train import RULES

TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 8e-3, "bfloat16": 6e-2}
SHAPES = [(3,), (0,), (2, 3), (), (37,)]


def value_of(pair):
    return np.asarray(pair[1] if isinstance(pair, tuple) else pair, np.float64)



def declare(name, dtype, shape):
    text = "[" + ",".join(map(str, shape)) + "]"
    return [f"{name} = Variable() {{dtype={dtype}, shape={text}}}",
            f"from_{name} = Placeholder() {{dtype={dtype}, shape={text}}}",
            f"init_{name} = Assign({name}, from_{name})"]


def layout(inputs):
    slots = [float(x) for x in inputs if isinstance(x, str) and x != "g"]
    return slots, [x for x in inputs if not isinstance(x, str)]


def graph_of(op, inputs, attrs, dtype, shapes, narrow=None):
    slots, scalars = layout(inputs)
    lines, n = [], len(shapes)
    for i, shape in enumerate(shapes):
        text = "[" + ",".join(map(str, shape)) + "]"
        lines += declare(f"w{i}", dtype, shape)
        for k in range(len(slots)):
            lines += declare(f"w{i}s{k}", dtype, shape)
        lines.append(f"g{i} = Placeholder() {{dtype={narrow or dtype}, shape={text}}}")
    lines += [f"c{k} = Const() {{dtype={dtype}, value={x}}}" for k, x in enumerate(scalars)]
    names = [line.split()[0] for line in lines if line.startswith("init_")]
    lines.append("init = NoOp(" + ", ".join("^" + name for name in names) + ")")
    args = ([f"w{i}" for i in range(n)] + [f"w{i}s{k}" for i in range(n) for k in range(len(slots))]
            + [f"g{i}" for i in range(n)] + [f"c{k}" for k in range(len(scalars))])
    lines.append(f"update = FusedApply({', '.join(args)}) {{N={n}, M={n * len(slots)}, "
                 f"S={len(scalars)}, rule=\"{op}\"{', ' + attrs if attrs else ''}}}")
    return "\n".join(lines)


def arguments(inputs, slots, gradient, dtype):
    given, at = [], 0
    for x in inputs:
        if x == "g":
            given.append(gradient)
        elif isinstance(x, str):
            given.append(slots[at])
            at += 1
        else:
            given.append(value_of(typed(dtype, np.float64(x))))
    return given


def case(g, op, rule, inputs, attrs, dtype, shapes, narrow=None):
    starts, _ = layout(inputs)
    state, feeds, steps = [], {}, []
    for i, shape in enumerate(shapes):
        names = [f"w{i}"] + [f"w{i}s{k}" for k in range(len(starts))]
        given = [typed(dtype, rng.standard_normal(shape))]
        given += [typed(dtype, np.full(shape, start)) for start in starts]
        feeds.update({"from_" + name: value for name, value in zip(names, given)})
        state.append((names, [np.array(value_of(x)) for x in given]))
    steps.append(("init", feeds, {}))
    for _ in range(2):
        gradients = {}
        for i, (names, values) in enumerate(state):
            gradients[f"g{i}"] = typed(narrow or dtype, rng.standard_normal(shapes[i]))
            rule(values[0], *arguments(inputs, values[1:], value_of(gradients[f"g{i}"]), dtype))
        steps.append(("update", gradients, {}))
        steps.append(("", {}, {name: typed(dtype, value) for names, values in state
                               for name, value in zip(names, values)}))
    label = op + ("/nesterov" if "nesterov" in attrs else "")
    by = f"/by-{narrow}" if narrow else ""
    g.graph(f"FusedApply/{label}/{dtype}{by}/{len(shapes)}",
            graph_of(op, inputs, attrs, dtype, shapes, narrow), steps, ops="FusedApply", tol=TOLERANCE[dtype])


def many(g, n):
    """More than are updated at once; a gradient and a start for all."""
    lines = ["start = Const() {dtype=float32, value=[1,2,3]}",
             "g = Const() {dtype=float32, value=[0.5,-1,4]}", "c = Const() {dtype=float32, value=2}"]
    for i in range(n):
        lines += [f"w{i} = Variable() {{dtype=float32, shape=[3]}}", f"i{i} = Assign(w{i}, start)"]
    lines += ["init = NoOp(" + ", ".join(f"^i{i}" for i in range(n)) + ")",
              "update = FusedApply(" + ", ".join([f"w{i}" for i in range(n)] + ["g"] * n + ["c"]) +
              f") {{N={n}, M=0, S=1, rule=\"ApplyGradientDescent\"}}"]
    after = np.array([0, 4, -5], np.float32)
    g.graph(f"FusedApply/ApplyGradientDescent/{n}", "\n".join(lines),
            [("init", {}, {}), ("update", {}, {})] +
            [("", {}, {f"w{i}": after}) for i in range(n)], ops="FusedApply")


def errors(g):
    op, _, inputs, _ = RULES[1]
    ones = {f"g{i}": np.ones(2, np.float32) for i in range(2)}
    text = graph_of(op, inputs, "", "float32", [(2,), (2,)])
    g.graph("FusedApply/uninitialized", text, [("update", ones, "no value|initialized")],
            ops="FusedApply")
    for what, bad, message in [
            ("slot", text.replace("w1s0 = Variable() {dtype=float32, shape=[2]}",
                                  "w1s0 = Variable() {dtype=float32, shape=[3]}"),
             "variable 1 and its slot must have the same shape, not [2] and [3]"),
            ("gradient", text.replace("g0 = Placeholder() {dtype=float32, shape=[2]}",
                                      "g0 = Placeholder() {dtype=float32, shape=[2,1]}"),
             "variable 0 and its gradient must have the same shape, not [2] and [2,1]"),
            ("scalar", text.replace("c1 = Const() {dtype=float32, value=0.9}",
                                    "c1 = Placeholder() {dtype=float32, shape=[2]}"), "scalar"),
            ("counts", text.replace("ApplyMomentum", "ApplyAdam"),
             "ApplyAdam of 2 variables has 4 slots and 6 scalars, not 2 and 2"),
            ("rule", text.replace("ApplyMomentum", "ApplyNothing"), "ApplyNothing")]:
        g.graph(f"FusedApply/{what}", bad.replace("from_w1s0 = Placeholder() {dtype=float32, "
                                                  "shape=[2]}",
                                                  "from_w1s0 = Placeholder() {dtype=float32}"),
                [], ops="FusedApply", error=message)
    late = text.replace("g1 = Placeholder() {dtype=float32, shape=[2]}",
                        "g1 = Placeholder() {dtype=float32, shape=[?]}")
    names = ["w0", "w0s0", "w1", "w1s0"]
    start = {"from_" + name: np.ones(2, np.float32) for name in names}
    g.graph("FusedApply/late", late,
            [("init", start, {}),
             ("update", {"g0": np.ones(2, np.float32), "g1": np.ones(3, np.float32)},
              "variable 1 and its gradient"),
             ("", {}, {name: np.ones(2, np.float32) for name in names})], ops="FusedApply")


def product_graph(op, inputs, attrs, dtype, left, right, shape):
    """A matrix w0 is updated by the product of a and b."""
    slots, scalars = layout(inputs)
    names = ["w0"] + [f"w0s{k}" for k in range(len(slots))]
    lines = [line for name in names for line in declare(name, dtype, shape)]
    lines += [f"c{k} = Const() {{dtype={dtype}, value={x}}}" for k, x in enumerate(scalars)]
    for name, size in (("a", left), ("b", right)):
        lines.append(f"{name} = Placeholder() {{dtype={dtype}, shape=[{size[0]},{size[1]}]}}")
    lines.append("init = NoOp(" + ", ".join("^init_" + name for name in names) + ")")
    args = names + [f"c{k}" for k in range(len(scalars))] + ["a", "b"]
    lines.append(f"update = FusedMatMulApply({', '.join(args)}) {{M={len(slots)}, "
                 f"S={len(scalars)}, rule=\"{op}\", {attrs}}}")
    return names, "\n".join(lines)


def by_product(g, op, rule, inputs, attrs, dtype, sizes, ta, tb):
    m, k, n = sizes
    left, right = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    flags = f"transpose_a={str(ta).lower()}, transpose_b={str(tb).lower()}"
    flags += ", " + attrs if attrs else ""
    names, text = product_graph(op, inputs, flags, dtype, left, right, (m, n))
    given = [typed(dtype, rng.standard_normal((m, n)))]
    given += [typed(dtype, np.full((m, n), start)) for start in layout(inputs)[0]]
    steps = [("init", {"from_" + name: value for name, value in zip(names, given)}, {})]
    values = [np.array(value_of(x)) for x in given]
    for _ in range(2):
        a, b = (typed(dtype, rng.standard_normal(size)) for size in (left, right))
        x, y = value_of(a), value_of(b)
        gradient = (x.T if ta else x) @ (y.T if tb else y)
        rule(values[0], *arguments(inputs, values[1:], gradient, dtype))
        steps += [("update", {"a": a, "b": b}, {}),
                  ("", {}, {name: typed(dtype, v) for name, v in zip(names, values)})]
    label = op + ("/nesterov" if "nesterov" in attrs else "")
    g.graph(f"FusedMatMulApply/{label}/{dtype}/{m}x{k}x{n}", text, steps, ops="FusedMatMulApply",
            tol=10 * TOLERANCE[dtype])


def product_errors(g):
    op, _, inputs, _ = RULES[1]
    sizes, flags = ((2, 3), (3, 4)), "transpose_a=false"
    names, late = product_graph(op, inputs, flags, "float32", ("?", 3), (3, 4), ("?", 4))
    ones = {"from_" + name: np.ones((5, 4), np.float32) for name in names}
    operands = {"a": np.ones((2, 3), np.float32), "b": np.ones((3, 4), np.float32)}
    g.graph("FusedMatMulApply/shape", late.replace("Variable() {dtype=float32, shape=[?,4]",
                                                   "Variable() {dtype=float32, shape=[5,4]"),
            [("init", ones, {}),
             ("update", operands, "the product is [2,4], the variable [5,4]"),
             ("", {}, {name: np.ones((5, 4), np.float32) for name in names})],
            ops="FusedMatMulApply")
    text = product_graph(op, inputs, flags, "float32", *sizes, (2, 4))[1]
    for what, old, new, message in [
            ("rule", "ApplyMomentum", "ApplyNothing", "ApplyNothing"),
            ("counts", "ApplyMomentum", "ApplyAdam",
             "ApplyAdam of 1 variables has 2 slots and 6 scalars, not 1 and 2"),
            ("slot", "w0s0 = Variable() {dtype=float32, shape=[2,4]}",
             "w0s0 = Variable() {dtype=float32, shape=[2,5]}", "variable 0 and its slot")]:
        bad = text.replace(old, new).replace("from_w0s0 = Placeholder() {dtype=float32, "
                                             "shape=[2,4]}",
                                             "from_w0s0 = Placeholder() {dtype=float32}")
        g.graph(f"FusedMatMulApply/{what}", bad, [], ops="FusedMatMulApply", error=message)


with Golden("fused_apply") as golden:
    for op, rule, inputs, attrs in RULES:
        for dtype in ("float32", "float64"):
            case(golden, op, rule, inputs, attrs, dtype, SHAPES)
    for op, rule, inputs, attrs in RULES[:3]:
        for dtype in ("float16", "bfloat16"):
            case(golden, op, rule, inputs, attrs, dtype, SHAPES + [(600,)])
    many(golden, 70)
    errors(golden)
    for index, (op, rule, inputs, attrs) in enumerate(RULES):
        for at, sizes in enumerate([(5, 1, 7), (4, 3, 6), (3, 0, 2), (0, 2, 3)]):
            by_product(golden, op, rule, inputs, attrs, "float32", sizes, (index + at) % 2 == 0,
                       (index + at) % 3 == 0)
    product_errors(golden)
    for index, (op, rule, inputs, attrs) in enumerate(RULES):
        case(golden, op, rule, inputs, attrs, "float32", [(3,), (0,), (), (300,)],
             ("float16", "bfloat16")[index % 2])
    op, _, inputs, _ = RULES[1]
    for dtype, narrow in (("float64", "bfloat16"), ("bfloat16", "float16")):
        golden.graph(f"FusedApply/{dtype}-by-{narrow}",
                     graph_of(op, inputs, "", dtype, [(2,)], narrow), [], ops="FusedApply",
                     error=f"gradients of {narrow} cannot update variables of {dtype}")
