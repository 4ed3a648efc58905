#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The placer's simulation compared with measured steps.
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

# Microseconds of a step: simulated, replayed and measured. The costs are those of that same step.
# The replay takes its nodes in the order in which they began, each as soon as its device and its
# inputs are free: other processes on the cores between two nodes lengthen only the measured step.
three_times() { # STEP
    local fields='[{":,}]+'
    grep '"node"' m.json | sort -t: -k3n | awk -F "$fields" -v step="$1" \
        '$3 == step && $11 !~ /Send|Recv/ { print "node", $11, $7 }' >m.costs
    [ "$(grep -c 'node [alme]' m.costs)" -eq 17 ]
    {
        simulate m.tfg
        awk 'NR == FNR {
                device[$1] = /CPU:1/
                inputs[$1] = /MatMul|Add/ ? $3 " " $4 : ""
                gsub(/[a-zA-Z]+\(|[,)]/, "", inputs[$1])
                next
            }
            $2 in device {
                at = free[device[$2]]
                n = split(inputs[$2], input, " ")
                for (i = 1; i <= n; i++) at = done[input[i]] > at ? done[input[i]] : at
                free[device[$2]] = done[$2] = at + $3
            }
            END { print done["end"] / 1e3 }' m.txt m.costs
        grep -v '"node"' m.json | awk -F "$fields" -v step="$1" '$3 == step { print $7 / 1e3 }'
    } | xargs
}

simulate() { # GRAPH: microseconds of a step, by m.costs
    tf-place --devices CPU:0,CPU:1 --costs m.costs --report "$1" 2>&1 >rest |
        sed -n 's/^tf-place: a step takes \([0-9.]*\) us.*/\1/p'
}

@test "a step on two devices takes what was simulated from measured costs, within 15 %" {
    local step
    tf-place --devices CPU:0,CPU:1 m.tfg | tf-part |
        tf-exec --run r -n 20 --trace m.rec --without all >rest
    tf-show --json m.rec >m.json
    for step in 2 5 10 15 20; do
        three_times "$step" >measured
        cat measured
        awk '{ exit !($1 > 0.85 * $2 && $1 < 1.15 * $2 && $1 < 1.15 * $3) }' measured
    done
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
