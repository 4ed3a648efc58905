#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Gradients leave as soon as they are there (wait-free back-propagation; Zhang et al., Poseidon,
# 2017): where exchange and computation take as long as each other, a step takes about as long as
# one of them. Two hosts, joined by a link of 100 Mbit/s: network namespaces, which need root and
# tc. Layers take their time by sleeping, as if a device computed them.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools
load ../lib/slow_link
load ../lib/pause

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    slow_link 100
    make_pause
    export OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
    slow_link_close
}

# model SECONDS: m.tfg, whose lower six layers compute so long, nearly all of it back; the four
# above have nearly all of its parameters, 4 MiB each, as dense layers have behind convolutions
model() {
    cat >m.lua <<END
local h = RandomUniform({2, 32}, {dtype = float32})
local function layer(m, n, name)
  h = MatMul(h, variable{name = name, shape = {m, n}, init = init.normal{stddev = 0.1}})
end
for i = 1, 6 do
  layer(32, 32, "low" .. i)
  h = Pause(h, {forward = $1 * 0.02 / 6, backward = $1 * 0.98 / 6})
end
layer(32, 1024, "wide")
for i = 1, 4 do layer(1024, 1024, "high" .. i) end
entry.train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 0.001})
END
    tf-graph m.lua | tf-opt >m.tfg
}

# parts [SED-SCRIPT]: m.tfg for both workers, the graph's text changed so
parts() {
    tf-replicate --mode allreduce -c c m.tfg | tf-show --text | sed "${1-}" |
        tf-graph --text | tf-place -c c | tf-part >parts.tfg
}

early() { # TRACE: how many gradients leave before the lowest layer's way back begins
    jq -s 'map(select(.step == 4 and .start)) |
        (map(select(.op == "Pause").start) | max) as $lowest |
        map(select(.op == "AllReduce" and .start < $lowest)) | length' "$1"
}

@test "a step takes the longer of exchange and computation, and gradients leave in between" {
    model 0
    parts
    exchange=$(step 6)
    model "$exchange"
    tf-exec -g m.tfg --run train -n 4 --trace t >out
    compute=$(seconds t)
    parts
    overlapped=$(step 6)
    tf-show --json t0 >overlapped.json
    # the same graph, but that no gradient leaves before the last one is there
    parts '/^allreduce.gradients.* = AllReduce(/s#) {#, ^low1/gradient) {#'
    one_by_one=$(step 6)
    tf-show --json t0 >one_by_one.json
    echo "exchange $exchange, computation $compute: $overlapped; without overlap $one_by_one"
    jq -n --argjson exchange "$exchange" --argjson compute "$compute" \
        --argjson overlapped "$overlapped" --argjson one_by_one "$one_by_one" \
        '$overlapped <= 1.1 * ([$exchange, $compute] | max) and
            $one_by_one >= 0.95 * ($exchange + $compute)' | grep -x true
    # gradients of 4 MiB have left before the lowest layer is computed
    [ "$(early overlapped.json) $(early one_by_one.json)" = "4 0" ]
}
