#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-ckpt and the files of other programs: required forms, and values that they cannot hold.
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
    echo 'none = Const() {dtype=float32, value=1}' | tf-graph --text - >g.tfg
    tf-exec -g g.tfg --fetch none -n 0 >none.ckpt
    tf-ckpt export none.ckpt none.npz
    names='import zipfile; print(zipfile.ZipFile("none.npz").namelist())'
    [ "$(/usr/bin/python3 -c "$names")" = "[]" ]
    # NumPy recognizes an archive by its first four bytes
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

@test "tables that are compressed, and texts beside the variables of TensorFlow 2" {
    tf-ckpt import "$data/checkpoint/small-snappy.index" s
    tf-ckpt init plain
    tf-ckpt import "$data/checkpoint/small-tf.index" plain
    tf-ckpt diff s plain
    run --separate-stderr -0 tf-ckpt export s x.safetensors
    [ "$stderr" = "tf-ckpt: s@0: 'words' is text, and left out" ]
    tf-ckpt init back
    tf-ckpt import x.safetensors back
    [ "$(tf-ckpt show back | grep -c float)" -eq 4 ]
    run --separate-stderr -0 tf-ckpt -q export s y.safetensors
    [ -z "$stderr" ]
    run --separate-stderr -0 tf-ckpt export s x.index # which has texts
    [ -z "$stderr" ]
}

@test "40,000 tensors are compared, salvaged and joined in a walk over them" {
    /usr/bin/python3 - << 'PYTHON' || skip "no numpy"
import numpy as np
for name, by in (("one.npz", 1), ("two.npz", 2)):
    np.savez(name, **{f"layer{i}/W": np.float32([i * by]) for i in range(40000)})
PYTHON
    for name in one two; do
        tf-ckpt init "$name"
        tf-ckpt import "$name.npz" "$name"
    done
    # a limit of processor time, as the machine may be busy: 24 s if each tensor were searched for
    run -1 bash -c 'ulimit -t 10; tf-ckpt diff one two'
    [ "${#lines[@]}" -eq 39999 ]
    (ulimit -t 10 && tf-ckpt salvage one x.ckpt)
    run -0 bash -c 'ulimit -t 10; tf-ckpt diff one x.ckpt'
    [ -z "$output" ]
}

@test "a dry run is one, or is refused" {
    tf-ckpt import "$data/checkpoint/small.npz" s --step 1
    tf-ckpt import "$data/checkpoint/small.npz" s --step 2 --replace
    [ "$(tf-ckpt forget -n s --keep-last 1)" = "step 1  to be forgotten
step 2  kept (last)" ]
    tf-ckpt init other
    for verb in "init new" "copy s other" "import $data/checkpoint/small.npz other" "list s" \
        "show s" "diff s s" "verify s" "repair s" "cat s b" "export s e.npz" "salvage s e.npz"; do
        # shellcheck disable=SC2086  # words
        run --separate-stderr -64 tf-ckpt $verb --dry-run
        [ "$stderr" = "tf-ckpt: --dry-run is for forget and prune, not for ${verb%% *}" ]
    done
    [ ! -e new ] && [ ! -e e.npz ] && [ "$(tf-ckpt list --json other | wc -l)" -eq 0 ]
}
