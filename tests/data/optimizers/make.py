#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what optimizers.lua computes in eight steps: make.py > expected.txt. A line is a name, the
step and the elements. By PyTorch, but LAMB and Lion, which it does not have: by the papers'
formulas."""
import torch
from torch.optim import lr_scheduler

torch.set_default_dtype(torch.float64)
STEPS = 8
C = torch.tensor([[1, 3, .5], [-1, 2, .25]])
START = torch.tensor([[.5, -1.25, 2], [1, 2, 3]])


def put(name, step, values):
    print(name, step, *("%.17g" % v for v in values))


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, with phi the identity."""
    def __init__(self, ws, **group):
        super().__init__(ws, group)

    @torch.no_grad()
    def step(self):
        group, (w,) = self.param_groups[0], self.param_groups[0]["params"]
        (b1, b2), s = group["betas"], self.state[w]
        s["t"] = s.get("t", 0) + 1
        s["m"] = b1 * s.get("m", 0) + (1 - b1) * w.grad
        s["v"] = b2 * s.get("v", 0) + (1 - b2) * w.grad ** 2
        r = s["m"] / (1 - b1 ** s["t"]) / ((s["v"] / (1 - b2 ** s["t"])).sqrt() + group["eps"])
        u = r + group["weight_decay"] * w
        w -= group["lr"] * w.norm() / u.norm() * u


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""
    def __init__(self, ws, **group):
        super().__init__(ws, group)

    @torch.no_grad()
    def step(self):
        group, (w,) = self.param_groups[0], self.param_groups[0]["params"]
        (b1, b2), m = group["betas"], self.state[w].get("m", torch.zeros_like(w))
        c = b1 * m + (1 - b1) * w.grad
        self.state[w]["m"] = b2 * m + (1 - b2) * w.grad
        w -= group["lr"] * (c.sign() + group["weight_decay"] * w)


def train(name, kind, start=START, **o):
    w = start.clone().requires_grad_()
    optimizer = kind([w], **o)
    for step in range(1, STEPS + 1):
        put(name, step, w.detach().reshape(-1).tolist())
        optimizer.zero_grad()
        s = w.reshape(2, 3)
        (C * s * s / 2 + s.sin()).sum().backward()
        optimizer.step()


adam = dict(lr=.1, betas=(.8, .9), eps=1e-3, weight_decay=.2)
train("w_adamw", torch.optim.AdamW, **adam)
train("w_kept", torch.optim.AdamW, **dict(adam, weight_decay=0))
train("w_radam", torch.optim.RAdam, decoupled_weight_decay=True, **adam)
train("w_nadam", torch.optim.NAdam, decoupled_weight_decay=True, momentum_decay=.01, **adam)
train("w_lamb", Lamb, **adam)
train("w_lion", Lion, lr=.1, betas=(.8, .7), weight_decay=.2)
train("w_factored", torch.optim.Adafactor, lr=.5, beta2_decay=-.7, weight_decay=.2)
train("w_adafactor", torch.optim.Adafactor, START.reshape(6), lr=.1, eps=(None, 2), d=1.25)
train("w_decayed", torch.optim.AdamW, lr=.1, weight_decay=.2)
train("w_plain", torch.optim.AdamW, lr=.1, weight_decay=0)


def rates(scheduler, **o):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=.5)
    scheduled, found = scheduler(optimizer, **o), []
    for _ in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduled.step()
    return found


cosine = rates(lr_scheduler.CosineAnnealingLR, T_max=6, eta_min=.1)[:7] + [.1]  # its wave goes on
for name, values in (
        ("cosine", cosine),
        ("warm_up", rates(lr_scheduler.LinearLR, start_factor=.25, total_iters=4)),
        ("both", [r * min(i / 4, 1) for i, r in enumerate(cosine)]),
        ("one_cycle", rates(lr_scheduler.OneCycleLR, max_lr=.5, total_steps=STEPS + 1,
                            pct_start=.45, div_factor=20, final_div_factor=100)),
        ("exponential", rates(lr_scheduler.ExponentialLR, gamma=.8))):
    for step, value in enumerate(values):
        put("s_" + name, step + 1, [value])
