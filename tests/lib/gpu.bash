# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # root is of lib/tools, work of the test, stderr of run
# Graphs on emulated GPUs.

emulated() { # [cpu]: with the CPU's kernels
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib TF_TEST_DEVICE_KERNELS=${1-}
}

# Moves the nodes of a placed graph (or those of matching lines) to a GPU.
on_gpu() { # [WHICH [INDEX]]
    tf-show --text | sed -E "${1-}s/device:CPU:0/device:GPU:${2:-0}/" | tf-graph --text
}

says() { # TEXT OPTION...: the one-line message of a run on a GPU that lacks something
    run --separate-stderr tf-exec -g "$work/gpu.tfg" "${@:2}"
    [ "$status" -eq 69 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"$1"* ]]
}

# The functions below read $work/feed.rec, and write to $work.
train() { # GRAPH NAME: checkpoint and losses
    tf-exec -g "$1" --run train --feed "$work/feed.rec" --fetch loss --save "$work/$2.ckpt" |
        tf-show --json > "$work/$2.losses"
    tf-show --json "$work/$2.ckpt" | sort > "$work/$2"
}

same() { # NAME NAME
    [[ $(wc -l < "$work/$1.losses") -gt 3 ]]
    cmp "$work/$1.losses" "$work/$2.losses"
    cmp "$work/$1" "$work/$2"
}

near() { # NAME NAME: their losses
    [[ $(wc -l < "$work/$2.losses") -gt 3 ]]
    paste -d' ' <(jq .loss "$work/$1.losses") <(jq .loss "$work/$2.losses") |
        awk '{off = $1 - $2; if (off * off > 1e-10) {print; exit 1}}'
}
