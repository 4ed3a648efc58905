#!/usr/bin/env python3
"""What tests/e2e/intervals.lua learns when workers hold gradients back, in NumPy: usage:
intervals.py OPTIMIZER WORKERS STEPS VARIABLE=INTERVAL... GOT. Workers take turns, a step of ROWS
rows each, which fK.csv has of worker K. GOT is what the job's checkpoint has, a line
`{"name": value}` each: variables, and as worker_value:NAME/gradient/held/K what worker K holds
back. Exit 1 says what is not what it is to be."""
import json
import sys

import numpy as np

ROWS = 2


def first(m, n):
    i, k = np.mgrid[1:m + 1, 1:n + 1]
    return ((i * 5 + k * 3) % 7 - 3) / 10


def gradients_of(v, x, y):
    h = np.tanh(x @ v["one/W"])
    d = 2 * (h @ v["two/W"] + v["two/b"] - y) / y.size
    return {"two/W": h.T @ d, "two/b": d.sum(0),
            "one/W": x.T @ (d @ v["two/W"].T * (1 - h * h))}


class Optimizer:
    def __init__(self, name):
        self.name, self.moments = name, {}

    def update(self, name, value, g, y, rounds):
        if self.name != "adam":
            return value - (0.1 if self.name == "sgd" else 0.2 * np.mean(y * y)) * g
        m, v = self.moments.get(name, (0, 0))
        self.moments[name] = m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        rate = 0.1 * np.sqrt(1 - 0.999**rounds) / (1 - 0.9**rounds)
        return value - rate * m / (np.sqrt(v) + 1e-8)


def train(optimizer, workers, steps, interval):
    v = {"one/W": first(6, 4), "two/W": first(4, 3), "two/b": np.zeros(3)}
    rows = [np.loadtxt(f"f{k}.csv", delimiter=",") for k in range(workers)]
    held = [{name: np.zeros_like(value) for name, value in v.items()} for _ in range(workers)]
    least, rounds = min(interval.get(name, 1) for name in v), 0
    for step in range(1, steps + 1):
        for k in range(workers):
            rounds += step % least == 0
            batch = rows[k][(step - 1) * ROWS:step * ROWS]
            for name, g in gradients_of(v, batch[:, :6], batch[:, 6:]).items():
                held[k][name] += g
            for name in v:
                if step % interval.get(name, 1) == 0:
                    v[name] = optimizer.update(name, v[name], held[k][name], batch[:, 6:], rounds)
                    held[k][name] = np.zeros_like(v[name])
    for k in range(workers):
        for name in held[k]:
            if interval.get(name, 1) > least:
                v[f"worker_value:{name}/gradient/held/{k}"] = held[k][name]
    v["steps"] = np.array(rounds)
    return v


def main():
    optimizer, workers, steps = Optimizer(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    interval = {name: int(n) for name, n in (a.split("=") for a in sys.argv[4:-1])}
    want = train(optimizer, workers, steps, interval)
    with open(sys.argv[-1]) as lines:
        got = {name: np.array(value) for line in lines for name, value in json.loads(line).items()}
    if sorted(got) != sorted(want):
        sys.exit(f"the checkpoint has {sorted(got)}, not {sorted(want)}")
    for name, value in want.items():
        off = np.abs(got[name] - value).max()
        print(f"{name}: {off:.1e} off, of up to {np.abs(value).max():.3f}")
        if off > 1e-11:
            sys.exit(f"{name} is {got[name]}, not {value}")


main()
