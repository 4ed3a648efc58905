#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The ops that cuDNN computes on GPUs, and those that stay our own, on the emulated device: the
# kernels of a plan, how they are chosen, and that they compute the same.
# shellcheck disable=SC2030,SC2031,SC2154  # stderr is set by run
load ../lib/tools
load ../lib/gpu

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    set -o pipefail
    work=$BATS_TEST_TMPDIR
}

# A convolution and its gradients, of random numbers: `run_conv` fetches all three.
convolutions() {
    printf '%s\n' 's = Const() {dtype=int32, value=[2,5,5,3]}' \
        't = Const() {dtype=int32, value=[3,3,3,4]}' \
        'x = RandomStandardNormal(s) {dtype=float32, seed=1}' \
        'w = RandomStandardNormal(t) {dtype=float32, seed=2}' \
        'y = Conv2D(x, w) {strides=[1,1,1,1], padding="SAME"}' \
        'dx = Conv2DBackpropInput(s, w, y) {strides=[1,1,1,1], padding="SAME"}' \
        'dw = Conv2DBackpropFilter(x, t, y) {strides=[1,1,1,1], padding="SAME"}' |
        tf-graph --text | tf-place > "$work/cpu.tfg"
    on_gpu < "$work/cpu.tfg" > "$work/gpu.tfg"
}

run_conv() { # [OPTION...]
    tf-exec -g "$work/gpu.tfg" --fetch y --fetch dx --fetch dw "$@" | tf-show --json
}

kernels() { # [OPTION...]: of the plan, each once
    run_conv --dump-plan "$@" | grep -oE '"kernel":"cuda_conv[^"]*"' | sort | uniq -c | tr -s ' '
}

