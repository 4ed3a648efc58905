#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-ckpt and the files of other programs: what they must be, and what they cannot hold.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    data=$BATS_TEST_DIRNAME/../data
    cd "$BATS_TEST_TMPDIR" || return 1
    tf-ckpt init s
}

refuses() { # STATUS LINE COMMAND...
    local wanted=$1 line=$2
    shift 2
    run --separate-stderr "$@"
    [[ $status -eq $wanted && $stderr == "$line"* && ${#stderr_lines[@]} -eq 1 ]] ||
        { echo "$*: $status, $stderr" && false; }
}

@test "an .npz that contradicts itself, or holds something else, is refused" {
    refuses 65 "tf-ckpt: $data/npy/mixed.npz: has no tensors: nothing to import" \
        tf-ckpt import "$data/npy/mixed.npz" s
    refuses 65 "tf-ckpt: $data/npy/twice.npz: array 'a' is in it twice" \
        tf-ckpt import "$data/npy/twice.npz" s
    [ "$(tf-ckpt list --json s | wc -l)" -eq 0 ]
}

@test "an export without tensors is an archive without members" {
    echo 'nothing = NoOp()' | tf-graph --text - >g.tfg
    tf-exec -g g.tfg --run nothing --save none.ckpt
    tf-ckpt export none.ckpt none.npz
    names='import zipfile; print(zipfile.ZipFile("none.npz").namelist())'
    [ "$(/usr/bin/python3 -c "$names")" = "[]" ]
    # NumPy knows an archive by its first four bytes
    [ "$(head -c 4 none.npz | od -An -tx1 | xargs)" = "50 4b 05 06" ]
    refuses 65 "tf-ckpt: none.npz: has no tensors: nothing to import" tf-ckpt import none.npz s
}

@test "partitioned variables of TensorFlow are imported whole" {
    tf-ckpt import "$data/checkpoint/parts-tf.index" s
    tf-ckpt import "$data/checkpoint/grid-tf.index" s
    [ "$(tf-ckpt list --json s | jq .step | xargs)" = "77 0" ] # the global_step of one
    [ "$(tf-ckpt cat s@77 row | tf-show)" = "row  float32[10,3]  min 0 max 29 mean 14.5" ]
    [ "$(tf-ckpt cat s@0 grid | tf-show)" = "grid  int64[5,200]  min 0 max 999000 mean 5e+05" ]
    cp "$data/checkpoint/grid-tf.index" "$data"/checkpoint/grid-tf.data-00000* .
    refuses 66 "tf-ckpt: grid-tf.index: '" tf-ckpt import grid-tf.index s
}
