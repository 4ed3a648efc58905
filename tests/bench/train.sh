#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training steps of gpu.lua's nets and of LeNet, in turns with PyTorch's (peer_torch.py): each round
# runs both, and PyTorch in four ways (default or channels-last, default allocator or one tuned to
# keep large pages), of which the best median counts. The ratio is taken within each round. PYTHON
# names a Python with torch (python3). ROUNDS (5), THREADS (2), MODELS (net, batch, steps; below).
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-5}
export OMP_NUM_THREADS=${THREADS:-2}
unset OPENBLAS_CORETYPE # the tools choose by the machine's features
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
large=4294967296
tuned=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=$large:glibc.malloc.trim_threshold=$large

ours() { # MODEL STEPS: milliseconds a step: what as many steps more take
    python3 tests/bench/step.py "$2" build/bin/tf-exec -g "$work/$1.tfg" --run train \
        --threads "$OMP_NUM_THREADS" --steps
}

peer() { # MODEL BATCH STEPS: the best of its four ways
    for layout in "" --channels-last; do
        for tunables in "" "$tuned"; do
            GLIBC_TUNABLES=$tunables "$PYTHON" tests/bench/peer_torch.py "$1" "$2" "$3" $layout
        done
        [[ ! $1 =~ ^(softmax|mlp|lstm)$ ]] || break # no images
    done > "$work/peer"
    sort -g "$work/peer" | awk 'NR == 1 { print 1e3 * $1 }'
}

PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import torch; print("torch", torch.__version__)' ||
    { echo "skipped: no torch (set PYTHON)"; exit 0; }
printf '%-10s %5s %12s %12s %7s\n' MODEL BATCH OURS/ms TORCH/ms RATIO
all="softmax:32:5000 mlp:1:2000 mlp:128:300 lenet:64:30 lstm:32:6
    alexnet:16:8 googlenet:16:4 overfeat:16:3 vgg:8:2"
for entry in ${MODELS:-$all}; do
    IFS=: read -r model batch steps <<< "$entry"
    script=gpu
    [[ $model != lenet ]] || script=train
    build/bin/tf-graph -D "model=$model" -D "batch=$batch" "tests/bench/$script.lua" |
        build/bin/tf-opt | build/bin/tf-place > "$work/$model.tfg"
    for ((round = 0; round < rounds; round++)); do
        echo "$(ours "$model" "$steps") $(peer "$model" "$batch" "$steps")"
    done > "$work/rounds"
    python3 tests/bench/ratio.py "$model" "$batch" "$work/rounds"
done
