#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Each tool on a small job under valgrind: no invalid access, no uninitialized value, no leak.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    export OMP_NUM_THREADS=2
    command -v valgrind > /dev/null || skip "needs valgrind"
    cd "$root/examples" || return 1
    tf-graph digits.lua | tf-opt | tf-place > "$BATS_FILE_TMPDIR/digits.tfg"
    grep -v '^entry.train' digits.lua | tf-graph - > "$BATS_FILE_TMPDIR/forward.tfg"
    ./feed --rows 1-64 --batch 32 > "$BATS_FILE_TMPDIR/train.rec"
}

setup() {
    cd "$root/examples" || return 1
}

checked() { # COMMAND...
    valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect \
        --suppressions="$root/tests/lib/valgrind.supp" "$@" > "$BATS_TEST_TMPDIR/out"
}

@test "tf-graph" {
    checked tf-graph digits.lua
    checked tf-graph --text <(tf-show --text "$BATS_FILE_TMPDIR/digits.tfg")
}

@test "tf-grad" {
    checked tf-grad --minimize loss --optimizer adam "$BATS_FILE_TMPDIR/forward.tfg"
}

@test "tf-opt and tf-place" {
    checked tf-opt --report "$BATS_FILE_TMPDIR/digits.tfg"
    checked tf-place --report "$BATS_FILE_TMPDIR/digits.tfg"
}

@test "tf-data" {
    checked tf-data csv data/digits.csv.gz x=1-64 y=65:int32 --rows 1-64 --shuffle --batch 10
}

@test "tf-op" {
    checked tf-op MatMul '[[1.0,2],[3,4]]' '[[1.0],[1]]'
}

@test "tf-exec: training, and a loop" {
    checked tf-exec -g "$BATS_FILE_TMPDIR/digits.tfg" --run train --fetch loss \
        --feed "$BATS_FILE_TMPDIR/train.rec" --save "$BATS_TEST_TMPDIR/a.ckpt"
    echo 'local i, s = while_loop(function(i, s) return Less(i, 9) end,
        function(i, s) return i + 1, s * 2.0 end, {Const(0), Const(1.0)})
        y = s' | tf-graph - > "$BATS_TEST_TMPDIR/loop.tfg"
    checked tf-exec -g "$BATS_TEST_TMPDIR/loop.tfg" --fetch y
    [ "$(tf-show "$BATS_TEST_TMPDIR/out")" = "step 1  y 512" ]
}

@test "tf-show" {
    checked tf-show "$BATS_FILE_TMPDIR/digits.tfg"
    checked tf-show --text "$BATS_FILE_TMPDIR/digits.tfg"
    checked tf-show --json "$BATS_FILE_TMPDIR/train.rec"
}

@test "a failure leaves nothing behind either" {
    run checked tf-graph "$root/tests/data/walkthrough/wrong.lua"
    [ "$status" -eq 65 ]
    run checked tf-exec -g "$BATS_FILE_TMPDIR/digits.tfg" --run train --feed y=3
    [ "$status" -eq 65 ]
}
