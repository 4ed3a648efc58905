#!/usr/bin/env python3
"""Losses of 100 steps of tests/e2e/perceptron.lua as PyTorch computes them; writes OPTIMIZER.txt.
Run with a Python that has torch and numpy, from the root of the repository.

Adam's epsilon stands beside the root of the raw second moment here (the "epsilon hat" of Kingma and
Ba), while PyTorch corrects the moment's bias first; so PyTorch is given epsilon divided by
sqrt(1 - beta2^t) in step t, which makes the two formulas the same."""
import gzip
import math

import numpy as np
import torch

rows = np.loadtxt(gzip.open("examples/data/digits.csv.gz", "rt"), delimiter=",", dtype=np.float32)
x = torch.tensor(rows[:1437, :64] / 16)
y = torch.tensor(rows[:1437, 64].astype(np.int64))


def waves(*shape):
    n = math.prod(shape)
    w = np.array([0.1 * math.sin(i) for i in range(1, n + 1)], dtype=np.float32)
    return torch.tensor(w.reshape(shape), requires_grad=True)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.003, eps=1e-8),
}

torch.set_num_threads(1)
for name, make in OPTIMIZERS.items():
    w1, w2 = waves(64, 128), waves(128, 10)
    b1, b2 = torch.zeros(128, requires_grad=True), torch.zeros(10, requires_grad=True)
    optimizer = make([w1, b1, w2, b2])
    losses = []
    while len(losses) < 100:
        for at in range(0, len(x), 64):
            if len(losses) == 100:
                break
            if name == "adam":
                for group in optimizer.param_groups:
                    group["eps"] = 1e-8 / math.sqrt(1 - 0.999 ** (len(losses) + 1))
            optimizer.zero_grad()
            hidden = torch.relu(x[at:at + 64] @ w1 + b1)
            loss = torch.nn.functional.cross_entropy(hidden @ w2 + b2, y[at:at + 64])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with open(f"tests/data/perceptron/{name}.txt", "w") as out:
        out.writelines(f"{loss:.8g}\n" for loss in losses)
