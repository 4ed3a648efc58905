#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 1 GiB of tensors to a store and back, beside plain files and torch.save (where PyTorch is) on the
# same disk. BENCH_FOLDER (/tmp), BENCH_MIB (1024), BENCH_ROUNDS (5)
set -euo pipefail
folder=${BENCH_FOLDER:-/tmp} mib=${BENCH_MIB:-1024} rounds=${BENCH_ROUNDS:-5}
"${BUILD:-build}/tests/bench/checkpoint" "$folder" "$mib" "$rounds"
"${PYTHON:-python3}" -c 'import torch' 2>/dev/null || exit 0
"${PYTHON:-python3}" - "$folder/tf-bench.pt" "$mib" "$rounds" <<'PYTHON'
import os, statistics, sys, time
import torch
path, mib, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
tensors = {str(i): torch.rand(mib << 15) for i in range(8)}
saves, loads = [], []
for _ in range(rounds):
    start = time.monotonic()
    with open(path, "wb") as file:
        torch.save(tensors, file)
        file.flush()
        os.fsync(file.fileno())
    saves.append(time.monotonic() - start)
    start = time.monotonic()
    torch.load(path)
    loads.append(time.monotonic() - start)
os.unlink(path)
for name, times in ("torch.save, fsync", saves), ("torch.load, cached", loads):
    took = statistics.median(times)
    print(f"{name:22} {took:7.3f} s  {mib * 1048576e-9 / took:6.2f} GB/s")
PYTHON
