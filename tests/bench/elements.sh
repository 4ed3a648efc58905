#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ops of four million elements (elements.lua), each by itself, beside PyTorch's (peer_elements.py):
# milliseconds and their ratio, the largest first. The shortest of all calls counts, as others use
# the machine. ROUNDS (3) of 9 calls each, THREADS (1).
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=${THREADS:-1}
unset OPENBLAS_CORETYPE # the tools choose by the machine's features
PATH=$PWD/${BUILD:-build}/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -c 'import torch; print("torch", torch.__version__)' ||
    { echo "skipped: no torch (set PYTHON)"; exit 0; }
tf-graph tests/bench/elements.lua -o "$work/elements.tfg"
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
    tf-exec -q -g "$work/elements.tfg" --run all --steps 9 --threads "$OMP_NUM_THREADS" \
        --without all --trace "$work/trace" >/dev/null
    tf-show --json "$work/trace" >>"$work/ours"
    "${PYTHON:-python3}" tests/bench/peer_elements.py 9 >>"$work/peer"
done
python3 - "$work/ours" "$work/peer" <<'END'
import collections
import json
import sys

shortest, ours, peer = {}, collections.Counter(), {}
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event.get("op"):
        node = event["node"]
        shortest[node] = min(shortest.get(node, 1e30), event["ns"] * 1e-6)
for node, ms in shortest.items():
    ours[node.split("/")[0]] += ms
for line in open(sys.argv[2]):
    name, ms = line.split()
    peer[name] = min(peer.get(name, 1e30), float(ms))
print("%-18s %9s %9s %7s" % ("OP", "OURS/ms", "TORCH/ms", "RATIO"))
for name in sorted(peer, key=lambda name: peer[name] / ours[name]):
    print("%-18s %9.3f %9.3f %7.2f" % (name, ours[name], peer[name], ours[name] / peer[name]))
END
