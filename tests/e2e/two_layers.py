"""What tests/e2e/two_layers.lua starts with, and its gradients, in NumPy."""
import numpy as np

ROWS = 2


def first(units):
    def matrix(m, n):
        i, k = np.mgrid[1:m + 1, 1:n + 1]
        return ((i * 5 + k * 3) % 7 - 3) / 10
    return {"one/W": matrix(6, units), "two/W": matrix(units, 3), "two/b": np.zeros(3)}


def rows_of(workers):
    return [np.loadtxt(f"f{k}.csv", delimiter=",") for k in range(workers)]


def batch(rows, step):
    """Returns x and y of a step, which counts from 1."""
    rows = rows[(step - 1) * ROWS:step * ROWS]
    return rows[:, :6], rows[:, 6:]


def gradients_of(v, x, y):
    h = np.tanh(x @ v["one/W"])
    d = 2 * (h @ v["two/W"] + v["two/b"] - y) / y.size
    return {"two/W": h.T @ d, "two/b": d.sum(0),
            "one/W": x.T @ (d @ v["two/W"].T * (1 - h * h))}
