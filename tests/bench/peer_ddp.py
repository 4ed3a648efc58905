#!/usr/bin/env python3
"""The nets of train.lua in PyTorch's DistributedDataParallel over gloo: milliseconds per training
step with SGD, median of STEPS on rank 0. HOOK says how gradients cross: plain, fp16, powersgd1 or
powersgd4 (of that rank, from its third step on). usage: peer_ddp.py MODEL BATCH STEPS HOOK, with
RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT in the environment"""
import os
import statistics
import sys
import time

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from peer_torch import NETS

WARM = 4


def main():
    model, batch, steps, hook = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.distributed.init_process_group("gloo")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    make, shape, classes = NETS[model]
    torch.manual_seed(0)
    # PowerSGD's all-reduces start in callbacks: gloo matches calls by their order, so only one
    # bucket may be in flight.
    bucket = 1 << 20 if hook.startswith("powersgd") else 25
    net = nn.parallel.DistributedDataParallel(make(), bucket_cap_mb=bucket)
    if hook == "fp16":
        net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif hook.startswith("powersgd"):
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=int(hook[8:]),
                                            start_powerSGD_iter=2)
        net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    x, y = torch.randn(batch, *shape), torch.randint(0, classes, (batch,))
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4)
    times = []
    for _ in range(steps + WARM):
        start = time.perf_counter()
        sgd.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        loss.item()
        times.append(time.perf_counter() - start)
    if torch.distributed.get_rank() == 0:
        print(1e3 * statistics.median(times[WARM:]), flush=True)
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads are not waited for: some never end


if __name__ == "__main__":
    main()
