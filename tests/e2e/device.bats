#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A device with memory of its own: the TEST device (tests/lib/device_test.h), which runs the CPU's
# kernels, so that all bits must equal the CPU's.
# shellcheck disable=SC2154  # stderr is set by run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib
    cd "$root/examples" || return 1
    set -o pipefail
    work=$BATS_TEST_TMPDIR
}

on_test() { # [WHICH]: a placed graph, its nodes (or those of lines that match) on TEST:0
    tf-show --text | sed -E "${1-}s/device:CPU:0/device:TEST:0/" | tf-graph --text
}

train() { # GRAPH NAME OPTION...: checkpoint and losses
    local graph=$1 name=$2
    shift 2
    tf-exec -g "$graph" --run train --feed "$work/feed.rec" --fetch loss --save "$work/$name.ckpt" \
        "$@" | tf-show --json > "$work/$name.losses"
    tf-show --json "$work/$name.ckpt" | sort > "$work/$name"
}

same() { # NAME NAME
    [[ $(wc -l < "$work/$1.losses") -gt 3 ]]
    cmp "$work/$1.losses" "$work/$2.losses"
    cmp "$work/$1" "$work/$2"
}

@test "nets train on it to the CPU's bits" {
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    for script in digits.lua digits_cnn.lua digits_rnn.lua; do
        tf-graph "$script" | tf-opt | tf-place > "$work/cpu.tfg"
        on_test < "$work/cpu.tfg" > "$work/test.tfg"
        train "$work/cpu.tfg" cpu
        train "$work/test.tfg" test
        same cpu test
    done
}

@test "variables are restored into its memory" {
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    tf-graph digits.lua | tf-opt | tf-place > "$work/cpu.tfg"
    on_test < "$work/cpu.tfg" > "$work/test.tfg"
    train "$work/cpu.tfg" start
    train "$work/cpu.tfg" cpu --restore "$work/start.ckpt"
    train "$work/test.tfg" test --restore "$work/start.ckpt"
    same cpu test
}

@test "a graph in parts on it and on the CPU trains to the CPU's bits, and is restored" {
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    for script in digits.lua digits_rnn.lua; do
        tf-graph "$script" | tf-opt | tf-place > "$work/cpu.tfg"
        # variables and their updates on the CPU; and on the device
        on_test '/read = | = (Variable|Assign|Apply[A-Za-z]*|IsVariableInitialized)\(/!' \
            < "$work/cpu.tfg" | tf-part > "$work/outside.tfg"
        on_test '/ = (Placeholder|Mean|ArgMax|Equal)\(/!' \
            < "$work/cpu.tfg" | tf-part > "$work/inside.tfg"
        train "$work/cpu.tfg" cpu
        train "$work/outside.tfg" outside
        train "$work/inside.tfg" inside
        same cpu outside
        same cpu inside
        train "$work/cpu.tfg" cpu --restore "$work/outside.ckpt"
        train "$work/inside.tfg" inside --restore "$work/outside.ckpt"
        same cpu inside
    done
}

# step_of_workers NAME STEPS: digits on two workers' devices, which all-reduce their gradients
step_of_workers() {
    tf-exec --task worker:1 -g "$work/parts.tfg" --run train --fetch loss --feed "$work/feed.rec" \
        --steps "$2" > "$work/other.rec" 3>&- &
    TF_TEST_DEVICE_COUNTS=$work/$1.counts tf-exec --task worker:0 -g "$work/parts.tfg" --run train \
        --fetch loss --feed "$work/feed.rec" --steps "$2" | tf-show --json > "$work/$1"
    wait $!
}

@test "a worker's step is captured up to and from an AllReduce" {
    export TF_CLUSTER=$work/c OMP_NUM_THREADS=1
    printf 'task worker:%d unix:%s\n' 0 "$work/w0" 1 "$work/w1" > "$TF_CLUSTER"
    ./feed --rows 1-640 --batch 64 --epochs 1 > "$work/feed.rec"
    tf-graph digits.lua | tf-opt | tf-replicate --mode allreduce | tf-place -c "$TF_CLUSTER" |
        on_test | tf-part > "$work/parts.tfg"
    step_of_workers captured 8
    TF_TEST_DEVICE_CAPTURE=0 step_of_workers plain 8
    cmp "$work/captured" "$work/plain"
    grep '^captures 0 launches 0$' "$work/plain.counts"
    read -r _ captures _ launches < "$work/captured.counts"
    ((captures > 1 && launches == 7 * captures))
}

@test "what is printed, asserted or checked is brought to the host" {
    cat > "$work/p.lua" << 'EOF'
        x = Placeholder{dtype = float32, shape = {2}}
        y = Print(x * 2, {x * 3, Shape(x)}, {message = "x3 "})
        z = Log(y)
EOF
    tf-graph "$work/p.lua" | tf-place | on_test > "$work/p.tfg"
    run --separate-stderr tf-exec -g "$work/p.tfg" --fetch y --feed 'x=[1,2]' -o "$work/y"
    [ "$status" -eq 0 ]
    [[ $stderr == *"x3 [3 6][2]"* ]]
    [[ $(tf-show "$work/y") == *"y 2 4"* ]]
    run --separate-stderr tf-exec --check -g "$work/p.tfg" --fetch z --feed 'x=[1,-2]' -o "$work/z"
    [ "$status" -eq 65 ]
    [[ $stderr == *"node 'z'"*"Log: result is NaN at [1]"* ]]
}

@test "a trace says when the device did what" {
    tf-graph digits.lua | tf-opt | tf-place | on_test > "$work/test.tfg"
    ./feed --rows 1-64 --batch 64 > "$work/feed.rec"
    tf-exec -g "$work/test.tfg" --run train --feed "$work/feed.rec" --trace "$work/trace" \
        > "$work/out"
    tf-show --json "$work/trace" | grep '"queue":"compute"' > "$work/compute"
    grep -q '"ns":1000,.*"op":"MatMul"' "$work/compute" # a microsecond each, by its clock
    [ "$(tf-show --costs "$work/trace" | grep -c '^op copy_in 1000$')" -eq 1 ]
    [[ $(tf-show "$work/trace") == "trace   1 step "* ]]
}

@test "a plan shows what is copied and what is in host memory" {
    tf-graph digits.lua | tf-opt | tf-place | on_test > "$work/test.tfg"
    ./feed --rows 1-64 --batch 64 > "$work/feed.rec"
    tf-exec -g "$work/test.tfg" --run train --feed "$work/feed.rec" --dump-plan |
        tf-show > "$work/plan"
    [ "$(grep -cE 'copy_in .* (16384|256) ' "$work/plan")" -eq 2 ] # the feeds
    grep -qE '^[0-9]+ +- +copy_out' "$work/plan" # what the host needs is awaited: of no region
    run -1 grep -q 'MatMul .*host+' "$work/plan"
}

@test "a device that is not there is named" {
    tf-graph digits.lua | tf-place | on_test > "$work/test.tfg"
    TF_DEVICE_PATH='' run --separate-stderr tf-exec -g "$work/test.tfg" --run init
    [ "$status" -eq 69 ]
    [[ $stderr == *"no device of type 'TEST' in this build: it has no test.so"* ]]
}
