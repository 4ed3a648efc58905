#!/usr/bin/env python3
"""What tests/e2e/dense.lua learns in passes that update dense layers after each of them, in NumPy:
usage: dense.py SCHEME WORKERS ROWS STEPS OPTIMIZER INITIAL.npz TRAINED.npz CSV. The rows of the CSV
file are the workers', by rank, step after step. Exit 1 says which variable is not what it is to
be."""
import sys

import numpy as np

LAYERS = ("one/W", "one/b", "two/W", "two/b", "three/W")
RATES = {"sgd": 0.05, "momentum": 0.02, "adam": 0.003}


def windows(image):
    """Of each position of 8 by 8 the 3 by 3 pixels around it."""
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    return np.stack([padded[:, i:i + 8, k:k + 8] for i in range(3) for k in range(3)], -1)


class Optimizer:
    def __init__(self, name, variables):
        self.name, self.rate = name, RATES[name]
        self.first = {k: np.zeros_like(v) for k, v in variables.items()}
        self.second = {k: np.zeros_like(v) for k, v in variables.items()}

    def update(self, variables, gradients, step):
        for k, g in gradients.items():
            m, v = self.first[k], self.second[k]
            if self.name == "sgd":
                variables[k] -= self.rate * g
            elif self.name == "momentum":
                m[...] = 0.9 * m + g
                variables[k] -= self.rate * m
            else:
                m[...] = 0.9 * m + 0.1 * g
                v[...] = 0.999 * v + 0.001 * g * g
                rate = self.rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                variables[k] -= rate * m / (np.sqrt(v) + 1e-8)


def gradients_of(v, x, y, n):
    """Of the rows' share in a mean over n."""
    pixels = windows(x.reshape(-1, 8, 8) / 16)
    c = np.maximum(pixels @ v["conv/W"].reshape(9, 4) + v["conv/b"], 0)
    flat = c.reshape(len(x), 256)
    one = np.maximum(flat @ v["one/W"] + v["one/b"], 0)
    two = np.tanh(one @ v["two/W"] + v["two/b"])
    logits = two @ v["three/W"] + v["three/b"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    d = e / e.sum(1, keepdims=True)
    d[np.arange(len(y)), y] -= 1
    d /= n
    d_two = d @ v["three/W"].T * (1 - two * two)
    d_one = d_two @ v["two/W"].T * (one > 0)
    d_c = (d_one @ v["one/W"].T).reshape(c.shape) * (c > 0)
    return {"three/W": two.T @ d, "three/b": d.sum(0), "two/W": one.T @ d_two,
            "two/b": d_two.sum(0), "one/W": flat.T @ d_one, "one/b": d_one.sum(0),
            "conv/W": np.einsum("nijp,nijf->pf", pixels, d_c).reshape(3, 3, 1, 4),
            "conv/b": d_c.sum((0, 1, 2))}


def rows_of(scheme, k, workers, rows):
    if scheme == "b":
        return list(range(k * rows, (k + 1) * rows))
    return [w * rows + i for w in range(workers)
            for i in range(k * rows // workers, (k + 1) * rows // workers)]


def main():
    scheme, workers, rows, steps, optimizer, before, after, csv = sys.argv[1:]
    workers, rows, steps = int(workers), int(rows), int(steps)
    initial, trained = np.load(before), np.load(after)
    v = {k: initial[k].astype(np.float64) for k in (*LAYERS, "three/b", "conv/W", "conv/b")}
    data = np.loadtxt(csv, delimiter=",").reshape(steps, workers * rows, 65)
    how = Optimizer(optimizer, v)
    for step in range(steps):
        rest = {}
        for k in range(workers):
            batch = data[step][rows_of(scheme, k, workers, rows)]
            g = gradients_of(v, batch[:, :64], batch[:, 64].astype(int), workers * rows)
            for name in set(g) - set(LAYERS):
                rest[name] = rest.get(name, 0) + g[name]
            how.update(v, {name: g[name] for name in LAYERS}, step + 1)
        how.update(v, rest, step + 1)
    for name, value in v.items():
        far = np.abs(trained[name] - value).max()
        if not far < 1e-11:
            sys.exit(f"{name}: {far} from what it is to be")


main()
