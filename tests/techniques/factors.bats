#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A layer of 4096 by 4096 and 100 rows, as Project Adam has them: its factors are a twentieth of its
# gradient, and make the same weights.
load ../lib/tools
load ../lib/shards

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    printf 'task ps:0 unix:p\ntask worker:0 unix:v\ntask worker:1 unix:w\n' >c
    cat >m.lua <<'LUA'
local x = RandomUniform({100, 4096}, {dtype = float32}) - 0.5
w = variable{name = "w", shape = {4096, 4096}, init = init.normal{stddev = 0.01}}
entry.train = minimize(Mean(Square(MatMul(x, w) - 1), {0, 1}), optim.sgd{rate = 200})
LUA
    tf-graph m.lua | tf-opt >m.tfg
}

teardown() {
    kill_pids "${pids[@]}"
}

# train MODE NAME: NAME.npy has the weights after five steps, NAME the bytes that a step pushes
train() {
    tf-replicate --mode "$1" -c c m.tfg | tf-place -c c | tf-part >p.tfg
    serve ps:0
    work 1 --run train --steps 5 >out1 2>err1 3>&- &
    work 0 --run train --steps 5 --trace t >out
    wait $!
    tf-show --json t | jq -s 'map(select(.peer)) | (map(select(.step == 4).sent) | add) -
        (map(select(.step == 3).sent) | add)' >"$2"
    tf-ps save "$2.ckpt" -c c
    tf-ckpt export "$2.ckpt" "$2.npz"
    stop
}

@test "factors of 4096 by 4096 and 100 rows: 20.5 times fewer bytes, weights to 1e-5" {
    train sync whole
    train sync,factors=all factors
    paste whole factors
    paste whole factors | awk '{ r = $1 / $2; exit !(r > 20.48 * 0.99 && r < 20.48 * 1.01) }'
    /usr/bin/python3 - <<'END'
import numpy as np
a, b = (np.load(name + ".npz")["w"] for name in ("whole", "factors"))
first = np.abs(a - b).max()
print("differ by up to", first, "of", np.abs(a).max())
assert a.shape == (4096, 4096) and 0 < first <= 1e-5
END
}
