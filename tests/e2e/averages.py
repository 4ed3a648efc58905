#!/usr/bin/env python3
"""What two_layers.lua learns when each worker steps by itself and all take the mean of
what they have every so many steps, in NumPy. usage:
averages.py OPTIMIZER EVERY STEPS,STEPS,... ENDS OFF GOT
Worker k has STEPS[k] steps of two rows, which fK.csv has of it. After the steps of ENDS (1,2,...,
or -) all ended, and so took the mean, and went on. GOT is what the checkpoint has, a line
`{"name": value}` each. Exit 1 says which variable is more than OFF from what it is to be."""
import json
import sys

import numpy as np

from two_layers import batch, first, gradients_of, rows_of


def step(optimizer, v, x, y):
    """What a worker has afterwards, slots of the optimizer among it."""
    after, base = dict(v), 0.4 / v["one/W"].shape[1]
    for name, g in gradients_of(v, x, y).items():
        m = v.get(name + "/m", 0)
        if optimizer == "sgd":
            after[name] = v[name] - base * g
        elif optimizer == "momentum":
            after[name + "/m"] = 0.5 * m + g
            after[name] = v[name] - base * after[name + "/m"]
        else:
            powers = v.get("powers", np.array([0.9, 0.999]))
            after["powers"] = powers * np.array([0.9, 0.999])
            after[name + "/m"] = m = 0.9 * m + 0.1 * g
            after[name + "/v"] = s = 0.999 * v.get(name + "/v", 0) + 0.001 * g * g
            rate = base * np.sqrt(1 - powers[1]) / (1 - powers[0])
            after[name] = v[name] - rate * m / (np.sqrt(s) + 1e-8)
    return after


def mean(workers):
    return {name: sum(v[name] for v in workers) / len(workers) for name in workers[0]}


def train(optimizer, every, steps, ends, units):
    rows = rows_of(len(steps))
    workers = [first(units) for _ in steps]
    last = max(steps)
    for s in range(1, last + every):
        for k, n in enumerate(steps):
            if s <= n:
                workers[k] = step(optimizer, workers[k], *batch(rows[k], s))
        if s % every == 0 or s in ends:
            there = [k for k, n in enumerate(steps) if n > s - every]
            together = mean([workers[k] for k in there])
            for k in there:
                workers[k] = dict(together)
    return workers[steps.index(last)]


def main():
    optimizer, every, off = sys.argv[1], int(sys.argv[2]), float(sys.argv[5])
    steps = [int(n) for n in sys.argv[3].split(",")]
    ends = [int(n) for n in sys.argv[4].split(",") if n != "-"]
    with open(sys.argv[6]) as lines:
        got = {name: np.array(value) for line in lines for name, value in json.loads(line).items()}
    want = train(optimizer, every, steps, ends, got["one/W"].shape[1])
    for name in ("one/W", "two/W", "two/b"):
        is_off = np.abs(got[name] - want[name]).max()
        print(f"{name}: {is_off:.1e} off, of up to {np.abs(want[name]).max():.3f}")
        if is_off > off:
            sys.exit(f"{name} is {got[name]}, not {want[name]}")


main()
