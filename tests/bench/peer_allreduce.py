#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Median time, in microseconds, of gloo's all_reduce of float32 in PyTorch, and the processor's
time of a call. usage: peer_allreduce.py RANKS BYTES CALLS"""
import os
import statistics
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing


def run(rank, ranks, size, calls, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    value, times, used = torch.zeros(size // 4), [], []
    for _ in range(calls + 3):
        value.fill_(rank + 1)
        torch.distributed.barrier()
        before, start = time.process_time(), time.perf_counter()
        torch.distributed.all_reduce(value)
        times.append(time.perf_counter() - start)
        used.append(time.process_time() - before)
        assert value[0] == ranks * (ranks + 1) / 2
    if rank == 0:
        print(f"{1e6 * statistics.median(times[3:]):.1f} {1e6 * sum(used[3:]) / calls:.1f}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    n, nbytes, n_calls = (int(a) for a in sys.argv[1:])
    torch.multiprocessing.spawn(run, (n, nbytes, n_calls, 20000 + os.getpid() % 20000), nprocs=n)
