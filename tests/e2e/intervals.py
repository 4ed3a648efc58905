#!/usr/bin/env python3
"""What two_layers.lua learns when workers hold gradients back, in NumPy: usage:
intervals.py OPTIMIZER WORKERS STEPS VARIABLE=INTERVAL... GOT. Workers take turns, a step of ROWS
rows each, which fK.csv has of worker K. GOT is what the job's checkpoint has, a line
`{"name": value}` each: variables, and as worker_value:NAME/gradient/held/K what worker K holds
back. Exit 1 says what is not what it is to be."""
import json
import sys

import numpy as np

from two_layers import batch, first, gradients_of, rows_of


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
    v, rows = first(units=4), rows_of(workers)
    held = [{name: np.zeros_like(value) for name, value in v.items()} for _ in range(workers)]
    least, rounds = min(interval.get(name, 1) for name in v), 0
    for step in range(1, steps + 1):
        for k in range(workers):
            rounds += step % least == 0
            x, y = batch(rows[k], step)
            for name, g in gradients_of(v, x, y).items():
                held[k][name] += g
            for name in v:
                if step % interval.get(name, 1) == 0:
                    v[name] = optimizer.update(name, v[name], held[k][name], y, rounds)
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
