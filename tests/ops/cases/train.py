# SPDX-License-Identifier: Apache-2.0
"""Cases of ops/train: two updates each, by the formulas in float64 (ops/train/apply.c), of all of a
variable or of some of its rows."""
import numpy as np

from golden import FLOATS, Golden, rng



def descent(w, g, lr):
    w -= lr * g


def momentum(nesterov):
    def rule(w, a, lr, g, mu):
        a[...] = mu * a + g
        w -= lr * g + lr * mu * a if nesterov else lr * a
    return rule


def adagrad(w, a, lr, g):
    a += g**2
    w -= lr * g / np.sqrt(a)


def adadelta(w, a, u, lr, rho, epsilon, g):
    a[...] = rho * a + (1 - rho) * g**2
    d = np.sqrt(u + epsilon) / np.sqrt(a + epsilon) * g
    u[...] = rho * u + (1 - rho) * d**2
    w -= lr * d


def rmsprop(w, ms, mom, lr, rho, mu, epsilon, g):
    ms += (1 - rho) * (g**2 - ms)
    mom[...] = mu * mom + lr * g / np.sqrt(ms + epsilon)
    w -= mom


def adam(w, m, v, b1p, b2p, lr, b1, b2, epsilon, g):
    rate = lr * np.sqrt(1 - b2p) / (1 - b1p)
    m += (1 - b1) * (g - m)
    v += (1 - b2) * (g**2 - v)
    w -= rate * m / (np.sqrt(v) + epsilon)


def ftrl(w, a, z, g, lr, l1, l2, power):
    n = a + g**2
    z += g - (n**-power - a**-power) / lr * w
    w[...] = np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / (n**-power / lr + 2 * l2), 0)
    a[...] = n


# op, rule, inputs (a number: a scalar; a name: a slot's start; "g": the gradient), attributes
RULES = [
    ("ApplyGradientDescent", lambda w, lr, g: descent(w, g, lr), [0.1, "g"], ""),
    ("ApplyMomentum", momentum(False), ["0", 0.1, "g", 0.9], ""),
    ("ApplyMomentum", momentum(True), ["0", 0.1, "g", 0.9], "use_nesterov=true"),
    ("ApplyAdagrad", adagrad, ["0.1", 0.5, "g"], ""),
    ("ApplyAdadelta", adadelta, ["0", "0", 0.5, 0.9, 1e-3, "g"], ""),
    ("ApplyRMSProp", rmsprop, ["1", "0", 0.1, 0.9, 0.5, 1e-3, "g"], ""),
    ("ApplyAdam", adam, ["0", "0", 0.9, 0.999, 0.1, 0.9, 0.999, 1e-3, "g"], ""),
    ("ApplyFtrl", ftrl, ["0.1", "0", "g", 0.1, 0.0, 0.0, -0.5], ""),
    ("ApplyFtrl", ftrl, ["0.1", "0", "g", 0.1, 0.9, 0.3, -0.4], ""),
]


def text(shape):
    return "[" + ",".join("?" if n < 0 else str(n) for n in shape) + "]"


def graph_of(op, inputs, attrs, dtype, shape, gradient_shape=None):
    lines = [f"w = Variable() {{dtype={dtype}, shape={text(shape)}}}",
             f"start = Placeholder() {{dtype={dtype}, shape={text(shape)}}}",
             f"g = Placeholder() {{dtype={dtype}, shape={text(gradient_shape or shape)}}}", "init_w = Assign(w, start)"]
    names, slots = ["w"], []
    for i, x in enumerate(inputs):
        if x == "g":
            names.append("g")
        elif isinstance(x, str):
            slot = f"slot{i}"
            slots.append((slot, float(x)))
            lines += [f"{slot} = Variable() {{dtype={dtype}, shape={text(shape)}}}",
                      f"from{i} = Placeholder() {{dtype={dtype}, shape={text(shape)}}}",
                      f"init_{slot} = Assign({slot}, from{i})"]
            names.append(slot)
        else:
            lines.append(f"s{i} = Const() {{dtype={dtype}, value={x}}}")
            names.append(f"s{i}")
    lines.append(f"update = {op}({', '.join(names)})" + (f" {{{attrs}}}" if attrs else ""))
    return "\n".join(lines), slots


