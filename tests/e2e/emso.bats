#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Steps that minimize a large batch's loss without going far (Li et al., Efficient Mini-batch
# Training for Stochastic Optimization, KDD 2014), as a graph: logistic regression on 8,192 rows in
# batches of 4,096, twenty features of falling scale.
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    # a step is `inner` steps of descent on the loss plus gamma / 2 |w - before|^2
    cat >m.lua <<'LUA'
local scale = {}
for i = 1, 20 do scale[i] = 1 / i end
local function fixed(name, shape, deviation)
  return variable{name = name, shape = shape, dtype = float64, trainable = false,
                  init = init.normal{stddev = deviation}}
end
local x = fixed("x", {8192, 20}, 0.05) * Const(scale, {dtype = float64})
local sign = Sign(MatMul(x, fixed("truth", {20, 1}, 8)) + fixed("noise", {8192, 1}, 1))
local w = variable{name = "w", shape = {20, 1}, dtype = float64, init = 0}
first = Placeholder{dtype = int32, shape = {1, 2}}
local function loss_of(rows, signs, at)
  return Mean(Softplus(-(MatMul(rows, at) * signs)), {0, 1}) + 0.0005 * Sum(Square(at), {0, 1})
end
local at = Reshape(first, {2})
local rows, signs = Slice(x, at, {4096, -1}), Slice(sign, at, {4096, -1})
local before = Identity(w)
local v = before
for _ = 1, D.inner do
  v = v - (gradients(loss_of(rows, signs, v), v) + D.gamma * (v - before)) * D.rate
end
loss = loss_of(x, sign, before)
entry.train = {Assign(w, v), loss}
LUA
    for ((i = 0; i < 60; i++)); do printf '0,0\n4096,0\n'; done >f.csv
    tf-data csv f.csv first=1-2:int32 --batch 1 -o f.rec
}

train() { # INNER GAMMA RATE [OPTION]...: losses of all rows are in losses
    tf-graph m.lua -D inner="$1" -D gamma="$2" -D rate="$3" | tf-opt | tf-place |
        tf-exec --run train --fetch loss --feed f.rec "${@:4}" | tf-show --json |
        jq -r .loss >losses
}

epochs() { # until the loss is within three parts in 100,000 of the least, which the file has
    awk -v least="$(cat least)" '
        $1 < 1.00003 * least { print (NR - 1) / 2; found = 1; exit }
        END { if (!found) print 99 }' losses
}

@test "that must not go far at all is a step of gradient descent" {
    train 1 0 0.001 --save descent.ckpt
    train 8 1000 0.001 --save emso.ckpt # gamma = 1 / rate
    for name in descent emso; do tf-ckpt export $name.ckpt $name.npz; done
    /usr/bin/python3 - <<'END'
import numpy as np
a, b = (np.load(name + ".npz")["w"] for name in ("descent", "emso"))
far = np.abs(a - b).max() / np.abs(a).max()
print("differ by", far, "of the largest weight", np.abs(a).max())
assert np.abs(a).max() > 1e-3 and 0 < far < 1e-3
END
}

@test "large batches: fewer epochs than descent of any rate takes" {
    local rate
    train 10 0.01 64
    sort -g losses | head -n 1 >least
    for rate in 64 128 192 256 320 384 448 512; do
        train 1 0 $rate
        epochs
    done >descent
    train 10 0.0007 128
    epochs >emso
    paste -s descent emso
    sort -g descent | head -n 1 | paste - emso | awk '{ exit !($1 < 10 && $2 < $1) }'
}
