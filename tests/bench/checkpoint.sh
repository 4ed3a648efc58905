#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 1 GiB of tensors to a store and back, in turns with cp and fsync, one O_DIRECT write, and
# torch.save and torch.load (if PYTHON has torch) on the same disk; then, also in turns, training
# steps with and without a save under way. Prints medians.
# BENCH_FOLDER (/tmp), BENCH_MIB (1024), BENCH_ROUNDS (5), BENCH_STEPS (30), BENCH_RATE (50M)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build} mib=${BENCH_MIB:-1024} rounds=${BENCH_ROUNDS:-5} steps=${BENCH_STEPS:-30}
work=$(mktemp -d "${BENCH_FOLDER:-/tmp}/tf-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT

copy() { # cp, then fsync
    local start=$EPOCHREALTIME
    cp "$work/plain" "$work/copy"
    sync "$work/copy"
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.4f\tcp, fsync\n", b - a }'
    rm "$work/copy"
}

peer() {
    "${PYTHON:-python3}" - "$work/peer.pt" "$mib" <<'PYTHON'
import os, sys, time
import torch
path, mib = sys.argv[1], int(sys.argv[2])
tensors = {str(i): torch.rand(mib << 15) for i in range(8)}
start = time.monotonic()
with open(path, "wb") as file:
    torch.save(tensors, file)
    file.flush()
    os.fsync(file.fileno())
saved = time.monotonic()
torch.load(path)
print(f"{saved - start:.4f}\ttorch.save, fsync\n{time.monotonic() - saved:.4f}\ttorch.load, cached")
os.unlink(path)
PYTHON
}

# Prints the median and the maximum of the milliseconds of a step.
train() { # [OPTION]...
    "$build/bin/tf-exec" -g "$work/net.tfg" --run train --steps "$steps" --trace "$work/trace" \
        "$@" >/dev/null
    "$build/bin/tf-show" --json "$work/trace" |
        jq -r 'select(has("ns") and (has("node") | not)) | .ns / 1e6' | sort -g |
        awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)], t[NR] }'
}

head -c "${mib}M" /dev/urandom >"$work/plain"
for ((i = 0; i < rounds; i++)); do
    "$build/tests/bench/checkpoint" "$work" "$mib" 2>"$work/bytes"
    copy
    ! "${PYTHON:-python3}" -c 'import torch' 2>/dev/null || peer
done >"$work/times"
sort -t $'\t' -k 2,2 -k 1,1g "$work/times" | awk -F '\t' -v bytes="$((mib << 20))" '
    { what[$2]++; times[$2, what[$2]] = $1 }
    END { for (w in what) { t = times[w, int((what[w] + 1) / 2)]
        printf "%-22s %7.3f s  %6.2f GB/s\n", w, t, bytes / t * 1e-9 } }' | sort
cat "$work/bytes"

"$build/bin/tf-graph" -D model=alexnet -D batch=8 tests/bench/train.lua |
    "$build/bin/tf-opt" | "$build/bin/tf-place" >"$work/net.tfg"
for ((i = 0; i < rounds; i++)); do
    echo "$(train)" "$(train --save "$work/ckpt/" --save-every 1 --save-rate "${BENCH_RATE:-50M}")"
    rm -r "$work/ckpt"
done | awk '{ print $3 / $1, $1, $3, $4 }' | sort -g | awk '
    { line[NR] = $0 }
    END {
        split(line[int((NR + 1) / 2)], median); split(line[1], least); split(line[NR], most)
        printf "a step on 244 MB: %.0f ms; while they are saved: %.0f ms, %.2f times (%.2f-%.2f)\n",
            median[2], median[3], median[1], least[1], most[1]
        printf "the longest, at the start of a save: %.0f ms\n", median[4]
    }'
