#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes expected.txt: what prelude.lua computes in four steps, by NumPy and PyTorch.
A line is a name, the step (1 to 4) and the elements. Optimizers follow the formulas of
TensorFlow's kernels; losses and batch normalization are PyTorch's."""
import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
lines = []


def put(name, step, value):
    value = np.asarray(value, dtype=np.float64).reshape(-1)
    lines.append(" ".join([name, str(step)] + ["%.17g" % v for v in value]))


C = np.array([1, 3, .5])


def grad(w):
    return C * w + np.cos(w)


def sgd(w, g, s):
    return w - 0.1 * g


def momentum(w, g, s):
    s["a"] = 0.8 * s.get("a", 0) + g
    return w - 0.1 * s["a"]


def nesterov(w, g, s):
    s["a"] = 0.8 * s.get("a", 0) + g
    return w - (0.1 * g + 0.1 * 0.8 * s["a"])


def adagrad(w, g, s):
    s["a"] = s.get("a", 0.3) + g * g
    return w - 0.2 * g / np.sqrt(s["a"])


def adadelta(w, g, s):
    s["a"] = 0.9 * s.get("a", 0) + 0.1 * g * g
    d = np.sqrt(s.get("u", 0) + 1e-3) / np.sqrt(s["a"] + 1e-3) * g
    s["u"] = 0.9 * s.get("u", 0) + 0.1 * d * d
    return w - 0.5 * d


def rmsprop(w, g, s):
    ms = s.get("ms", 1)
    s["ms"] = ms + 0.2 * (g * g - ms)
    s["mom"] = 0.5 * s.get("mom", 0) + 0.05 * g / np.sqrt(s["ms"] + 1e-3)
    return w - s["mom"]


def adam(w, g, s):
    s["t"] = s.get("t", 0) + 1
    rate = 0.1 * np.sqrt(1 - 0.9 ** s["t"]) / (1 - 0.8 ** s["t"])
    s["m"] = 0.8 * s.get("m", 0) + 0.2 * g
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g * g
    return w - rate * s["m"] / (np.sqrt(s["v"]) + 1e-3)


def ftrl(w, g, s):
    rate, l1, l2, p = 0.3, 0.05, 0.1, -0.6
    a = s.get("a", 0.2)
    n = a + g * g
    z = s.get("z", 0) + g - (n ** -p - a ** -p) / rate * w
    s["a"], s["z"] = n, z
    return np.where(abs(z) > l1, (np.sign(z) * l1 - z) / (n ** -p / rate + 2 * l2), 0)


for rule in (sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, ftrl):
    w, state = np.array([.5, -1.25, 2]), {}
    for step in range(1, 5):
        put("w_" + rule.__name__, step, w)
        w = rule(w, grad(w), state)


def rows_gradient(w):
    g = np.zeros_like(w)
    for row, factor in ((2, 1), (0, 2), (2, 3)):
        g[row] += factor * np.cos(w[row])
    return g


def rows_adagrad(w, g, s):
    s["a"] = s.get("a", 0.1) + g * g
    return w - 0.1 * g / np.sqrt(s["a"])


def rows_momentum(w, g, s):
    s["a"] = 0.9 * s.get("a", 0) + g
    return w - 0.1 * s["a"]


for name, rule in (("sgd", sgd), ("adagrad", rows_adagrad), ("momentum", rows_momentum)):
    w, state = np.array([[.1, .2], [-.3, .4], [.5, -.6], [.7, .8]]), {}
    for step in range(1, 5):
        put("r_" + name, step, w)
        w = rule(w, rows_gradient(w), state)

average = counted = grown = 1.0
for step in range(1, 5):
    s = step - 1
    put("s_exponential", step, .5 * .8 ** (s / 2))
    put("s_staircase", step, .5 * .8 ** (s // 2))
    put("s_natural", step, .5 * np.exp(-.8 * s / 2))
    put("s_inverse", step, .5 / (1 + .8 * s / 2))
    put("s_polynomial", step, .4 * (1 - min(s, 2) / 2) ** 2 + .1)
    put("s_cycle", step, .4 * (1 - s / (2 * max(1, np.ceil(s / 2)))) ** 2 + .1)
    put("s_piecewise", step, [1, .5, .5, .25][s])
    put("e_plain", step, average)
    put("e_counted", step, counted)
    average -= .1 * (average - grown)
    counted -= (1 - min(.9, (1 + s) / (10 + s))) * (counted - grown)
    grown += 2

put("k_value", 1, [2, -1])
put("k_norm", 1, [1.5, -2])
put("k_small", 1, [3, -4])
put("k_zero", 1, [0, 0])
put("k_average", 1, [1.2, -1.6])
put("k_first", 1, [1.5, -2])
put("k_second", 1, [6])
put("k_total", 1, [13])

x = torch.tensor([[1, -2, .5], [0, 0, 0], [30, -5, 2]], requires_grad=True)
soft = torch.tensor([[.2, .3, .5], [1, 0, 0], [0, .9, .1]])
target, weights = torch.tensor([2, 0, 1]), torch.tensor([.5, 2, 1])
each = F.cross_entropy(x, target, reduction="none")
sigmoid = F.binary_cross_entropy_with_logits(x, soft)
sigmoid.backward()
squares = ((x - soft) ** 2).detach()
for name, value in {
        "l_sparse": each.mean(), "l_weighted": (each * weights).sum() / weights.sum(),
        "l_smooth": F.cross_entropy(x, target, label_smoothing=0.1),
        "l_soft": F.cross_entropy(x, soft), "l_sigmoid": sigmoid, "l_sigmoid_gradient": x.grad,
        "l_mse": F.mse_loss(x, soft), "l_mae": F.l1_loss(x, soft),
        "l_mse_weighted": (squares.mean(1) * weights).sum() / weights.sum(),
        "l_mse_scalar_weight": F.mse_loss(x, soft),
        "l_huber": F.huber_loss(x, soft, delta=1.5),
        "l_hinge": F.relu(1 - (2 * soft.round() - 1) * x).mean(),
        "l_r2": 1 - squares.sum() / ((soft - soft.mean()) ** 2).sum(),
        "l_accuracy": torch.tensor(2 / 3), "l_top": torch.tensor(2 / 3)}.items():
    put(name, 1, value.detach())



def sines(rows, columns, shift):
    i, k = torch.arange(1, rows + 1)[:, None], torch.arange(1, columns + 1)[None, :]
    return torch.sin(shift + i * 2.5 + k * 1.75)


def by_samples(x, w, b, true, sampled, expected, how, removes):
    """The losses of the rows, class by class: the formulas of sampled_softmax_loss, nce_loss."""
    losses = []
    for row in range(len(true)):
        logits = [x[row] @ w[c] + b[c] - np.log(expected[c]) for c in true[row]]
        shares = [1 / len(true[row])] * len(true[row])
        for c in sampled:
            if not (removes and c in true[row]):
                logits.append(x[row] @ w[c] + b[c] - np.log(expected[c]))
                shares.append(0)
        logits, shares = torch.stack(logits), torch.tensor(shares)
        if how == "nce":
            losses.append(F.binary_cross_entropy_with_logits(logits, shares, reduction="sum"))
        else:
            losses.append(-(shares * torch.log_softmax(logits, 0)).sum())
    return torch.stack(losses)


def check_gradient(f, at, gradient):
    """Against central differences."""
    for i in range(at.numel()):
        step = torch.zeros(at.numel())
        step[i] = 1e-6
        step = step.reshape(at.shape)
        slope = (f(at + step) - f(at - step)) / 2e-6
        assert abs(slope - gradient.reshape(-1)[i]) < 1e-8


BIAS = torch.tensor([.5, -.25, 0, 1.5, -1, .75, .1])
EXPECTED = {5: .25, 0: 1.75, 2: .5, 3: .5, 6: .125, 4: .25}
for name, true in (("one", [[3], [0], [6]]), ("two", [[3, 4], [0, 2], [6, 6]])):
    for how in ("sampled_softmax", "nce"):
        for removes in (True, False):
            at = [sines(3, 4, .5), sines(7, 4, .25), BIAS.clone()]
            for t in at:
                t.requires_grad_()

            def losses_at(x, w, b):
                return by_samples(x, w, b, true, [5, 0, 2, 0], EXPECTED, how, removes)

            each = losses_at(*at)
            each.mean().backward()
            key = f"q_{how}_{name}" + ("_removed" if removes else "")
            put(key, 1, each.mean().detach())
            put(key + "_rows", 1, each.detach())
            fixed = [t.detach() for t in at]
            for i, end in enumerate(("_dx", "_dw", "_db")):
                put(key + end, 1, at[i].grad)
                check_gradient(lambda v: losses_at(*fixed[:i], v, *fixed[i + 1:]).mean().item(),
                               fixed[i], at[i].grad)

flat = torch.tensor([[1, -2], [.5, 4], [3, .25], [-1, 1]])
for name, form in (("b_flat", (4, 2)), ("b_image", (4, 2, 1, 1))):
    norm = torch.nn.BatchNorm2d(2, eps=0.001, momentum=0.01) if len(form) == 4 else \
        torch.nn.BatchNorm1d(2, eps=0.001, momentum=0.01)
    batch = flat.reshape(form)
    for step in range(1, 5):
        norm.eval()
        put(name + "_eval", step, norm(batch).detach())
        norm.train()
        put(name, step, norm(batch).detach())

with open(__file__.replace("make.py", "expected.txt"), "w") as out:
    out.write("\n".join(lines) + "\n")
