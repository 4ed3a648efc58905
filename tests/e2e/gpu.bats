#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Graphs on GPUs: errors on a machine without one, and the CUDA device's own code over a fake driver
# (tests/lib/fake_cuda.h): with the CPU's kernels, so that all bits must equal the CPU's, and with
# its own.
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

@test "a machine without a GPU says what is missing" {
    tf-graph digits.lua | tf-place | on_gpu > "$work/gpu.tfg"
    if [[ ! -f $root/${BUILD:-build}/lib/tf-tools/cuda.so ]]; then
        says "no device of type 'CUDA' in this build: it has no cuda.so" --run init
    elif [[ ! -e /dev/nvidiactl ]]; then
        says "CUDA:0: " --run init
        [[ $stderr == *"no driver for CUDA is on this machine"* ||
            $stderr == *"this machine has no device for CUDA"* ]]
    else
        skip "this machine has a GPU"
    fi
}

@test "nets train on a card to the CPU's losses" {
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    for script in digits.lua digits_cnn.lua; do
        tf-graph "$script" | tf-opt > "$work/net.tfg"
        tf-place "$work/net.tfg" > "$work/cpu.tfg"
        tf-place --soft --devices GPU:0,CPU:0 -q "$work/net.tfg" | tf-part > "$work/gpu.tfg"
        run --separate-stderr tf-exec -g "$work/gpu.tfg" --run init
        if [[ $status -eq 69 ]]; then skip "$stderr"; fi
        train "$work/cpu.tfg" cpu
        train "$work/gpu.tfg" gpu
        near cpu gpu
    done
}

@test "driver, version, devices and pools that are missing are named" {
    emulated
    tf-graph digits.lua | tf-place | on_gpu > "$work/gpu.tfg"
    TF_TEST_DEVICE_LACKS=driver \
        says "CUDA:0: no driver for CUDA is on this machine (libcuda.so.1)" --run init
    TF_TEST_DEVICE_LACKS=newer \
        says "CUDA:0: the driver is for CUDA 12.4, and CUDA 13 is needed" --run init
    TF_TEST_DEVICE_LACKS=device says "CUDA:0: this machine has no device for CUDA" --run init
    TF_TEST_DEVICE_LACKS=pools \
        says "CUDA:0: the device or its driver has no pools of memory" --run init
    tf-graph digits.lua | tf-place | on_gpu '' 4 > "$work/gpu.tfg"
    says "CUDA:4: there is no such device: this machine has 4" --run init
}

@test "a library of products that is missing is named, where there are products" {
    emulated
    export TF_TEST_DEVICE_LACKS=blas
    ./feed --rows 1-64 --batch 64 --epochs 1 > "$work/feed.rec"
    tf-graph digits.lua | tf-opt | tf-place | on_gpu > "$work/gpu.tfg"
    tf-exec -g "$work/gpu.tfg" --run init
    run --separate-stderr tf-exec -g "$work/gpu.tfg" --run train --feed "$work/feed.rec"
    if [[ $status -eq 0 ]]; then skip "this build emulates no kernels"; fi
    [ "$status" -eq 69 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"MatMul"*"CUDA:0: the fake library of matrix products is not there"* ]]
}

@test "a library of factors that is missing is named, where there are equations" {
    emulated
    export TF_TEST_DEVICE_LACKS=solver
    printf '%s\n' 's = Const() {dtype=int32, value=[2,2]}' 'x = RandomUniform(s) {dtype=float32}' \
        'y = MatrixDeterminant(x)' | tf-graph --text | tf-place | on_gpu > "$work/gpu.tfg"
    run --separate-stderr tf-exec -g "$work/gpu.tfg" --fetch y
    if [[ $status -eq 0 ]]; then skip "this build emulates no kernels"; fi
    [ "$status" -eq 69 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"MatrixDeterminant"*"CUDA:0: the fake library of factors is not there"* ]]
}

@test "nets train on it to the CPU's bits, captured or not" {
    emulated cpu
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    for script in digits.lua digits_cnn.lua; do
        tf-graph "$script" | tf-opt | tf-place > "$work/cpu.tfg"
        on_gpu < "$work/cpu.tfg" > "$work/gpu.tfg"
        train "$work/cpu.tfg" cpu
        train "$work/gpu.tfg" gpu
        same cpu gpu
        TF_TEST_DEVICE_CAPTURE=0 train "$work/gpu.tfg" plain
        same cpu plain
    done
}

@test "nets train on its own kernels to the CPU's losses" {
    emulated
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    for script in digits.lua digits_cnn.lua; do
        tf-graph "$script" | tf-opt | tf-place > "$work/cpu.tfg"
        on_gpu < "$work/cpu.tfg" > "$work/gpu.tfg"
        train "$work/cpu.tfg" cpu
        train "$work/gpu.tfg" gpu
        near cpu gpu
    done
}

