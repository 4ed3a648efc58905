#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/gpu-check without a card: its parts on the emulated device, with small sizes.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run and setup
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    export GPU_REPORT=$BATS_TEST_TMPDIR/report TMPDIR=$BATS_TEST_TMPDIR
    check=$root/scripts/gpu-check
}

@test "a machine without a card has the line of tf-exec, and 69" {
    run --separate-stderr "$check" cases
    if [[ $status -ne 69 ]]; then skip "this machine has a card"; fi
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == "tf-exec: "*"CUDA"* ]]
    [ ! -e "$GPU_REPORT" ]
    run --separate-stderr "$root/tests/bench/gpu.sh" card
    [ "$status" -eq 69 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
}

@test "pieces are listed, and one that is none is refused" {
    run "$check" list
    [ "$status" -eq 0 ]
    [ "$(grep -cE "^(sanitizer|bench):" <<< "$output")" -eq 13 ]
    run --separate-stderr "$check" cases nothing
    [ "$status" -eq 64 ]
    [[ $stderr == "gpu-check: no piece is called 'nothing'; there are: cases "* ]]
}

@test "pieces pass on the emulated device, one call or several, and the report has all" {
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib
    "$check" cases executor sanitizer:memcheck bench:mlp
    "$check" accuracy losses bits split
    "$check" job
    "$check" convolutions products rivals
    for piece in cases convolutions products rivals executor accuracy losses bits split job; do
        finds -E "^    $piece +[1-9][0-9]* passed +0 failed " < "$GPU_REPORT/report.md"
    done
    finds -E "^    (sanitizer:memcheck|bench:mlp) +0 passed +0 failed +1 skipped" \
        < "$GPU_REPORT/report.md"
    finds -E '^    cuDNN: [1-9][0-9]* algorithms measured, 0 refused' < "$GPU_REPORT/report.md"
    finds -E '^    cuDNN: the faster one in [1-9][0-9]* of [1-9]' < "$GPU_REPORT/report.md"
    finds -E '^    cuBLASLt: [1-9][0-9]* algorithms measured, 0 refused' < "$GPU_REPORT/report.md"
    finds 'skipped, 1: the device is emulated' < "$GPU_REPORT/report.md"
    finds '^    sanitizer:initcheck  *not run' < "$GPU_REPORT/report.md"
    finds -E '^    digits: test accuracy 0\.' < "$GPU_REPORT/report.md"
}

@test "what fails is in the report, and in the status" {
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib
    TF_TEST_DEVICE_LACKS=blas run "$check" split sanitizer:memcheck
    if [[ $status -eq 0 ]]; then skip "this build emulates no kernels"; fi
    [ "$status" -eq 1 ]
    finds -E '^    split +1 passed +2 failed' < "$GPU_REPORT/report.md"
    finds '^    not ok ' < "$GPU_REPORT/report.md"
}

@test "the nets of bench-gpu run a step on the CPU, and are placed on a GPU" {
    ON=CPU run "$root/tests/bench/gpu.sh" softmax mlp lstm alexnet overfeat vgg googlenet inception
    [ "$status" -eq 0 ]
    [ "$(grep -cE '^[a-z]+  loss [0-9.]+$' <<< "$output")" -eq 8 ]
}

@test "bench-gpu times steps on the emulated device, without PyTorch" {
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib
    PYTHON=false ROUNDS=1 STEPS=2 FEED_BATCH=16 run "$root/tests/bench/gpu.sh" softmax steps
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "no torch (set PYTHON): our own figures" ]
    finds -E '^softmax +32 float32 +-?[0-9.]+ +-$' <<< "$output"
    finds -E '^chain +128 float32 +-?[0-9.]+ +-$' <<< "$output"
    finds -E '^feeds: 32 copies in [0-9.]+ ms, [0-9]+ % of it' <<< "$output"
}
