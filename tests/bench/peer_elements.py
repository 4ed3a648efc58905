#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ops of elements.lua in PyTorch, eager: a line `NAME milliseconds` for each, the shortest of
CALLS calls. usage: peer_elements.py CALLS     (OMP_NUM_THREADS sets the threads)"""
import os
import sys
import time

import torch
from torch.nn import functional as F

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
N = 2048
x, g, y = torch.randn(N, N), torch.randn(N, N), torch.rand(N, N) * 1.5 + 0.5
image = torch.randn(16, 64, 64, 64).permute(0, 3, 1, 2)  # channels last
whole, rows, positive = (y * 100).int(), torch.arange(N), x > 0
half, row, column = x[:, :N // 2], y[:1], y[:, :1]
grad = torch.ops.aten
OPS = {
    "abs": lambda: x.abs(),
    "add": lambda: x + y,
    "add_row": lambda: x + row,
    "add_column": lambda: x + column,
    "add_n": lambda: x + y + g,
    "all": lambda: positive.all(1),
    "argmax_column": lambda: x.argmax(0),
    "argmax_row": lambda: x.argmax(1),
    "average_pool": lambda: F.avg_pool2d(image, 3, 2, 1),
    "cast_bfloat16": lambda: x.bfloat16(),
    "cast_float16": lambda: x.half(),
    "cast_from_int32": lambda: whole.float(),
    "cast_int32": lambda: x.int(),
    "clip": lambda: x.clamp(-1, 1),
    "concat": lambda: torch.cat([x, y], 1),
    "cumsum_column": lambda: x.cumsum(0),
    "cumsum_row": lambda: x.cumsum(1),
    "div": lambda: x / y,
    "elu": lambda: F.elu(x),
    "elu_grad": lambda: grad.elu_backward(g, 1, 1, 1, True, x),
    "erf": lambda: x.erf(),
    "exp": lambda: x.exp(),
    "floor": lambda: x.floor(),
    "floor_div": lambda: torch.floor_divide(x, y),
    "gather": lambda: x.index_select(0, rows),
    "greater": lambda: x > y,
    "int_div": lambda: torch.floor_divide(whole, 7),
    "l2_loss": lambda: (x * x).sum() / 2,
    "log": lambda: y.log(),
    "log1p": lambda: y.log1p(),
    "log_softmax": lambda: x.log_softmax(1),
    "max_all": lambda: x.amax(),
    "max_column": lambda: x.amax(0),
    "max_row": lambda: x.amax(1),
    "max_pool": lambda: F.max_pool2d(image, 3, 2, 1),
    "mean_all": lambda: x.mean(),
    "mod": lambda: torch.remainder(x, y),
    "normal": lambda: torch.randn(N, N),
    "one_hot": lambda: F.one_hot(rows, N),
    "pad": lambda: F.pad(x, (1, 1, 1, 1)),
    "pow": lambda: y ** x,
    "prod_row": lambda: x.prod(1),
    "relu": lambda: x.relu(),
    "relu_grad": lambda: grad.threshold_backward(g, x, 0),
    "rsqrt": lambda: y.rsqrt(),
    "segment_sum": lambda: torch.zeros(N, N).index_add(0, rows, x),
    "select": lambda: torch.where(positive, x, y),
    "sigmoid": lambda: x.sigmoid(),
    "sin": lambda: x.sin(),
    "softmax": lambda: x.softmax(1),
    "softplus": lambda: F.softplus(x),
    "softplus_grad": lambda: grad.softplus_backward(g, x, 1, 20),
    "sqrt": lambda: y.sqrt(),
    "sum_all": lambda: x.sum(),
    "sum_column": lambda: x.sum(0),
    "sum_row": lambda: x.sum(1),
    "tanh": lambda: x.tanh(),
    "tanh_grad": lambda: grad.tanh_backward(g, x),
    "tile": lambda: half.repeat(1, 2),
    "top_k": lambda: x.topk(5),
    "transpose": lambda: x.t().contiguous(),
    "transpose_image": lambda: image.contiguous(),
    "truncated_normal": lambda: torch.nn.init.trunc_normal_(torch.empty(N, N), 0, 1, -2, 2),
    "uniform": lambda: torch.rand(N, N),
}


def milliseconds(op):
    began = time.perf_counter()
    op()
    return 1e3 * (time.perf_counter() - began)


for name, op in OPS.items():
    print(name, min(milliseconds(op) for _ in range(int(sys.argv[1]))))
