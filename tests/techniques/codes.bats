#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Over a slow link a step of a net of dense layers with gradients in one bit takes a tenth of the
# time, or less, that one takes with whole gradients.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools
load ../lib/slow_link

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    slow_link 100
    export OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
    slow_link_close
}

@test "one bit over 100 Mbit/s: at least ten times faster steps" {
    cat >m.lua <<'LUA'
local h = RandomUniform({8, 1024}, {dtype = float32})
for i = 1, 4 do h = nn.dense(h, 1024, {name = "d" .. i, activation = Tanh}) end
loss = Mean(Square(h), {0, 1})
entry.train = minimize(loss, optim.momentum{rate = 0.01})
LUA
    for mode in allreduce allreduce,bits=1; do
        tf-graph m.lua | tf-opt | tf-replicate --mode $mode -c c | tf-place -c c |
            tf-part >parts.tfg
        step 8
    done >seconds
    paste -s seconds
    awk 'NR == 1 { whole = $1 } END { exit !(NR == 2 && whole >= 10 * $1) }' seconds
}