# examples/op, compiled as users do; only the CPU has a kernel.
@test "an op without a kernel for GPUs is the CPU's with --soft alone, and the net trains" {
    emulated
    ./feed --rows 1-1437 --batch 16 --epochs 1 --steps 50 > "$work/feed.rec"
    cc -shared -fPIC -O2 -I"$root/libcommon/api" op/softclip.c -o "$work/softclip.so" -lm
    export TF_OPS_PATH=$work/softclip.so
    sed 's/activation = Relu/activation = SoftClip/' digits.lua > "$work/clipped.lua"
    tf-graph "$work/clipped.lua" | tf-opt | tf-show --text |
        sed '/ = SoftClip(/s| : | @?/device:GPU:0 : |' | tf-graph --text > "$work/net.tfg"
    run --separate-stderr -65 tf-place --devices GPU:0,CPU:0 -o "$work/none" "$work/net.tfg"
    [[ $stderr == *"node 'h'"*"no kernel for SoftClip on CUDA" ]]
    tf-place --soft "$work/net.tfg" -q > "$work/cpu.tfg"
    tf-place --soft --devices GPU:0,CPU:0 "$work/net.tfg" 2> "$work/said" |
        tf-part > "$work/gpu.tfg"
    [ "$(wc -l < "$work/said")" -eq 1 ]
    finds 'h is on .*/device:CPU:0' "$work/said"
    [ "$(tf-show --text "$work/gpu.tfg" | grep -c ' = SoftClip(.*device:CPU:0')" -eq 1 ]
    [ "$(tf-show --text "$work/gpu.tfg" | grep -c 'device:CUDA:0')" -gt 50 ]
    train "$work/cpu.tfg" cpu
    train "$work/gpu.tfg" gpu
    near cpu gpu
}

@test "programs of the library train on it" {
    emulated
    tf-graph c/line.lua | tf-opt | tf-place --devices GPU:0 > "$work/line.tfg"
    cd "$work" || return 1
    LD_LIBRARY_PATH=$(realpath -m "$root/${BUILD:-build}/lib") \
        python3 "$root/examples/python/line.py" line.tfg > said
    diff said - << 'LINE'
loss 0.000000 after step 2000
y = 3.000 x + -1.000
LINE
}

@test "a graph on two GPUs and the CPU trains to the CPU's bits" {
    emulated cpu
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    tf-graph digits.lua | tf-opt | tf-place > "$work/cpu.tfg"
    on_gpu '/ = (Placeholder|Mean|ArgMax|Equal)\(/!' < "$work/cpu.tfg" |
        tf-show --text | sed -E '/ = (MatMul|BiasAdd)\(/s/device:CUDA:0/device:CUDA:1/' |
        tf-graph --text | tf-part > "$work/parts.tfg"
    [[ $(tf-show --text "$work/parts.tfg") == *CUDA:1* ]]
    train "$work/cpu.tfg" cpu
    train "$work/parts.tfg" parts
    same cpu parts
}

@test "memory of a GPU may be limited, and an error says so" {
    emulated cpu
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    tf-graph digits.lua | tf-opt | tf-place | on_gpu > "$work/gpu.tfg"
    train "$work/gpu.tfg" gpu
    run --separate-stderr tf-exec -g "$work/gpu.tfg" --run train --feed "$work/feed.rec" \
        --gpu-memory 100k
    [ "$status" -eq 71 ]
    [[ $stderr == *"no memory for "*" of the 100 KiB of CUDA:0 are in use"* ]]
    TF_GPU_MEMORY=16M train "$work/gpu.tfg" limited
    same gpu limited
}

@test "--tf32 rounds what products of float32 multiply" {
    emulated
    printf '%s = Placeholder() {dtype=float32, shape=[1,1]}\n' x w > "$work/product.txt"
    echo 'y = MatMul(x, w)' >> "$work/product.txt"
    tf-graph --text < "$work/product.txt" | tf-place | on_gpu > "$work/gpu.tfg"
    product() { # OPTION...
        tf-exec -g "$work/gpu.tfg" --fetch y --feed 'x=[[1.00048828125]]' --feed 'w=[[3]]' "$@" |
            tf-show --json | jq -c .y
    }
    if TF_TEST_DEVICE_LACKS=blas product; then skip "this build emulates no kernels"; fi
    [ "$(product)" = '[[3.0014648]]' ]
    [ "$(product --tf32)" = '[[3.0029297]]' ]
    [ "$(TF_TF32=1 product)" = '[[3.0029297]]' ]
}

@test "a GPU that fails ends the run with one line" {
    emulated cpu
    ./feed --rows 1-320 --batch 64 --epochs 1 > "$work/feed.rec"
    tf-graph digits.lua | tf-opt | tf-place | on_gpu > "$work/gpu.tfg"
    for at in 20 200 400; do
        TF_TEST_DEVICE_FAIL_CALL=$at run --separate-stderr timeout 60 tf-exec -g "$work/gpu.tfg" \
            --run train --feed "$work/feed.rec"
        [ "$status" -eq 71 ]
        [[ $stderr == *"CUDA:0 has failed: "*"a call has failed, as it was asked to"* ]]
    done
}

@test "a trace has a GPU's memory, and the placer keeps to it" {
    emulated
    ./feed --rows 1-64 --batch 64 > "$work/feed.rec"
    tf-graph digits.lua | tf-opt > "$work/net.tfg"
    tf-place "$work/net.tfg" | on_gpu > "$work/gpu.tfg"
    tf-exec -g "$work/gpu.tfg" --run train --feed "$work/feed.rec" --gpu-memory 1M \
        --trace "$work/trace" > "$work/out"
    [ "$(tf-show --json "$work/trace" | jq -c 'select(.device)')" = \
        '{"device":"CUDA","index":0,"memory":1048576}' ]
    tf-show --costs "$work/trace" > "$work/costs"
    [ "$(head -n 1 "$work/costs")" = 'device CUDA memory=1048576' ]
    LC_ALL=C sort -c "$work/costs"
    tf-place --devices GPU:0 --costs "$work/costs" "$work/net.tfg" > "$work/placed.tfg"
    sed -i 's/memory=.*/memory=64k/' "$work/costs"
    run --separate-stderr tf-place --devices GPU:0 --costs "$work/costs" -o "$work/placed.tfg" \
        "$work/net.tfg"
    [ "$status" -eq 65 ]
    [[ $stderr == *"the graph does not fit: it needs "*"device:CUDA:0, which has 65536" ]]
}
