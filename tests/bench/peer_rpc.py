#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The null steps of dist.lua in PyTorch RPC: a shard that holds a tensor, workers that pull it (or
some rows) and push it back to be added. Prints "CASE MEDIAN", in microseconds, for each case.
usage: peer_rpc.py WORKERS SECONDS CASE...     CASE: dense:ELEMENTS or sparse:ROWS:COLUMNS:BATCH"""
import os
import statistics
import sys
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing

held = None


def hold(shape):
    global held
    held = torch.zeros(shape)


def pull(ids):
    return held if ids is None else held[ids]


def push(ids, value):
    if ids is None:
        held.add_(value)
    else:
        held.index_add_(0, ids, value)


def step(case):
    ids = torch.randint(0, case[1], (case[3],)) if case[0] == "sparse" else None
    rpc.rpc_sync("shard", push, (ids, rpc.rpc_sync("shard", pull, (ids,))))


def measure(case, seconds):
    times = []
    step(case)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        step(case)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def parse(text):
    kind, *numbers = text.split(":")
    return [kind, *map(int, numbers)]


def run(rank, workers, seconds, cases, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo",
                      TP_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    name = f"worker{rank}" if rank < workers else "shard"
    options = rpc.TensorPipeRpcBackendOptions(
        rpc_timeout=120, _transports=["uv"], _channels=["basic"])
    rpc.init_rpc(name, rank=rank, world_size=workers + 1, rpc_backend_options=options)
    if name == "worker0":
        others = [f"worker{k}" for k in range(1, workers)]
        for text in cases:
            case = parse(text)
            rpc.rpc_sync("shard", hold, (case[1:2] if case[0] == "dense" else case[1:3],))
            busy = [rpc.rpc_async(other, measure, (case, seconds)) for other in others]
            medians = [measure(case, seconds)] + [other.wait() for other in busy]
            print(text, f"{1e6 * statistics.median(medians):.1f}", flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    n, each = int(sys.argv[1]), float(sys.argv[2])
    torch.multiprocessing.spawn(run, (n, each, sys.argv[3:], 20000 + os.getpid() % 20000),
                                nprocs=n + 1)
