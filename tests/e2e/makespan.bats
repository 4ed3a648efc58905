#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The placer's simulation against the clock.
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1 # a device computes one node at a time
    # two chains of products that wait for each other half way
    {
        echo 'entry r = end'
        echo 'shape = Const() {dtype=int32, value=[448,448]}'
        for d in 0 1; do
            echo "a${d}_0 = RandomUniform(shape) {dtype=float32, seed=$d} @?/device:CPU:$d"
            for i in $(seq 6); do
                echo "a${d}_$i = MatMul(a${d}_$((i - 1)), a${d}_0) @?/device:CPU:$d"
            done
        done
        echo 'mid = MatMul(a0_3, a1_3) @?/device:CPU:1'
        echo 'last = MatMul(mid, a1_6) @?/device:CPU:1'
        echo 'end = Add(last, a0_6) @?/device:CPU:0'
    } >m.txt
    tf-graph --text m.txt >m.tfg
}

# Simulated and measured microseconds of a step, the fastest of many: others may have had the cores
# during any other. The costs are those of that very step.
compare() {
    local fields='[{":,}]+' step
    tf-place --devices CPU:0,CPU:1 m.tfg | tf-part |
        tf-exec --run r -n 40 --trace m.rec --without all >rest
    tf-show --json m.rec >m.json
    step=$(grep -v '"node"' m.json | sort -t: -k4n | sed -n 1p | awk -F "$fields" '{ print $3 }')
    grep '"node"' m.json | awk -F "$fields" -v step="$step" \
        '$3 == step && $11 !~ /Send|Recv/ { print "node", $11, $7 }' >m.costs
    simulate m.tfg >simulated
    grep -v '"node"' m.json | awk -F "$fields" -v step="$step" '$3 == step { print $7 / 1e3 }' \
        >measured
}

simulate() { # GRAPH: microseconds of a step, by m.costs
    tf-place --devices CPU:0,CPU:1 --costs m.costs --report "$1" 2>&1 >rest |
        sed -n 's/^tf-place: a step takes \([0-9.]*\) us.*/\1/p'
}

# Where others had a core during all of the steps, the next ones are looked at.
@test "a step on two devices takes what was simulated from measured costs, within 15 %" {
    for _ in 1 2 3 4 5; do
        compare
        paste simulated measured
        if paste simulated measured | awk '{ exit !($1 > 0.85 * $2 && $1 < 1.15 * $2) }'; then
            return 0
        fi
    done
    false
}

# Eight of fourteen products are one after the other.
@test "the simulation knows that one device takes nearly twice as long" {
    sed -nE 's/^([a-z0-9_]+) = MatMul.*/node \1 1000000/p' m.txt >m.costs
    [ "$(grep -c . m.costs)" -eq 14 ]
    sed 's/CPU:1/CPU:0/' m.txt | tf-graph --text >one.tfg
    simulate m.tfg >simulated
    simulate one.tfg >one
    paste simulated one | awk '{ exit !($1 > 8000 && $2 > 14000 && $2 > 1.6 * $1) }'
}
