#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What each device pass gains, in the training steps of train.sh: the step without it over the step
# with all, run in turns, the median of the rounds. Then the ops that a step spends its time in,
# from a trace: milliseconds of each, of the shortest step. ROUNDS (5), THREADS (2), MODELS (net,
# batch, steps; below), OPS (8 of each net).
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-5}
export OMP_NUM_THREADS=${THREADS:-2}
unset OPENBLAS_CORETYPE # the tools choose by the machine's features
PATH=$PWD/${BUILD:-build}/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passes=(pools updates sums products chains views all)

step() { # MODEL STEPS OPTION...
    python3 tests/bench/step.py "$2" tf-exec -q -g "$work/$1.tfg" --run train \
        --threads "$OMP_NUM_THREADS" "${@:3}" --steps
}

models=${MODELS:-softmax:32:5000 mlp:1:2000 mlp:128:300 lenet:64:30 lstm:32:6 alexnet:16:8
    googlenet:16:4 overfeat:16:3 vgg:8:2}
printf '%-10s %5s %9s' MODEL BATCH STEP/ms
printf ' %8s' "${passes[@]}"
echo
for entry in $models; do
    IFS=: read -r model batch steps <<<"$entry"
    script=gpu
    [[ $model != lenet ]] || script=train
    tf-graph -D "model=$model" -D "batch=$batch" "tests/bench/$script.lua" | tf-opt | tf-place \
        >"$work/$model.tfg"
    for ((round = 0; round < rounds; round++)); do
        step "$model" "$steps"
        for pass in "${passes[@]}"; do step "$model" "$steps" --without "$pass"; done
    done >"$work/times"
    python3 - "$model" "$batch" "${#passes[@]}" "$work/times" <<'END'
import statistics
import sys

model, batch, n = sys.argv[1], sys.argv[2], int(sys.argv[3]) + 1
times = [float(line) for line in open(sys.argv[4])]
rounds = [times[i:i + n] for i in range(0, len(times), n)]
ratios = [statistics.median(r[k] / r[0] for r in rounds) for k in range(1, n)]
print(f"{model:<10} {batch:>5} {statistics.median(r[0] for r in rounds):9.3f}",
      *(f"{ratio:8.2f}" for ratio in ratios), flush=True)
END
done
echo
for entry in $models; do
    IFS=: read -r model batch steps <<<"$entry"
    traced=$((steps < 8 ? 8 : steps > 100 ? 100 : steps))
    tf-exec -q -g "$work/$model.tfg" --run train --threads "$OMP_NUM_THREADS" --steps "$traced" \
        --trace "$work/trace" >/dev/null
    tf-show --json "$work/trace" | python3 -c '
import collections
import json
import sys

steps = collections.defaultdict(collections.Counter)
for line in sys.stdin:
    event = json.loads(line)
    if event.get("op"):
        steps[event["step"]][event["op"]] += event["ns"] * 1e-6
shortest = min(steps.values(), key=lambda step: sum(step.values()))
whole = sum(shortest.values())
print(f"{sys.argv[1]:<10} {whole:.3f} ms in ops:",
      ", ".join(f"{op} {ms:.3f}" for op, ms in shortest.most_common(int(sys.argv[2]))))
' "$model" "${OPS:-8}"
done
