#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cost of the filters of graphs: whole processes on a graph of 100 nodes (median of 31 runs; the
# target is 10 ms) and on one of 100,000 nodes (one run; tf-graph's target is 1 s).
# With a number as argument, fails if a small graph takes longer than that many milliseconds.
set -euo pipefail
limit=${1:-}
PATH=$(realpath -m "$(dirname "$0")/../../${BUILD:-build}/bin"):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >chain.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 4}}
local h = x
for i = 1, math.tointeger(D.n) do h = Neg(Exp(h)) end
entry.e = h
LUA

# Wall time of a command in microseconds.
measure() {
    local start=$EPOCHREALTIME
    "$@" >out
    local end=$EPOCHREALTIME
    echo $((${end/[.,]/} - ${start/[.,]/}))
}

median() { # COMMAND...
    for _ in {1..31}; do
        measure "$@"
    done | sort -n | sed -n 16p
}

slow=0
small() { # COMMAND...
    local us
    us=$(median "$@")
    printf '100 nodes      %-9s %5d.%d ms\n' "$1" $((us / 1000)) $((us % 1000 / 100))
    [[ -z $limit ]] || ((us <= limit * 1000)) || slow=1
}

large() { # COMMAND...
    local us
    us=$(measure "$@")
    printf '100,000 nodes  %-9s %5d ms\n' "$1" $((us / 1000))
}

tf-graph -D n=50 chain.lua >small.tfg
small tf-graph -D n=50 chain.lua
small tf-opt small.tfg
small tf-place small.tfg
small tf-show small.tfg
tf-graph -D n=50000 chain.lua >large.tfg
large tf-graph -D n=50000 chain.lua
large tf-opt large.tfg
large tf-place large.tfg
large tf-show large.tfg
exit "$slow"
