#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Training through pipes: compared with PyTorch's losses, and with the same bits in every run.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$root/examples" || return 1
    set -o pipefail
}

perceptron_like_torch() { # OPTIMIZER
    local work=$BATS_TEST_TMPDIR
    tf-graph -D "optimizer=$1" "$root/tests/e2e/perceptron.lua" | tf-opt | tf-place > "$work/g"
    ./feed --rows 1-1437 --batch 64 --epochs 5 --steps 100 |
        tf-exec -g "$work/g" --run train --fetch loss |
        tf-show --json | jq .loss > "$work/losses"
    paste "$work/losses" "$root/tests/data/perceptron/$1.txt" |
        awk '{ d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > 1e-4) bad = bad " " NR ":" $1 "/" $2 }
             END { if (NR != 100 || bad) { print NR " steps; beyond 1e-4:" bad; exit 1 } }'
}

@test "100 losses of the perceptron are PyTorch's to 1e-4: SGD" {
    perceptron_like_torch sgd
}

@test "100 losses of the perceptron are PyTorch's to 1e-4: momentum" {
    perceptron_like_torch momentum
}

@test "100 losses of the perceptron are PyTorch's to 1e-4: Adam" {
    perceptron_like_torch adam
}

train() { # SCRIPT CHECKPOINT OPTION...
    local script=$1 checkpoint=$BATS_TEST_TMPDIR/$2
    shift 2
    tf-graph "$script" | tf-opt | tf-place > "$BATS_TEST_TMPDIR/g"
    ./feed --rows 1-640 --shuffle --batch 64 --epochs 3 |
        tf-exec -g "$BATS_TEST_TMPDIR/g" --run train --save "$checkpoint.ckpt" "$@" > /dev/null
    tf-show --json "$checkpoint.ckpt" > "$checkpoint"
}

@test "the same seed gives the same bits, run after run" {
    for script in digits.lua digits_cnn.lua; do
        train "$script" a
        train "$script" b
        cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
    done
}

@test "with --deterministic the same bits with 1 and 2 threads" {
    for script in digits.lua digits_cnn.lua; do
        train "$script" a --deterministic --threads 1
        train "$script" b --deterministic --threads 2
        cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
    done
}

@test "with --deterministic matrices come out the same with 1, 2 and 3 threads" {
    cat > "$BATS_TEST_TMPDIR/m.lua" << 'EOF'
        function normal(...) return RandomStandardNormal({...}, {dtype = float64}) end
        m = normal(300, 300)
        narrow = MatMul(normal(40, 50000), normal(50000, 30))
        inverse = MatrixInverse(m)
        solution = MatrixSolve(m, normal(300, 200))
        factor = Cholesky(MatMul(m, m, {transpose_b = true}))
EOF
    tf-graph "$BATS_TEST_TMPDIR/m.lua" | tf-place > "$BATS_TEST_TMPDIR/m"
    for n in 1 2 3; do
        tf-exec -q -g "$BATS_TEST_TMPDIR/m" --deterministic --threads $n --fetch narrow \
            --fetch inverse --fetch solution --fetch factor |
            tf-show --json > "$BATS_TEST_TMPDIR/$n.json"
    done
    grep -q factor "$BATS_TEST_TMPDIR/1.json"
    cmp "$BATS_TEST_TMPDIR/1.json" "$BATS_TEST_TMPDIR/2.json"
    cmp "$BATS_TEST_TMPDIR/1.json" "$BATS_TEST_TMPDIR/3.json"
}

@test "another seed gives other weights" {
    train digits.lua a
    tf-graph --seed 1 digits.lua | tf-place > "$BATS_TEST_TMPDIR/g"
    ./feed --rows 1-640 --shuffle --batch 64 --epochs 3 |
        tf-exec -g "$BATS_TEST_TMPDIR/g" --run train --save "$BATS_TEST_TMPDIR/b.ckpt" > /dev/null
    tf-show --json "$BATS_TEST_TMPDIR/b.ckpt" > "$BATS_TEST_TMPDIR/b"
    run -1 cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
}

@test "a net trains in floats of 16 bits, its variables included" {
    local work=$BATS_TEST_TMPDIR type
    for type in bfloat16 float16; do
        sed "s/^local image.*/local image = Reshape(Cast(x, {DstT = $type}) \/ 16, {-1, 8, 8, 1})/
            s/optim.adam{.*}/optim.momentum{rate = 0.05}/" digits_cnn.lua > "$work/net.lua"
        tf-graph "$work/net.lua" | tf-opt | tf-place > "$work/g"
        ./feed --rows 1-1437 --shuffle --batch 64 --epochs 4 |
            tf-exec -g "$work/g" --run train --save "$work/$type.ckpt" > /dev/null
        tf-show "$work/$type.ckpt" | grep "^conv1/W  $type\[" > /dev/null
        ./feed --rows 1438- --batch 360 |
            tf-exec -g "$work/g" --run eval --restore "$work/$type.ckpt" |
            tf-show --json | jq -e '.accuracy > 0.9'
    done
}
