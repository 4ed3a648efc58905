# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # build, modules, emulated, work are of gpu-check
# Pieces of gpu-check: the unit tests that run on any device, compute-sanitizer, benchmarks.

on_card() { # COMMAND...: a unit test on the card
    TF_TEST_DEVICE=CUDA:0 TF_DEVICE_PATH=$modules "$@"
}

# Runs a file of cases per process, several at once: most of the time is the host's.
piece_cases() {
    set -- tests/data/golden/*.txt
    [ -z "$emulated" ] || set -- tests/data/golden/aggregate.txt tests/data/golden/nn_entropy.txt
    for file; do echo "$file"; done >"$work/files"
    export work build modules
    TF_TEST_DEVICE=CUDA:0 TF_DEVICE_PATH=$modules xargs -P 4 -I{} sh -c '
        file=$1
        name=$(basename "$file" .txt)
        "$build/tests/unit/ops/cases" "$file" >"$work/$name.out" 2>&1
        echo $? >"$work/$name.status"' sh '{}' <"$work/files"
    for file; do
        name=$(basename "$file" .txt)
        program "$name" sh -c 'cat "$1.out"; exit "$(cat "$1.status")"' sh "$work/$name"
    done
}

# Runs cases with algorithms chosen by measuring, with the same again, and without the library.
chosen() { # LIBRARY FILE SETTING CASES...: its name, its file, the variable that disables it with 0
    library=$1 file=$2 setting=$3 choices=$work/choices cases=$build/tests/unit/ops/cases
    shift 3
    for name; do
        on_card program "measured $name" env TF_GPU_CHOICES="$choices" "$cases" \
            "tests/data/golden/$name.txt"
    done
    key=$(echo "$library" | tr '[:upper:]' '[:lower:]')
    grep -s " $key=" "$choices" >"$work/chosen"
    if [ ! -s "$work/chosen" ]; then
        skip "algorithms of $library" "there is no $file, or it takes no case"
    else
        refused=$(cut -f2 "$work/chosen" | grep -cx -e -1)
        figure "$library: $(wc -l <"$work/chosen") algorithms measured, $refused refused"
        cp "$choices" "$work/before"
        for name; do
            on_card program "kept $name" env TF_GPU_CHOICES="$choices" "$cases" \
                "tests/data/golden/$name.txt"
        done
        check "choices stay" cmp "$work/before" "$choices"
    fi
    for name; do
        on_card program "own $name" env "$setting=0" "$cases" "tests/data/golden/$name.txt"
    done
}

piece_convolutions() {
    [ -z "$emulated" ] || export TF_TEST_CASE=Conv2D/float32/NHWC-SAME
    chosen cuDNN libcudnn.so.9 TF_CUDNN nn_conv
}

# Cases of matrices, and of unrolled windows.
piece_products() {
    [ -z "$emulated" ] || export TF_TEST_CASE=MatMul/float32
    export TF_CUDNN=0
    chosen cuBLASLt libcublasLt.so.13 TF_CUBLASLT matrix nn_local nn_conv
}

# Ops that also have a kernel of our own: FILE:CASES, run by whichever is faster, by the same again,
# and by cuDNN wherever it supports them.
piece_rivals() {
    choices=$work/choices cases=$build/tests/unit/ops/cases
    set -- nn_pool: nn_norm: nn_dense:Softmax narrow_types:Pool narrow_types:Softmax
    [ -z "$emulated" ] || set -- nn_pool:/float32/N nn_pool:AvgPool/float64/NCHW-SAME-2 \
        nn_norm:LRN/ nn_norm:LRNGrad/float32 nn_norm:/float32/N \
        nn_norm:float64/NCHW-training-y-3 nn_dense:Softmax/float32 \
        nn_dense:Softmax/float64-2 narrow_types:Softmax
    by_choices measured "$@"
    if [ ! -s "$choices" ]; then
        skip "ops of cuDNN" "there is no libcudnn.so.9"
        return
    fi
    figure "cuDNN: the faster one in $(cut -f2 "$choices" | grep -cx 1) of $(wc -l <"$choices")"
    cp "$choices" "$work/before"
    by_choices kept "$@"
    check "choices stay" cmp "$work/before" "$choices"
    for set; do
        TF_CUDNN=1 TF_TEST_CASE=${set#*:} on_card program "cuDNN $set" "$cases" \
            "tests/data/golden/${set%%:*}.txt"
    done
}

by_choices() { # NAME FILE:CASES...
    way=$1
    shift
    for set; do
        TF_GPU_CHOICES=$choices TF_TEST_CASE=${set#*:} on_card program "$way $set" "$cases" \
            "tests/data/golden/${set%%:*}.txt"
    done
}

piece_executor() {
    set -- exec/exec exec/exec_edges exec/nests exec/sharing exec/views
    [ -z "$emulated" ] || set -- exec/views exec/sharing
    for test; do
        on_card program "$test" "$build/tests/unit/$test"
    done
}

# Cases that run only on the device. CUDA's libraries have kernels of their own, which we cannot
# mend, so a few cases of products are enough.
sanitized="array_rows array_slice array_where array_join array aggregate reduce state train sums
    nn_entropy nn_pool nn_norm math_binary math_unary random_ops matrix nn_conv narrow_types"

find_sanitizer() {
    cuda=${CUDA_HOME:-/usr/local/cuda}
    for sanitizer in "$(command -v compute-sanitizer)" "$cuda/bin/compute-sanitizer" \
        "$cuda/compute-sanitizer/compute-sanitizer"; do
        [ ! -x "$sanitizer" ] || return 0
    done
    return 1
}

sanitize() { # NAME TOOL COMMAND...: reports what the tool finds, within two minutes
    name=$1 tool=$2
    shift 2
    if [ "$(date +%s)" -gt "$end" ]; then
        skip "$tool: $name" "the time of this piece was up"
        return
    fi
    status=0
    timeout 120 "$sanitizer" --tool "$tool" --error-exitcode 99 "$@" >"$work/out" 2>&1 || status=$?
    if [ "$status" -eq 124 ]; then
        skip "$tool: $name" "not over after 120 s"
    elif [ "$status" -ne 99 ] && grep -qE \
        '^=+ (ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$work/out"; then
        ok "$tool: $name"
    else
        grep '^=' "$work/out" | head -n 60 | sed 's/^/# /'
        not_ok "$tool: $name (status $status)"
    fi
}

# Checks captured steps, then values of cases, until the time is up; reports what is left out.
piece_sanitizer() { # TOOL
    if [ -n "$emulated" ]; then
        skip "$1" "the device is emulated"
        return
    fi
    if ! find_sanitizer; then
        skip "$1" "no compute-sanitizer in PATH or in $cuda"
        return
    fi
    end=$(($(date +%s) + 180))
    digits --rows 1-640 >"$work/feed"
    graphs digits_cnn <examples/digits_cnn.lua
    sanitize training "$1" tf-exec -g "$work/digits_cnn.gpu" --run train --feed "$work/feed"
    for name in $sanitized; do
        TF_TEST_VALUES=1 on_card sanitize "$name" "$1" \
            "$build/tests/unit/ops/cases" "tests/data/golden/$name.txt"
    done
}

piece_bench() { # MODEL
    if [ -n "$emulated" ]; then
        skip "bench $1" "the device is emulated"
        return
    fi
    { # figures measured before the time is up count, too
        BUILD=$build ROUNDS=${ROUNDS:-2} tests/bench/gpu.sh "$1" 2>&1
        echo $? >"$work/status"
    } | sed -u 's/^/figure: /'
    check "bench $1" test "$(cat "$work/status")" -eq 0
}
