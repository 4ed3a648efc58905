#!/usr/bin/env python3
"""The nets of train.lua in PyTorch: seconds per training step with SGD, median of STEPS.
usage: peer_torch.py MODEL BATCH STEPS [--channels-last]     (OMP_NUM_THREADS sets the threads)"""
import statistics
import sys
import time

import torch
from torch import nn


def conv(i, o, size, stride=1, pad=0):
    return nn.Sequential(nn.Conv2d(i, o, size, stride, pad), nn.ReLU())


def dense(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.ReLU())


def mlp():
    return nn.Sequential(dense(784, 512), dense(512, 512), nn.Linear(512, 10))


def lenet():
    return nn.Sequential(conv(1, 32, 5, 1, 2), nn.MaxPool2d(2),
                         conv(32, 64, 5, 1, 2), nn.MaxPool2d(2),
                         nn.Flatten(), dense(3136, 512), nn.Linear(512, 10))


def alexnet():
    return nn.Sequential(conv(3, 64, 11, 4), nn.MaxPool2d(3, 2),
                         conv(64, 192, 5, 1, 2), nn.MaxPool2d(3, 2),
                         conv(192, 384, 3, 1, 1), conv(384, 256, 3, 1, 1),
                         conv(256, 256, 3, 1, 1), nn.MaxPool2d(3, 2),
                         nn.Flatten(), dense(9216, 4096), dense(4096, 4096),
                         nn.Linear(4096, 1000))


def vgg():
    layers, n = [], 3
    for widths in (64,), (128,), (256, 256), (512, 512), (512, 512):
        for width in widths:
            layers.append(conv(n, width, 3, 1, 1))
            n = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), dense(25088, 4096), dense(4096, 4096),
                         nn.Linear(4096, 1000))


NETS = {
    "mlp": (mlp, (784,), 10),
    "lenet": (lenet, (1, 28, 28), 10),
    "alexnet": (alexnet, (3, 227, 227), 1000),
    "vgg": (vgg, (3, 224, 224), 1000),
}


def main():
    model, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    make, shape, classes = NETS[model]
    torch.manual_seed(0)
    net, x = make(), torch.randn(batch, *shape)
    if "--channels-last" in sys.argv and x.dim() == 4:
        net = net.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, classes, (batch,))
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4)
    times = []
    for _ in range(steps + 3):
        start = time.perf_counter()
        sgd.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        loss.item()
        times.append(time.perf_counter() - start)
    print(statistics.median(times[3:]))


if __name__ == "__main__":
    main()
