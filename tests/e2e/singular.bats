#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Functions of the prelude, ops and their gradients at singular points: 0, denormals, infinities,
# NaN, equal values, no element, one element, more elements than 16 bits count. singular.lua has the
# ops, and its continuation singular-prelude.lua each function of the prelude.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

setup() {
    use_tools
    set -o pipefail
    cd "$BATS_TEST_TMPDIR" || return 1
}

wrong() { # COMMAND: names of the checks that fail, when it has had the graph
    cat "$root"/tests/e2e/singular{,-prelude}.lua >all.lua
    tf-graph -q all.lua -o m.tfg 2>names || { cat names && return 1; }
    grep -o 'check.*' names | cut -f2 >checks
    [ "$(wc -l <checks)" -gt 320 ]
    "$@" <m.tfg | tf-exec -q --run train --fetch right | tf-show --json |
        grep -oE 'true|false' >results
    paste results checks | grep -v '^true' || true
}

@test "singular points have the values that are documented" {
    [ -z "$(wrong cat)" ]
}

@test "and have them in graphs that were simplified" {
    [ -z "$(wrong tf-opt -q --keep right)" ]
}

@test "a mean over more than 16 bits count has its gradient in mixed precision" {
    cat >m.lua <<'EOF'
local shape = {8, 70000, 4}
local x = RandomUniform(shape, {dtype = float32, seed = 1})
if not D.known then -- but by the data
    x = Gather(x, Range(0, Cast(Sum(Fill({1}, 8.0), 0), {DstT = int32}), 1))
    local n = Cast(Sum(Fill({1}, 70000.0), 0), {DstT = int32})
    x = Reshape(x, Pack{Const(8, {dtype = int32}), n, Const(4, {dtype = int32})})
end
local w = variable{name = "w", shape = {4, 4}, init = init.ones}
local v = variable{name = "v", shape = {4, 4}, init = init.ones}
local h = Reshape(MatMul(Reshape(x, {-1, 4}), w), Shape(x))
entry.train = minimize(Sum(MatMul(Mean(h, {1}), v), {0, 1}), optim.sgd{rate = 1})
EOF
    for known in true false; do
        tf-graph -q -D known=$known m.lua -o m.tfg
        for half in '--half fp16 --loss-scale 16' '--half bf16'; do
            # shellcheck disable=SC2086  # options
            tf-opt -q $half m.tfg | tf-exec -q --run train -n 1 --save m.ckpt
            tf-show --json m.ckpt | finds -E '"w":\[\[-(14\.9|15)'
        done
    done
}
