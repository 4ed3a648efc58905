#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training steps of nets with a loop, in turns with the same nets unrolled, one thread: medians of
# the rounds in microseconds of processor time. The target is 1.3 times the unrolled net. A net
# beside a loop, with or without async ops, is compared with the net alone: the difference is what
# the loop itself takes. NETS ("rnn lstm padded_rnn padded_lstm beside beside_points"), STEPS
# (2000), ROUNDS (5), BIN (build/bin; several to compare builds).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_NUM_THREADS=1
TIMEFORMAT=%U

each() { # GRAPH STEPS: microseconds of a step, without what a process takes to start
    local whole start
    whole=$({ time tf-exec -q -g "$1" --run train --steps "$2" --threads 1 >/dev/null; } 2>&1)
    start=$({ time tf-exec -q -g "$1" --run train --steps 1 --threads 1 >/dev/null; } 2>&1)
    awk -v a="$whole" -v b="$start" -v n="$2" 'BEGIN { print (a - b) * 1e6 / (n - 1) }'
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

printf '%-13s %-24s %9s %12s %6s\n' NET BUILD LOOP/us UNROLLED/us RATIO
for net in ${NETS:-rnn lstm padded_rnn padded_lstm beside beside_points}; do
    rm -f of.*
    for kind in loop unrolled; do
        PATH=$root/build/bin:$PATH tf-graph -D "net=$net" -D "kind=$kind" \
            "$root/tests/bench/loops.lua" >"$kind.lua.tfg"
    done
    for ((round = 0; round < ${ROUNDS:-5}; round++)); do
        for bin in ${BIN:-build/bin}; do
            PATH=$(realpath "$root/$bin"):$PATH
            for kind in loop unrolled; do
                tf-opt "$kind.lua.tfg" | tf-place >"$kind.tfg"
                each "$kind.tfg" "${STEPS:-2000}" >>"of.${bin//\//_}.$kind"
            done
        done
    done
    for bin in ${BIN:-build/bin}; do
        paste <(median <"of.${bin//\//_}.loop") <(median <"of.${bin//\//_}.unrolled") |
            awk -v what="$(printf '%-13s %-24s' "$net" "$bin")" \
                '{ printf "%s %9.1f %12.1f %6.2f\n", what, $1, $2, $1 / $2 }'
    done
done
