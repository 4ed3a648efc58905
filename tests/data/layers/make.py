#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what layers.lua computes, by PyTorch: make.py > expected.txt. A line is a name and the
elements."""
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
count = 0


def sines(*shape):
    global count
    count += 1
    n = torch.Size(shape).numel()
    return torch.sin(torch.arange(n) * 1.7 + count).reshape(shape)


def put(name, y):
    print(name, *("%.17g" % value for value in y.detach().reshape(-1).tolist()))


def both(name, y, of):
    put(name, y)
    of.grad = None
    y.square().sum().backward()
    put(name + "_dx", of.grad)


def given(net):
    """Weights in the order in which the script makes them: W, U, b, c of each direction."""
    for tail in ("", "_reverse")[:2 if net.bidirectional else 1]:
        for name, turned in (("weight_ih", 1), ("weight_hh", 1), ("bias_ih", 0), ("bias_hh", 0)):
            p = getattr(net, name + "_l0" + tail)
            p.data = sines(*p.shape[::-1]).T.contiguous() if turned else sines(*p.shape)
    return net


x, q = sines(3, 4, 6).requires_grad_(), sines(3, 4, 8).requires_grad_()
k, v = sines(3, 5, 8), sines(3, 5, 4)
both("rnn", given(torch.nn.RNN(6, 5, batch_first=True))(x)[0], x)
y, (h, c) = given(torch.nn.LSTM(6, 5, batch_first=True))(x)
both("lstm", y, x)
put("lstm_h", h)
put("lstm_c", c)
both("gru", given(torch.nn.GRU(6, 5, batch_first=True))(x)[0], x)
packed = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 1, 3], True, False)
y, (h, c) = given(torch.nn.LSTM(6, 5, batch_first=True, bidirectional=True))(packed)
both("lstm_both", torch.nn.utils.rnn.pad_packed_sequence(y, True)[0], x)
put("lstm_both_h", torch.cat([h[0], h[1]], 1))
both("layer_norm", F.layer_norm(x, (6,)), x)
both("gelu", F.gelu(x), x)
both("silu", F.silu(x), x)


def attention(q, k, v, heads, causal=False):
    q, k, v = (t.reshape(*t.shape[:2], heads, -1).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores).tril() == 0, -torch.inf)
    return (scores.softmax(3) @ v).transpose(1, 2).flatten(2)


both("attention", attention(q, k, v, 2), q)
both("causal", attention(q, q, q, 4, True), q)
