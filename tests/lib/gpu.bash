# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # root is of lib/tools
# Graphs on GPUs that are emulated.

emulated() { # [cpu]: with the CPU's kernels
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib TF_TEST_DEVICE_KERNELS=${1-}
}

# A placed graph, its nodes (or those of lines that match) on a GPU.
on_gpu() { # [WHICH [INDEX]]
    tf-show --text | sed -E "${1-}s/device:CPU:0/device:GPU:${2:-0}/" | tf-graph --text
}
