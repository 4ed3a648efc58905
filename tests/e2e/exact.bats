#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Which outputs depend on a pixel that is NaN, infinite or very large, in a convolution that
# Winograd's algorithm would compute, and in its gradient for the image.
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    set -o pipefail
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.lua <<'EOF'
local pixel = D.nan and 0/0 or D.inf and 1/0 or D.pixel
local shape, s = {2, 16, 16, 32}, {strides = {1, 1, 1, 1}, padding = "SAME"}
local clean = RandomUniform(Const(shape, {dtype = int32}), {dtype = float32, seed = 1})
local at = OneHot(Const(8 * 16 + 8, {dtype = int32}), 256, Const(true), Const(false))
local there = Reshape(at, {1, 16, 16, 1})
local x = Placeholder{name = "x", dtype = float32, shape = shape}
local f = RandomUniform(Const({3, 3, 32, 32}, {dtype = int32}), {dtype = float32, seed = 2}) - 0.5
hurt = Select(there, ZerosLike(clean) + pixel, clean)
before = Identity(clean)
forward = Conv2D(x, f, s)
backward = gradients(Conv2D(clean, f, s), clean, {grad_ys = x})
filter = Conv2DBackpropFilter(x, Const({3, 3, 32, 32}, {dtype = int32}), clean, s)
ready = Relu(forward)
EOF
}

# Counts the outputs outside the pixel's window that differ between the two runs: of `forward` or
# `backward`, by tf-exec with the options.
beside() { # PIXEL OUTPUT [OPTION...]
    local pixel=$1 output=$2 k
    shift 2
    tf-graph -q -D "$pixel" m.lua -o m.tfg
    for k in before hurt; do
        tf-exec -q -g m.tfg --fetch "$k" | tf-show --npy >"$k.npy"
        tf-exec -q -g m.tfg --feed "x=$k.npy" --fetch "$output" "$@" | tf-show --npy >"$k.out"
    done
    python3 - <<'EOF'
import struct
def read(name):
    data = open(name, "rb").read()
    at = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack("<%df" % ((len(data) - at) // 4), data[at:])
n = 0
for i, (a, b) in enumerate(zip(read("before.out"), read("hurt.out"))):
    y, x = i // 32 // 16 % 16, i // 32 % 16
    n += not (7 <= y <= 9 and 7 <= x <= 9 or a == b)
print(n)
EOF
}

@test "--exact: what does not see a pixel does not depend on it, and Winograd's does" {
    for output in forward backward; do
        for pixel in nan=1 inf=1 pixel=1e7; do
            [ "$(beside $pixel $output --exact)" -eq 0 ]
            [ "$(beside $pixel $output)" -gt 100 ]
            [ "$(TF_EXACT=1 beside $pixel $output)" -eq 0 ]
        done
    done
}

@test "plans say which algorithm it is" {
    tf-graph -q -D nan=1 m.lua -o m.tfg
    kernels() {
        tf-exec -q -g m.tfg --feed x=before.npy --fetch forward,backward,filter,ready "$@" \
            --dump-plan | tf-show | grep -oE 'conv\.[a-z]+' | sort | uniq -c | tr -s ' '
    }
    tf-exec -q -g m.tfg --fetch before | tf-show --npy >before.npy
    [ "$(kernels)" = ' 3 conv.winograd' ]
    [ "$(kernels --exact)" = ' 3 conv.direct' ]
    [ "$(kernels --check)" = ' 3 conv.direct' ]
    tf-exec -q -g m.tfg --fetch before --exact --dump-plan | tf-show --json >plan
    grep -q '"choice":"isa=.* exact"' plan
}

@test "--check names the node where a NaN arises, of all before it" {
    cat >n.lua <<'EOF'
local s = {strides = {1, 1, 1, 1}, padding = "SAME"}
local x = RandomUniform(Const({1, 16, 16, 32}, {dtype = int32}), {dtype = float32, seed = 1})
local f = RandomUniform(Const({3, 3, 32, 32}, {dtype = int32}), {dtype = float32, seed = 2})
local big = x + Reshape(OneHot(Const(0, {dtype = int32}), 256, Const(3e38), Const(0.0)),
                        {1, 16, 16, 1})
middle = Slice(Conv2D(big, f, s), {0, 8, 8, 0}, {1, 4, 4, 32}, {name = "middle"})
corner = Slice(Conv2D(big, f * 1e-3, s), {0, 2, 2, 0}, {1, 2, 2, 32}, {name = "corner"})
EOF
    tf-graph -q n.lua -o n.tfg
    tf-exec -q -g n.tfg --fetch corner --check
    run tf-exec -q -g n.tfg --fetch middle --check
    [ "$status" -eq 65 ]
    [[ $output == *"Conv2D"* ]]
}

@test "tf-op computes directly, and a job's tasks are told" {
    tf-graph -q -D nan=1 m.lua -o m.tfg
    for k in before hurt; do tf-exec -q -g m.tfg --fetch $k | tf-show --npy >$k.npy; done
    tf-exec -q -g m.tfg --fetch filter --feed x=before.npy | tf-show --npy >f.npy
    tf-op -q Conv2D hurt.npy f.npy 'strides=[1,1,1,1]' padding=SAME | tf-op -q IsNan |
        tf-op -q Cast DstT=int32 | tf-op -q Sum - '[0,1,2,3]' | tf-show --json >n
    [ "$(grep -oE '[0-9]+' n | tail -1)" -eq $((2 * 9 * 32)) ]
    printf 'w = variable{name="w", shape={}}; entry.train = minimize(w * w, optim.sgd())' >t.lua
    tf-graph -q t.lua -o t.tfg
    tf-run --dry-run --exact --ps 1 --workers 2 t.tfg >dry
    [ "$(grep -c -- "--exact" dry)" -ge 3 ]
    tf-run --dry-run --ps 1 --workers 2 t.tfg >dry
    run -1 grep -q -- "--exact" dry
}
