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

# Simulated and measured seconds of a step; the costs are those of the very steps.
compare() {
    tf-place --devices CPU:0,CPU:1 m.tfg | tf-part | tf-exec --run r -n 12 --trace m.rec >rest
    tf-show --costs m.rec | grep -vE 'Send|Recv' >m.costs
    tf-place --devices CPU:0,CPU:1 --costs m.costs --report m.tfg 2>&1 >rest |
        sed -n 's/^tf-place: a step takes \([0-9.]*\) us.*/\1/p' >simulated
    tf-show --json m.rec | grep -v '"node"' |
        awk -F '[":,]+' '{ ns += $7 } END { print ns / NR / 1e3 }' >measured
}

# Others may have the cores meanwhile, which no cost tells: one time of five has to do.
@test "a step on two devices takes what was simulated from measured costs, within 15 %" {
    local i good=no
    for ((i = 0; i < 5; i++)); do
        [ "$good" = no ] || continue
        compare
        good=$(paste simulated measured |
            awk '{ print($1 > 0.85 * $2 && $1 < 1.15 * $2 ? "yes" : "no") }')
    done
    paste simulated measured
    [ "$good" = yes ]
}

@test "the simulation knows that one device takes nearly twice as long" {
    compare
    sed 's/CPU:1/CPU:0/' m.txt | tf-graph --text |
        tf-place --devices CPU:0,CPU:1 --costs m.costs --report 2>&1 >rest |
        sed -n 's/^tf-place: a step takes \([0-9.]*\) us.*/\1/p' >one
    paste simulated one | awk '{ exit !($2 > 1.6 * $1) }'
}
