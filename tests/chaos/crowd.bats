#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Many processes on few cores, and a job that has nothing to do.
bats_require_minimum_version 1.5.0

setup() {
    root=$(realpath "$BATS_TEST_DIRNAME/../..")
    PATH=$(realpath -m "$root/${BUILD:-build}/bin"):$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
    export OMP_NUM_THREADS=1 TMPDIR=$BATS_TEST_TMPDIR
    set -o pipefail
    # 32 variables, to lie on 16 shards; a worker is fed what it is to push
    cat >model.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {8}}
local sum = 0
for i = 1, 32 do
  sum = sum + Sum(variable{name = "v" .. i, shape = {8}, init = 0} * x, 0)
end
loss = sum
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    tf-graph model.lua | tf-opt >model.tfg
    # SECONDS STEPS: a worker's data, with a sleep before each step
    cat >feed <<'SH'
#!/bin/sh
tf-data csv ones.csv x=1-8 --batch 1 --epochs 999 --steps "$2" -o "$TF_FEED.$$" 2>/dev/null
sleep "$1"
cat "$TF_FEED.$$"
SH
    chmod +x feed
    export TF_FEED=$PWD/feed.rec
    echo 1,1,1,1,1,1,1,1 >ones.csv
    sed -i 's/shape = {8}}$/shape = {-1, 8}}/; s/\* x, 0)/* x, 0)/' model.lua
}

teardown() {
    local pid
    for pid in "$BATS_TEST_TMPDIR"/job/*.pid; do
        [ ! -s "$pid" ] || kill -9 "$(cat "$pid")" 2>/dev/null || true
    done
}
