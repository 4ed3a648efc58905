# SPDX-License-Identifier: Apache-2.0
"""Element-wise ops in one: what NumPy computes of the same steps in float64."""
import numpy as np

from golden import Golden, rng


STEPS = {
    "Mul": np.multiply, "Add": np.add, "Sub": np.subtract, "Maximum": np.maximum,
    "Neg": np.negative, "Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Exp": np.exp, "Square": np.square, "TanhGrad": lambda y, dy: dy * (1 - y * y),
}


def compute(steps, inputs):
    results = [x.astype(np.float64) for x in inputs]
    for op, *operands in steps:
        results.append(STEPS[op](*(results[i] for i in operands)))
    return results[-1]


def attrs(dtype, steps):
    padded = [operand for _, *operands in steps for operand in (operands + [-1])[:2]]
    ops = ",".join(f'"{op}"' for op, *_ in steps)
    return {"T": dtype, "ops": f"[{ops}]", "operands": "[" + ",".join(map(str, padded)) + "]"}


# name: steps (operands: inputs, then results) and which inputs are scalars
CHAINS = {
    "one": ([("Neg", 0)], 1, ()),
    "line": ([("Mul", 0, 1), ("Add", 3, 2), ("Tanh", 4)], 3, (1,)),
    "scalar-first": ([("Sub", 1, 0), ("Square", 2)], 2, (1,)),
    "tree": ([("Mul", 0, 1), ("Mul", 2, 3), ("Add", 4, 5)], 4, ()),
    "twice": ([("Exp", 0), ("Mul", 2, 0), ("Maximum", 3, 1)], 2, (1,)),
    "result-twice": ([("Sigmoid", 0), ("Mul", 1, 1), ("Sub", 2, 1)], 1, ()),
    "gradient": ([("Mul", 0, 1), ("Neg", 3), ("TanhGrad", 2, 4)], 3, ()),
    "deep": ([("Neg", 0)] + [("Add", 2 + i, 1) for i in range(11)], 2, ()),
    "balanced": ([("Square", i) for i in range(8)] +
                 [("Add", 8 + 2 * i, 9 + 2 * i) for i in range(7)], 8, ()),
}

with Golden("fused") as g:
    for dtype in ("float32", "float64"):
        for name, (steps, n, scalars) in CHAINS.items():
            for label, shape in {"scalar": (), "row": (7,), "matrix": (3, 5), "empty": (0, 2),
                                 "blocks": (1030,)}.items():
                if label == "blocks" and name not in ("line", "tree"):
                    continue
                xs = [np.round(rng.uniform(-1, 1, () if i in scalars else shape), 3).astype(dtype)
                      for i in range(n)]
                g.op(f"FusedElementwise/{dtype}/{name}/{label}", "FusedElementwise", xs,
                     [compute(steps, xs).astype(dtype)], attrs=attrs(dtype, steps),
                     tol=2e-6 if dtype == "float32" else None,
                     nograd="it is made where gradients are there already")
    x, row = np.ones((2, 3)), np.ones(3)
    one, sum_of = attrs("float64", [("Neg", 0)]), attrs("float64", [("Add", 0, 1)])
    for name, inputs, message, of in (
            ("shapes", [row, np.ones(2)], "input 1 is [2]", sum_of),
            ("broadcast", [x, row], "input 1 is [3], neither the output's [2,3] nor a scalar", sum_of),
            ("count", [x], "1 ops have 3 operands, not 2", {**one, "operands": "[0,-1,-1]"}),
            ("operand", [x], "operand 0 of op 0 is 1", {**one, "operands": "[1,-1]"}),
            ("later", [x], "operand 1 of op 0 is 2", {**sum_of, "operands": "[0,2]"}),
            ("op", [x], "no loop for MatMul of 2", {**one, "ops": '["MatMul"]', "operands": "[0,0]"}),
            ("arity", [x], "no loop for Neg of 2", {**one, "operands": "[0,0]"}),
            ("scalars", [x, np.array(2.0)], "all operands of op 0 are scalars",
             attrs("float64", [("Square", 1), ("Mul", 0, 2)]))):
        g.error(f"FusedElementwise/{name}", "FusedElementwise", inputs, message, attrs=of)
