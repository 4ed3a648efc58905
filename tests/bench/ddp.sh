#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A step of two workers that all-reduce, one thread each, in turns with PyTorch's
# DistributedDataParallel over gloo (peer_ddp.py; allocator tuned to keep large pages): medians of
# the rounds in milliseconds, and the median of each round's ratio. PYTHON names a Python with torch
# (python3). MODELS ("lenet:32:40 alexnet:16:4": net of train.lua, batch, steps), ROUNDS (5)
set -euo pipefail
PYTHON=$(realpath -s "$(type -P "${PYTHON:-python3}")")
cd "$(dirname "$0")/../.."
root=$PWD rounds=${ROUNDS:-5}
PATH=$root/${BUILD:-build}/bin:$PATH
export OMP_NUM_THREADS=1 TF_JOB=run
unset OPENBLAS_CORETYPE # the tools choose by the machine's features
work=$(mktemp -d)
finish() {
    jobs -p | xargs -r kill 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
large=4294967296
tuned=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=$large:glibc.malloc.trim_threshold=$large

both() { # COMMAND...: runs it as each of two, with its number in $k
    local each=() k
    for k in 0 1; do
        k=$k "$@" &
        each+=($!)
    done
    wait "${each[@]}"
}

worker() { # STEPS
    tf-exec -g parts.tfg --task "worker:$k" --run train --steps "$1" --threads 1
}

seconds() { # STEPS: of a job
    local began
    rm -rf run
    tf-ps init -c c
    began=$EPOCHREALTIME
    both worker "$1" >/dev/null
    awk "BEGIN { print $EPOCHREALTIME - $began }"
}

ours() { # STEPS: milliseconds a step: what as many steps more take
    awk "BEGIN { print 500 * ($(seconds $((3 * $1))) - $(seconds "$1")) / $1 }"
}

peer_worker() {
    RANK=$k "$PYTHON" "$root/tests/bench/peer_ddp.py" "$@" plain 2>"peer.$k.log"
}

peer() { # MODEL BATCH STEPS
    WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=2900 GLIBC_TUNABLES=$tuned both peer_worker "$@"
}

cd "$work"
"$PYTHON" -c 'import torch; print("torch", torch.__version__)' ||
    { echo "skipped: no torch (set PYTHON)"; exit 0; }
printf 'task worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
printf '%-10s %5s %12s %12s %7s\n' MODEL BATCH OURS/ms DDP/ms RATIO
for entry in ${MODELS:-lenet:32:40 alexnet:16:4}; do
    IFS=: read -r model batch steps <<<"$entry"
    tf-graph -D "model=$model" -D "batch=$batch" "$root/tests/bench/train.lua" | tf-opt |
        tf-replicate --mode allreduce -c c | tf-place -c c | tf-part >parts.tfg
    for ((round = 0; round < rounds; round++)); do
        echo "$(ours "$steps") $(peer "$model" "$batch" "$steps")"
    done >rounds
    python3 "$root/tests/bench/ratio.py" "$model" "$batch" rounds
done
