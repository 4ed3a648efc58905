#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-place through pipes.
# shellcheck disable=SC2154  # stderr is of run
bats_require_minimum_version 1.5.0

setup() {
    PATH=$(realpath -m "$BATS_TEST_DIRNAME/../../${BUILD:-build}/bin"):$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.txt <<'TEXT'
x = Placeholder() {dtype=float32, shape=[2]}
v = Variable() {dtype=float32, shape=[2]} @?/device:CPU:1 at m.lua:3
u = Assign(v, x)
y = Neg(x)
TEXT
    tf-graph --text m.txt >m.tfg
}

@test "all goes to the one device there is" {
    sed 's/@[^ ]*//' m.txt | tf-graph --text | tf-place >p.tfg
    [ "$(tf-show --text p.tfg | grep -c '@/job:localhost/task:0/device:CPU:0')" -eq 4 ]
}

@test "constraints and references, and why" {
    run --separate-stderr bash -c 'tf-place --devices CPU:0,CPU:1 --report m.tfg >p.tfg'
    [ "$status" -eq 0 ]
    [ "$stderr" = "x  /job:localhost/task:0/device:CPU:0  first device with a kernel
v  /job:localhost/task:0/device:CPU:1  asked for /device:CPU:1
u  /job:localhost/task:0/device:CPU:1  with v
y  /job:localhost/task:0/device:CPU:0  first device with a kernel" ]
    run tf-show --text p.tfg
    [[ $output == *'v = Variable() '*'@?/device:CPU:1 @/job:localhost/task:0/device:CPU:1 '* ]]
}

@test "placing again changes nothing but the provenance" {
    tf-place --devices CPU:0,CPU:1 m.tfg >p.tfg
    tf-place --devices CPU:1,CPU:0 p.tfg >q.tfg
    diff <(tf-show --text p.tfg | grep -v ^made) <(tf-show --text q.tfg | grep -v ^made)
}

@test "a device that is not there" {
    run bash -c 'tf-place m.tfg >p.tfg'
    [ "$status" -eq 65 ]
    [ "$output" = "tf-place: m.tfg: node 'v' (m.lua:3): /device:CPU:1 is not in this cluster:\
 it has /job:localhost/task:0/device:CPU:0" ]
}

@test "two that must share a device" {
    sed 's/^u.*/& @?\/device:CPU:0 at m.lua:8/' m.txt | tf-graph --text >pinned.tfg
    run bash -c 'tf-place --devices CPU:0,CPU:1 pinned.tfg >p.tfg'
    [ "$status" -eq 65 ]
    [ "$output" = "tf-place: pinned.tfg: 'v' on /device:CPU:1 (m.lua:3) and\
 'u' on /device:CPU:0 (m.lua:8) must share a device: v -> u" ]
}

@test "a device that is none is wrong usage" {
    run bash -c 'tf-place --devices CPU:x m.tfg >p.tfg'
    [ "$status" -eq 64 ]
    [[ $output == "tf-place: --devices: "* ]]
}

@test "a placed graph runs" {
    sed 's/@[^ ]*//' m.txt | tf-graph --text | tf-opt | tf-place >p.tfg
    tf-op Neg '[1.0,2]' -o x.npy
    tf-exec -g p.tfg --fetch y --feed x=x.npy -o y.rec
    tf-show --npy y.rec y >y.npy
    [ "$(tf-op Identity y.npy | tf-show)" = "float32[2]  1 2" ]
}
