#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The nets of gpu.lua in PyTorch, on the GPU, with SGD. For each line of stdin, "HOW TYPE STEPS",
seconds per step, or "-" if that fails: HOW is eager, compile (torch.compile) or graphs (a captured
step), TYPE float32, tf32 or bf16 (autocast). Of images in both layouts the faster one is taken.
usage: peer_gpu.py MODEL BATCH"""
import contextlib
import sys
import time

import torch
from torch import nn

functional = nn.functional


class Branches(nn.ModuleList):
    def forward(self, x):
        return torch.cat([branch(x) for branch in self], 1)


def conv(i, o, size, stride=1, pad=None):
    pad = size // 2 if pad is None else pad
    return nn.Sequential(nn.Conv2d(i, o, size, stride, pad), nn.ReLU())


def dense(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.ReLU())


def head(i, o=4096):
    return [nn.Flatten(), dense(i, o), dense(o, 4096), nn.Linear(4096, 1000)]


def alexnet():
    return nn.Sequential(conv(3, 64, 11, 4, 0), nn.MaxPool2d(3, 2), conv(64, 192, 5),
                         nn.MaxPool2d(3, 2), conv(192, 384, 3), conv(384, 256, 3),
                         conv(256, 256, 3), nn.MaxPool2d(3, 2), *head(9216))


def overfeat():
    return nn.Sequential(conv(3, 96, 11, 4, 0), nn.MaxPool2d(2), conv(96, 256, 5, 1, 0),
                         nn.MaxPool2d(2), conv(256, 512, 3), conv(512, 1024, 3),
                         conv(1024, 1024, 3), nn.MaxPool2d(2), *head(36864, 3072)[:2],
                         dense(3072, 4096), nn.Linear(4096, 1000))


def vgg():
    layers, channels = [], 3
    for stage in (64,), (128,), (256, 256), (512, 512), (512, 512):
        for n in stage:
            layers.append(conv(channels, n, 3))
            channels = n
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, *head(25088))


def googlenet():
    def halve():
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    def module(i, a, b1, b2, c1, c2, d):
        return Branches([conv(i, a, 1), nn.Sequential(conv(i, b1, 1), conv(b1, b2, 3)),
                         nn.Sequential(conv(i, c1, 1), conv(c1, c2, 5)),
                         nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(i, d, 1))])

    return nn.Sequential(
        conv(3, 64, 7, 2), halve(), conv(64, 64, 1), conv(64, 192, 3), halve(),
        module(192, 64, 96, 128, 16, 32, 32), module(256, 128, 128, 192, 32, 96, 64), halve(),
        module(480, 192, 96, 208, 16, 48, 64), module(512, 160, 112, 224, 24, 64, 64),
        module(512, 128, 128, 256, 24, 64, 64), module(512, 112, 144, 288, 32, 64, 64),
        module(528, 256, 160, 320, 32, 128, 128), halve(),
        module(832, 256, 160, 320, 32, 128, 128), module(832, 384, 192, 384, 48, 128, 128),
        nn.AvgPool2d(7), nn.Flatten(), nn.Linear(1024, 1000))


def bn(i, o, size, stride=1, valid=False):
    """A path of one: convolution without a bias, normalized."""
    height, width = size if isinstance(size, tuple) else (size, size)
    pad = (0, 0) if valid else (height // 2, width // 2)
    return nn.Sequential(nn.Conv2d(i, o, (height, width), stride, pad, bias=False),
                         nn.BatchNorm2d(o, 0.001), nn.ReLU())


def path(i, *sizes):
    """Of (channels, size[, stride, valid]) in turn."""
    layers = []
    for o, *rest in sizes:
        layers.append(bn(i, o, *rest))
        i = o
    return nn.Sequential(*layers)


def averaged(i, o):
    return nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), bn(i, o, 1))


def mixed35(i, n):
    return Branches([path(i, (64, 1)), path(i, (48, 1), (64, 5)),
                     path(i, (64, 1), (96, 3), (96, 3)), averaged(i, n)])


def mixed17(n):
    return Branches([path(768, (192, 1)), path(768, (n, 1), (n, (1, 7)), (192, (7, 1))),
                     path(768, (n, 1), (n, (7, 1)), (n, (1, 7)), (n, (7, 1)), (192, (1, 7))),
                     averaged(768, 192)])


def mixed8(i):
    def fork(*sizes):
        return nn.Sequential(path(i, *sizes), Branches([bn(384, 384, (1, 3)),
                                                        bn(384, 384, (3, 1))]))
    return Branches([path(i, (320, 1)), fork((384, 1)), fork((448, 1), (384, 3)),
                     averaged(i, 192)])


def inception():
    return nn.Sequential(
        path(3, (32, 3, 2, True), (32, 3, 1, True), (64, 3)), nn.MaxPool2d(3, 2),
        path(64, (80, 1, 1, True), (192, 3, 1, True)), nn.MaxPool2d(3, 2),
        mixed35(192, 32), mixed35(256, 64), mixed35(288, 64),
        Branches([path(288, (384, 3, 2, True)), path(288, (64, 1), (96, 3), (96, 3, 2, True)),
                  nn.MaxPool2d(3, 2)]),
        *(mixed17(n) for n in (128, 160, 160, 192)),
        Branches([path(768, (192, 1), (320, 3, 2, True)),
                  path(768, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, True)),
                  nn.MaxPool2d(3, 2)]),
        mixed8(1280), mixed8(2048), nn.AvgPool2d(8), nn.Flatten(), nn.Linear(2048, 1000))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(10000, 512), nn.LSTM(512, 512)
        self.output = nn.Linear(512, 10000)

    def forward(self, x):
        return self.output(self.lstm(self.words(x))[0]).flatten(0, 1)


class Chain(nn.Module):
    def __init__(self, ops=200):
        super().__init__()
        self.w, self.ops = nn.Parameter(torch.full((256,), 0.5)), ops

    def forward(self, _):
        h = self.w
        for _ in range(self.ops // 2):
            h = torch.flip(torch.tanh(h), (0,))
        return h.sum()


def perceptron():
    return nn.Sequential(dense(784, 512), dense(512, 512), nn.Linear(512, 10))


NETS = {  # shape of an example, classes
    "softmax": (lambda: nn.Linear(784, 10), (784,), 10),
    "mlp": (perceptron, (784,), 10),
    "alexnet": (alexnet, (3, 227, 227), 1000),
    "overfeat": (overfeat, (3, 231, 231), 1000),
    "vgg": (vgg, (3, 224, 224), 1000),
    "googlenet": (googlenet, (3, 224, 224), 1000),
    "inception": (inception, (3, 299, 299), 1000),
    "lstm": (Lstm, None, 10000),
    "chain": (Chain, (1,), 10),
}


class Step:
    """A training step of one net, in one layout, by one way."""

    def __init__(self, model, batch, how, kind, channels_last, device):
        make, shape, classes = NETS[model]
        torch.manual_seed(0)
        self.is_chain = model == "chain"
        self.net, self.kind, self.device = make().to(device), kind, device
        if shape:
            self.x = torch.randn(batch, *shape, device=device)
            rows = batch
        else:
            rows = 20 * batch
            self.x = torch.randint(0, classes, (20, batch), device=device)
        self.y = torch.randint(0, classes, (rows,), device=device)
        if channels_last:
            self.net = self.net.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=1e-4)
        self.forward = torch.compile(self.loss) if how == "compile" else self.loss
        self.run = self.capture() if how == "graphs" else self.train

    def loss(self):
        if self.is_chain:
            return self.net(self.x)
        half = torch.autocast(self.device, torch.bfloat16) if self.kind == "bf16" \
            else contextlib.nullcontext()
        with half:
            return functional.cross_entropy(self.net(self.x), self.y)

    def train(self):
        if self.is_chain:
            with torch.no_grad():
                self.forward()
            return
        self.sgd.zero_grad(set_to_none=True)
        self.forward().backward()
        self.sgd.step()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.train()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.train()
        return graph.replay

    def seconds(self, steps):
        set_precision(self.kind)
        wait = torch.cuda.synchronize if self.device == "cuda" else lambda: None
        wait()
        began = time.perf_counter()
        for _ in range(steps):
            self.run()
        wait()
        return (time.perf_counter() - began) / steps


def set_precision(kind):
    torch.set_float32_matmul_precision("highest" if kind == "float32" else "high")
    torch.backends.cudnn.allow_tf32 = kind != "float32"
    torch.backends.cudnn.benchmark = True


def fastest(model, batch, how, kind, device):
    """Of both layouts; what torch.compile makes is in one that it chooses by itself."""
    shape = NETS[model][1]
    layouts = [True] if how == "compile" else [False, True]
    best, step = None, None
    for channels_last in layouts if shape and len(shape) == 3 else [False]:
        set_precision(kind)
        new = Step(model, batch, how, kind, channels_last, device)
        for _ in range(3):
            new.run()
        seconds = new.seconds(5)
        if best is None or seconds < best:
            best, step = seconds, new
        del new
    return step


def main():
    model, batch = sys.argv[1], int(sys.argv[2])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    steps = {}
    for line in sys.stdin:
        how, kind, count = line.split()
        try:
            if (how, kind) not in steps:
                steps[how, kind] = fastest(model, batch, how, kind, device)
            print(steps[how, kind].seconds(int(count)), flush=True)
        except Exception as error:  # one way that does not work is no reason to lose the others
            print(f"{model}, {how}, {kind}: {error}".splitlines()[0], file=sys.stderr)
            print("-", flush=True)


if __name__ == "__main__":
    main()
