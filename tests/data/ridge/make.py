#!/usr/bin/env python3
"""Weights of ridge regression on the diabetes data as NumPy solves it, in float64, to weights.txt.
Run with a Python that has numpy, from the root of the repository."""
import gzip

import numpy as np

with gzip.open("examples/data/diabetes.csv.gz", "rt") as file:
    rows = [line.split() for line in file]
data = np.array(rows[1:], dtype=np.float64)
x, y = data[:, :10], data[:, rows[0].index("progression")]
x = (x - x.mean(axis=0)) / x.std(axis=0)
weights = np.linalg.solve(x.T @ x + np.eye(10), x.T @ (y - y.mean()))
np.savetxt("tests/data/ridge/weights.txt", weights, fmt="%.17g")