@test "convolutions are cuDNN's where it is there, and our own where it is not" {
    emulated
    convolutions
    if [[ -z $(kernels) ]]; then skip "this build emulates no kernels"; fi
    [ "$(kernels)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=1"' ]
    own=' 3 "kernel":"cuda_conv cublaslt=130000 algorithm=20 place=0"'
    [ "$(TF_CUDNN=0 kernels)" = "$own" ]
    [ "$(TF_TEST_DEVICE_LACKS=dnn kernels)" = "$own" ]
    [ "$(TF_CUDNN=0 TF_CUBLASLT=0 kernels)" = ' 3 "kernel":"cuda_conv"' ]
    [ "$(TF_TEST_DEVICE_LACKS=dnn run_conv)" = "$(TF_CUDNN=0 run_conv)" ]
    TF_CUDNN=1 TF_TEST_DEVICE_LACKS=dnn \
        says "Conv2D: CUDA:0: the fake library of convolutions is not there" --fetch y
}

@test "algorithms are measured once, and stay as they were chosen" {
    emulated
    convolutions
    if [[ -z $(kernels) ]]; then skip "this build emulates no kernels"; fi
    export TF_GPU_CHOICES=$work/choices
    [ "$(kernels)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=2 winograd"' ]
    [ "$(wc -l < "$work/choices")" -eq 3 ]
    [[ $(cut -f1 "$work/choices") == *"conv filter float32 NHWC images=2,3,5,5 filters=4,3,3"* ]]
    [[ $(cut -f1 "$work/choices") == *" workspace=2097152K"* ]] # bytes: at most 2 GiB
    TF_GPU_CHOICES=$work/small TF_TEST_DEVICE_MEMORY=4194304 kernels > /dev/null
    [[ $(cut -f1 "$work/small") == *" workspace=512K"* ]] # a quarter of what is free
    for first in a b; do # names of any length, of which two differ at their end
        printf '%s %s\t7\t0\n' "$(seq -s' ' 500)" $first >> "$work/choices"
    done
    sed -i 's/\t2\t/\t1\t/' "$work/choices"
    [ "$(kernels)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=1"' ]
    run_conv > "$work/first"
    run_conv > "$work/second"
    cmp "$work/first" "$work/second"
    [ "$(wc -l < "$work/choices")" -eq 5 ]
    echo nonsense >> "$work/choices"
    run --separate-stderr tf-exec -g "$work/gpu.tfg" --fetch y
    [ "$status" -eq 65 ]
    [[ $stderr == *"choices: line 6 is no choice" ]]
}

@test "what is exact, or looks for NaN, has choices of its own, and none of Winograd's" {
    emulated
    convolutions
    if [[ -z $(kernels) ]]; then skip "this build emulates no kernels"; fi
    export TF_GPU_CHOICES=$work/choices
    [ "$(kernels)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=2 winograd"' ]
    for option in --exact --check; do
        [ "$(kernels $option)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=1"' ]
    done
    [ "$(wc -l < "$work/choices")" -eq 9 ]
    [ "$(TF_EXACT=1 kernels)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=1"' ]
    [ "$(wc -l < "$work/choices")" -eq 9 ]
}

@test "--fast takes algorithms that have other bits each time" {
    emulated
    convolutions
    if [[ -z $(kernels) ]]; then skip "this build emulates no kernels"; fi
    [ "$(kernels --fast)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=0"' ]
    [ "$(TF_FAST=1 kernels)" = ' 3 "kernel":"cuda_conv cudnn=90000 algorithm=0"' ]
}

# Other ops that cuDNN has, too: `run_rivals` fetches all.
rivals=(mean back lrn dlrn soft log norm dnorm given)
rivals() {
    printf '%s\n' 's = Const() {dtype=int32, value=[2,7,7,8]}' \
        'v = Const() {dtype=int32, value=[8]}' 'm = Const() {dtype=int32, value=[28,28]}' \
        'none = Const() {dtype=float32, value=[]}' \
        'x = RandomStandardNormal(s) {dtype=float32, seed=1}' \
        'g = RandomStandardNormal(s) {dtype=float32, seed=2}' \
        'scale = RandomUniform(v) {dtype=float32, seed=3}' \
        'offset = RandomUniform(v) {dtype=float32, seed=4}' \
        'mean = AvgPool(x) {ksize=[1,3,3,1], strides=[1,2,2,1], padding="SAME"}' \
        'back = AvgPoolGrad(s, mean) {ksize=[1,3,3,1], strides=[1,2,2,1], padding="SAME"}' \
        'lrn = LRN(x) {depth_radius=2}' 'dlrn = LRNGrad(g, x, lrn) {depth_radius=2}' \
        'rows = Reshape(x, m)' 'soft = Softmax(rows)' 'log = LogSoftmax(rows)' \
        'norm = FusedBatchNorm(x, scale, offset, none, none)' \
        'dnorm = FusedBatchNormGrad(g, x, scale, norm:3, norm:4)' \
        'given = FusedBatchNorm(x, scale, offset, scale, scale) {is_training=false}' |
        tf-graph --text | tf-place > "$work/cpu.tfg"
    on_gpu < "$work/cpu.tfg" > "$work/gpu.tfg"
}

run_rivals() { # [OPTION...]
    tf-exec -g "$work/gpu.tfg" "${rivals[@]/#/--fetch=}" "$@" | tf-show --json
}

needs_kernels() {
    [[ $(run_rivals --dump-plan) = *cuda_pool* ]] || skip "this build emulates no kernels"
}

n_cudnn() { # how many kernels of the plan are cuDNN's
    run_rivals --dump-plan | grep -oE '"kernel":"cuda_[a-z_]* cudnn=90000"' | wc -l
}

near_numbers() { # FILE FILE: of JSON
    [[ $(jq '.. | numbers' "$1" | wc -l) -gt 2000 ]]
    paste -d' ' <(jq '.. | numbers' "$1") <(jq '.. | numbers' "$2") |
        awk '{off = $1 - $2; if (NF != 2 || off * off > 1e-10 * (1 + $1 * $1)) {print; exit 1}}'
}

@test "ops that cuDNN has, too, are its own where it is asked for, and ours by default" {
    emulated
    rivals
    needs_kernels
    [ "$(n_cudnn)" -eq 0 ]
    [ "$(TF_CUDNN=1 n_cudnn)" -eq 8 ]
    run_rivals > "$work/own"
    TF_CUDNN=1 run_rivals > "$work/cudnn"
    run -1 cmp -s "$work/own" "$work/cudnn"
    near_numbers "$work/own" "$work/cudnn"
    TF_CUDNN=1 TF_TEST_DEVICE_LACKS=dnn-ops \
        says "Softmax: CUDA:0: the fake library has convolutions alone" --fetch soft
}

@test "the faster one of two kernels is measured once, and stays as it was chosen" {
    emulated
    rivals
    needs_kernels
    run_rivals > "$work/own"
    export TF_GPU_CHOICES=$work/choices
    [ "$(TF_CUDNN=0 n_cudnn)" -eq 0 ]
    [ "$(TF_TEST_DEVICE_LACKS=dnn-ops n_cudnn)" -eq 0 ]
    [ ! -e "$work/choices" ]
    [ "$(TF_TEST_DEVICE_SLOW=dnn-ops n_cudnn)" -eq 0 ]
    [ "$(cut -f2 "$work/choices" | sort | uniq -c | tr -s ' ')" = ' 8 0' ]
    [ "$(n_cudnn)" -eq 0 ]
    run_rivals | cmp - "$work/own"
    rm "$work/choices"
    [ "$(TF_TEST_DEVICE_SLOW=numbers n_cudnn)" -eq 0 ] # it is measured on numbers, not on zeros
    rm "$work/choices"
    [ "$(n_cudnn)" -eq 8 ]
    grep -q 'cudnn=90000 avg-pool float32 NHWC images=2,8,7,7 window=3,3 ' "$work/choices"
    [ "$(grep -c 'cudnn=90000 log-softmax ' "$work/choices")" -eq 1 ]
    [ "$(TF_TEST_DEVICE_SLOW=dnn-ops n_cudnn)" -eq 8 ]
    sed -i '/softmax/s/\t1\t/\t0\t/' "$work/choices"
    [ "$(n_cudnn)" -eq 6 ]
    [ "$(TF_CUDNN=1 n_cudnn)" -eq 8 ]
    [ "$(wc -l < "$work/choices")" -eq 8 ]
}

@test "what cuDNN computes can be captured" {
    emulated
    rivals
    export TF_CUDNN=1
    run_rivals --steps 4 > "$work/captured"
    TF_TEST_DEVICE_CAPTURE=0 run_rivals --steps 4 | cmp - "$work/captured"
    [ "$(wc -l < "$work/captured")" -eq 4 ]
}

@test "what cuDNN cannot do, or does otherwise, stays with our kernels" {
    emulated
    printf '%s\n' 's = Const() {dtype=int32, value=[2,6,6,8]}' \
        'v = Const() {dtype=int32, value=[8]}' 'one = Const() {dtype=int32, value=[1,1,1,8]}' \
        'none = Const() {dtype=float32, value=[]}' \
        'x = RandomStandardNormal(s) {dtype=float32, seed=1}' \
        'scale = RandomUniform(v) {dtype=float32, seed=3}' \
        'cell = RandomUniform(one) {dtype=float32, seed=3}' \
        'whole = Cast(x) {DstT=int32}' 'half = Cast(x) {DstT=float16}' \
        'brain = Cast(x) {DstT=bfloat16}' \
        'crooked = MaxPool(x) {ksize=[1,3,3,1], strides=[1,2,2,1], padding="SAME"}' \
        'meant = AvgPool(x) {ksize=[1,3,3,1], strides=[1,2,2,1], padding="SAME"}' \
        'fine = AvgPool(x) {ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID"}' \
        'ints = MaxPool(whole) {ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID"}' \
        'y = MaxPool(x) {ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID"}' \
        'ties = MaxPoolGrad(x, y, y) {ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID"}' \
        'back = MaxPoolGradGrad(x, y, x) {ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID"}' \
        'beside = MaxPool(x) {ksize=[1,2,2,1], strides=[1,1,1,1], padding="EXPLICIT",
          explicit_paddings=[0,0,2,2,2,2,0,0]}' \
        'far = LRN(x) {depth_radius=8}' 'flat = LRN(x) {beta=0.001}' \
        'low = LRN(x) {bias=0.000001}' 'short = LRN(half)' 'soft = Softmax(brain)' \
        'alone = FusedBatchNorm(cell, scale, scale, none, none)' \
        'given = FusedBatchNormGrad(x, x, scale, scale, scale) {is_training=false}' \
        'narrow = Cast(scale) {DstT=float16}' 'empty = Cast(none) {DstT=float16}' \
        'halves = FusedBatchNorm(half, narrow, narrow, empty, empty)' |
        tr '\n' ' ' | sed 's/ \([a-z]* = \)/\n\1/g' |
        tf-graph --text | tf-place | on_gpu > "$work/gpu.tfg"
    rivals=(crooked meant ints ties back beside far flat low short soft alone given halves)
    needs_kernels
    run_rivals > "$work/own"
    export TF_CUDNN=1
    run_rivals | cmp - "$work/own"
    rivals+=(fine)
    [ "$(run_rivals --dump-plan | grep -oE '"node":"[a-z]*","kernel":"[a-z_]* cudnn=' |
        cut -d'"' -f4)" = fine ]
}
