#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Products on GPUs by cuBLASLt, on the emulated device: the algorithms of a plan, how they are
# chosen, and that they compute the same.
# shellcheck disable=SC2030,SC2031,SC2154  # stderr is set by run
load ../lib/tools
load ../lib/gpu

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$root/examples" || return 1
    set -o pipefail
    work=$BATS_TEST_TMPDIR
}

# Products of random numbers: `run_products` fetches both.
products() { # TYPE
    printf '%s\n' 's = Const() {dtype=int32, value=[2,3,60]}' \
        't = Const() {dtype=int32, value=[2,60,4]}' 'u = Const() {dtype=int32, value=[60,7]}' \
        "x = RandomStandardNormal(s) {dtype=$1, seed=1}" \
        "w = RandomStandardNormal(t) {dtype=$1, seed=2}" \
        "v = RandomStandardNormal(u) {dtype=$1, seed=3}" 'y = BatchMatMul(x, w)' \
        'z = MatMul(v, v) {transpose_a=true}' | tf-graph --text | tf-place | on_gpu \
        > "$work/gpu.tfg"
}

run_products() { # [OPTION...]
    tf-exec -g "$work/gpu.tfg" --fetch y --fetch z "$@" | tf-show --json
}

multipliers() { # [OPTION...]: of the plan, each once
    run_products --dump-plan "$@" | grep -oE '"kernel":"cuda_(batch_)?matmul[^"]*"' |
        cut -d' ' -f2- | sort | uniq -c | tr -s ' '
}

peak() { # of the memory of a plan that has one product
    tf-exec -g "$work/gpu.tfg" --fetch z --dump-plan | tf-show --json | jq 'select(.peak).peak'
}

@test "products are cuBLASLt's where it is there, and cuBLAS' where it is not" {
    emulated
    products float32
    if [[ -z $(multipliers) ]]; then skip "this build emulates no kernels"; fi
    [ "$(multipliers)" = ' 2 cublaslt=130000 algorithm=20 place=0"' ]
    finds '"cuda_matmul"' <<< "$(TF_CUBLASLT=0 run_products --dump-plan)"
    finds '"cuda_batch_matmul"' <<< "$(TF_TEST_DEVICE_LACKS=lt run_products --dump-plan)"
    [ "$(TF_TEST_DEVICE_LACKS=lt run_products)" = "$(TF_CUBLASLT=0 run_products)" ]
    TF_CUBLASLT=1 TF_TEST_DEVICE_LACKS=lt \
        says "MatMul: CUDA:0: the fake library of chosen matrix products is not there" --fetch z
}

@test "algorithms of products are measured once, and work in memory of the step" {
    emulated
    products float32
    if [[ -z $(multipliers) ]]; then skip "this build emulates no kernels"; fi
    by_shapes=$(peak)
    export TF_GPU_CHOICES=$work/choices
    [ "$(multipliers)" = ' 2 cublaslt=130000 algorithm=21 place=1"' ]
    [ "$(wc -l < "$work/choices")" -eq 2 ]
    finds -F 'product float32 NT sizes=7,7,60 ld=7,7,7 batches=1 steps=0,0,0' < "$work/choices"
    [ "$(peak)" -ge $((by_shapes + 7 * 7 * 16)) ]
    [ "$(wc -l < "$work/choices")" -eq 2 ]
    sed -i 's/\t1\t/\t0\t/' "$work/choices"
    [ "$(multipliers)" = ' 2 cublaslt=130000 algorithm=20 place=0"' ]
    sed -i 's/\t0\t/\t3\t/' "$work/choices" # as of another list: cuBLAS computes it
    finds '"cuda_matmul"' <<< "$(run_products --dump-plan)"
    [ "$(wc -l < "$work/choices")" -eq 2 ]
}

@test "--fast takes products in any order, but rounds no sum to 16 bits before it is over" {
    emulated
    products float32
    if [[ -z $(multipliers) ]]; then skip "this build emulates no kernels"; fi
    [ "$(multipliers --fast)" = ' 2 cublaslt=130000 algorithm=22 place=0"' ]
    products bfloat16
    [ "$(multipliers --fast)" = ' 2 cublaslt=130000 algorithm=20 place=0"' ]
}

# 79 images at once and a rest of 21, whose output begins at an address that cuBLASLt does not take.
@test "a batch that is unrolled in parts has a choice for each, and the CPU's values" {
    emulated
    printf '%s\n' 's = Const() {dtype=int32, value=[100,65,65,4]}' \
        't = Const() {dtype=int32, value=[5,5,4,1]}' \
        'x = RandomUniform(s) {dtype=float32, seed=1}' \
        'w = RandomUniform(t) {dtype=float32, seed=2}' 'a = Const() {dtype=int32, value=[1,2,3]}' \
        'y = Conv2D(x, w) {strides=[1,1,1,1], padding="SAME"}' 'z = Sum(y, a)' |
        tf-graph --text | tf-place > "$work/cpu.tfg"
    on_gpu < "$work/cpu.tfg" > "$work/gpu.tfg"
    export TF_GPU_CHOICES=$work/choices TF_CUDNN=0
    tf-exec -g "$work/gpu.tfg" --fetch z | tf-show --json | jq '.z[]' > "$work/gpu"
    [ -s "$work/choices" ] || skip "this build emulates no kernels"
    [ "$(grep -oE 'sizes=[0-9,]*' "$work/choices" | paste -sd' ')" = \
        'sizes=1,333775,100 sizes=1,88725,100' ]
    tf-exec -g "$work/cpu.tfg" --fetch z | tf-show --json | jq '.z[]' > "$work/cpu"
    [ "$(wc -l < "$work/cpu")" -eq 100 ]
    paste "$work/gpu" "$work/cpu" | awk '{off = $1 / $2 - 1; if (off * off > 1e-12) exit 1}'
}

@test "a net with measured products has the same bits captured, and not captured" {
    emulated
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    tf-graph digits_cnn.lua | tf-opt | tf-place | on_gpu > "$work/gpu.tfg"
    export TF_GPU_CHOICES=$work/choices TF_CUDNN=0
    train "$work/gpu.tfg" measured
    [ -s "$work/choices" ] || skip "this build emulates no kernels"
    cp "$work/choices" "$work/before"
    train "$work/gpu.tfg" kept
    TF_TEST_DEVICE_CAPTURE=0 train "$work/gpu.tfg" uncaptured
    same measured kept
    same measured uncaptured
    cmp "$work/before" "$work/choices"
    unset TF_GPU_CHOICES
    train "$work/gpu.tfg" by_shapes
    near measured by_shapes
}