def case(g, op, rule, inputs, attrs, dtype, shape, rows=None):
    """rows: the first one that the gradient is of, and behind the last; None: all."""
    gradient_shape = (rows[1] - rows[0],) + shape[1:] if rows else shape
    of_rows = attrs
    if rows:
        of_rows = ", ".join(filter(None, [attrs, f"_first_row={rows[0]}"]))
    graph, slots = graph_of(op, inputs, of_rows, dtype, shape, gradient_shape)
    part = np.s_[rows[0]:rows[1]] if rows else np.s_[...]
    w = rng.standard_normal(shape).astype(dtype)
    gradients = [rng.standard_normal(gradient_shape).astype(dtype) for _ in range(2)]
    state = {name: np.full(shape, start, dtype) for name, start in slots}
    feeds = {"start": w}
    feeds.update({"from" + name[4:]: value for name, value in state.items()})
    steps = [(" ".join(["init_w"] + ["init_" + name for name, _ in slots]), feeds, {})]
    # Scalars as the variable's type sees them.
    exact = {name: value.astype(np.float64) for name, value in state.items()}
    exact_w = w.astype(np.float64)
    for gradient in gradients:
        args = [gradient.astype(np.float64) if x == "g"
                else exact[f"slot{i}"][part] if isinstance(x, str) else np.float64(np.dtype(dtype).type(x)) for i, x in enumerate(inputs)]
        exact_w = np.array(exact_w)
        rule(exact_w[part], *args)
        expected = {"update": exact_w.astype(dtype)}
        steps.append(("", {"g": gradient}, expected))
        steps.append(("", {}, {"w": exact_w.astype(dtype),
                               **{name: value.astype(dtype) for name, value in exact.items()}}))
    label = op + ("/nesterov" if "nesterov" in attrs else "")
    label += f"/rows_{rows[0]}_{rows[1]}" if rows else ""
    g.graph(f"{label}/{dtype}/{'x'.join(map(str, shape))}", graph, steps, ops=op,
            tol=1e-5 if dtype == "float32" else 1e-12)


def errors(g, op, inputs, attrs):
    graph, _ = graph_of(op, inputs, attrs, "float32", (2,))
    g.graph(f"{op}/uninitialized", graph, [("update", {"g": np.ones(2, np.float32)}, "no value|initialized")],
            ops=op)
    bad = graph.replace("g = Placeholder() {dtype=float32, shape=[2]}",
                        "g = Placeholder() {dtype=float32, shape=[3]}")
    g.graph(f"{op}/shapes", bad, [], ops=op, error="must have the same shape")


def row_errors(g):
    op, inputs = "ApplyGradientDescent", [0.1, "g"]
    for label, attrs, gradient_shape in (("behind", "_first_row=4", (2, 3)),
                                         ("far", "_first_row=9223372036854775807", (1, 3)),
                                         ("wide", "_first_row=1", (2, 4)),
                                         ("rank", "_first_row=1", (3,))):
        graph, _ = graph_of(op, inputs, attrs, "float32", (5, 3), gradient_shape)
        g.graph(f"{op}/rows/{label}", graph, [], ops=op,
                error="must be rows of var|must have the same shape")
    graph, _ = graph_of(op, inputs, "_first_row=0", "float32", (), (1,))
    g.graph(f"{op}/rows/scalar", graph, [], ops=op, error="must be rows of var")
    # What is not known before it runs.
    graph, _ = graph_of(op, inputs, "_first_row=4", "float32", (5, 3), (-1, 3))
    start = np.ones((5, 3), np.float32)
    g.graph(f"{op}/rows/unknown", graph,
            [("init_w", {"start": start}, {}),
             ("update", {"g": np.ones((2, 3), np.float32)}, "must be rows of var from row 4 on"),
             ("", {}, {"w": start})], ops=op)


def main():
    with Golden("train") as golden:
        for op, rule, inputs, attrs in RULES:
            for dtype in FLOATS:
                for shape in ((), (3,), (0,), (2, 3, 5), (1, 2, 1, 2, 1, 2, 1, 2)):
                    case(golden, op, rule, inputs, attrs, dtype, shape)
        for op, _, inputs, attrs in RULES:
            if not attrs:
                errors(golden, op, inputs, attrs)
        for op, rule, inputs, attrs in RULES:
            for rows in ((0, 2), (1, 4), (4, 5), (2, 2)):
                case(golden, op, rule, inputs, attrs, "float32", (5, 3), rows)
            case(golden, op, rule, inputs, attrs, "float64", (5, 3), (1, 4))
        row_errors(golden)


if __name__ == "__main__":
    main()
