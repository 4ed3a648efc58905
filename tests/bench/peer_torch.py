#!/usr/bin/env python3
"""The nets of train.sh in PyTorch: seconds per training step with SGD, median of STEPS.
usage: peer_torch.py MODEL BATCH STEPS [--channels-last]     (OMP_NUM_THREADS sets the threads)"""
import statistics
import sys
import time

import torch
from torch import nn

import peer_gpu
from peer_gpu import conv, dense


def lenet():
    return nn.Sequential(conv(1, 32, 5), nn.MaxPool2d(2), conv(32, 64, 5), nn.MaxPool2d(2),
                         nn.Flatten(), dense(3136, 512), nn.Linear(512, 10))


NETS = {**peer_gpu.NETS, "lenet": (lenet, (1, 28, 28), 10)}


def main():
    model, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    make, shape, classes = NETS[model]
    torch.manual_seed(0)
    net = make()
    x = torch.randn(batch, *shape) if shape else torch.randint(0, classes, (20, batch))
    y = torch.randint(0, classes, (batch if shape else 20 * batch,))
    if "--channels-last" in sys.argv and x.dim() == 4:
        net = net.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
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
