#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Layers of LeNet and AlexNet in a training step of train.lua, beside what oneDNN (convolutions) and
# OpenBLAS (products) take alone for the same sizes (layers.c): milliseconds of forward, of the
# gradient of what a layer reads, and of its weights'. Ours are from a trace and include bias,
# activation, and a dense layer's update; oneDNN's are without what changes layouts before and
# after. The shortest of all steps and runs counts. ROUNDS (3), THREADS (1).
# usage: layers.sh [NET]...
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
PATH=$PWD/$build/bin:$PATH
export OMP_NUM_THREADS=${THREADS:-1}
unset OPENBLAS_CORETYPE # the tools choose by the machine's features
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# conv NAME batch size channels filters window stride pad; dense NAME batch inputs outputs
# shellcheck disable=SC2034  # each is read by its name
lenet="conv conv1 64 28 1 32 5 1 2
conv conv2 64 14 32 64 5 1 2
dense fc1 64 3136 512
dense fc2 64 512 10"
# shellcheck disable=SC2034
alexnet="conv conv1 16 227 3 64 11 4 0
conv conv2 16 27 64 192 5 1 2
conv conv3 16 13 192 384 3 1 1
conv conv4 16 13 384 256 3 1 1
conv conv5 16 13 256 256 3 1 1
dense fc6 16 9216 4096
dense fc7 16 4096 4096
dense fc8 16 4096 1000"

[[ $# -gt 0 ]] || set -- lenet alexnet
for net in "$@"; do
    printf '%s\n' "${!net}" >"$work/layers"
    read -r _ _ batch _ <"$work/layers"
    tf-graph -D "model=$net" -D "batch=$batch" tests/bench/train.lua | tf-opt >"$work/net.tfg"
    rm -f "$work/ours" "$work/alone"
    for ((round = 0; round < ${ROUNDS:-3}; round++)); do
        tf-exec -q -g "$work/net.tfg" --run train --steps 6 --threads "$OMP_NUM_THREADS" \
            --trace "$work/trace" >/dev/null
        tf-show --json "$work/trace" >>"$work/ours"
        "$build/tests/bench/layers" 6 <"$work/layers" >>"$work/alone"
    done
    echo "$net, batch $batch, $OMP_NUM_THREADS thread(s), ms"
    python3 - "$work/ours" "$work/alone" <<'END'
import json
import re
import sys

KINDS = [("filter", r"gradients/(\w+)/.*(BackpropFilter|MatMul_1)$"),
         ("filter", r"update/(\w+)/W/.*"),
         ("input", r"gradients/(\w+)/.*(BackpropInput|MatMul)$"),
         ("forward", r"((?:conv|fc)\d)/\w+$")]
ours, alone = {}, {}
for line in open(sys.argv[1]):
    event = json.loads(line)
    for kind, pattern in KINDS:
        found = re.match(pattern, event.get("node") or "")
        is_own = kind == "forward" or re.search("Conv|MatMul", event["op"]) if found else False
        if is_own:
            key = found[1], kind
            ours[key] = min(ours.get(key, 1e30), event["ns"] * 1e-6)
            break
for line in open(sys.argv[2]):
    name, kind, ms = line.split()
    alone[name, kind] = min(alone.get((name, kind), 1e30), float(ms))
print("%-8s %-8s %9s %9s %7s" % ("LAYER", "KIND", "OURS", "ALONE", "RATIO"))
for (name, kind), ms in alone.items():
    if (name, kind) in ours:
        mine = ours[name, kind]
        print("%-8s %-8s %9.3f %9.3f %7.2f" % (name, kind, mine, ms, mine / ms))
END
done
