#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""L-BFGS by its definition, in NumPy: the inverse Hessian as a matrix, made of the pairs that are
kept one after the other (Nocedal & Wright, equation 7.16), not by two loops.
usage: optimizers.py RATE HISTORY STEPS: prints W and b of tests/e2e/optimizers.bats after each
step."""
import sys

import numpy as np

rate, history, steps = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
x = np.sin(np.arange(1, 49)).reshape(12, 4)
y = np.cos(2 * np.arange(1, 37)).reshape(12, 3)


def gradient(v):
    h = np.tanh(x @ v[:12].reshape(4, 3) + v[12:])
    d = (h - y) / 12 * (1 - h * h)
    return np.concatenate([(x.T @ d).ravel(), d.sum(0)])


def inverse_hessian(pairs):
    s, c = pairs[-1]
    H = np.eye(15) * (s @ c) / (c @ c)
    for s, c in pairs:
        V = np.eye(15) - np.outer(c, s) / (c @ s)
        H = V.T @ H @ V + np.outer(s, s) / (c @ s)
    return H


v = np.concatenate([0.3 * np.sin(np.arange(1, 13)), np.zeros(3)])
pairs, last = [], None
for _ in range(steps):
    g = gradient(v)
    if last is not None and (v - last[0]) @ (g - last[1]) > 0:
        pairs = (pairs + [(v - last[0], g - last[1])])[-history:]
    last = (v.copy(), g)
    if pairs:
        v = v - rate * inverse_hessian(pairs) @ g
    else:
        v = v - rate * min(1, 1 / np.abs(g).sum()) * g
    print(" ".join("%.17g" % e for e in v))
