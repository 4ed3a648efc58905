#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A busy shard is not taken for dead. SHARD_ELEMENTS=500000000: a table of 2 GB, which takes some 10
# GB of memory.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

@test "a large table is filled, read whole, trained and saved within the default lease" {
    printf 'x\n1\n2\n3\n' >x.csv
    cat >m.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1}, name = "x"}
local table = variable{name = "table", shape = {D.n}, init = init.zeros}
loss = Sum(table, {0}) * Sum(x, {0})
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    local elements=${SHARD_ELEMENTS:-10000000}
    tf-graph -D n="$elements" m.lua | tf-opt >m.tfg
    tf-run --mode async --fetch loss --save ckpt/ --max-restarts 0 --job job m.tfg \
        -- tf-data csv "$PWD/x.csv" --batch 1 x=1:float32 2>err 3>&-
    run -1 grep -E 'silent|restart|started again' err
    tf-show --json job/worker-0.rec >losses
    cat err losses
    [ "$(jq -s --argjson n "$elements" 'map(.loss / $n + 0.5 | floor)' -c losses)" = '[0,-2,-9]' ]
    tf-ckpt verify --data ckpt/
}
