#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every example survives a trip through the text form, computes the same after optimization, and
# trains.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    work=$BATS_TEST_TMPDIR
    cd "$root/examples" || return 1
    set -o pipefail
}

scripts() { # lion.lua is a module, not a model
    for script in *.lua; do
        [ "$script" = lion.lua ] || echo "$script"
    done
}

@test "text and back is the identical graph, optimized or not" {
    for script in $(scripts); do
        tf-graph "$script" > "$work/plain"
        tf-opt < "$work/plain" | tf-place > "$work/placed"
        for graph in plain placed; do
            tf-show --text "$work/$graph" > "$work/text"
            tf-graph --text "$work/text" > "$work/again"
            tf-show --text "$work/again" | cmp "$work/text" -
            cmp <(tf-show --json "$work/$graph" | sort) <(tf-show --json "$work/again" | sort)
        done
    done
}

losses() { # GRAPH OPTION...: of three steps
    local graph=$1
    shift
    ./feed --rows 1-192 --batch 64 |
        tf-exec -g "$graph" --run train --fetch loss "$@" | tf-show --json
}

@test "optimized and unoptimized digits train with the same bits" {
    for script in digits.lua digits_cnn.lua digits_rnn.lua lion-digits.lua; do
        tf-graph "$script" > "$work/plain"
        tf-opt < "$work/plain" | tf-place > "$work/placed"
        losses "$work/plain" > "$work/a"
        losses "$work/placed" > "$work/b"
        [ "$(wc -l < "$work/a")" -eq 3 ]
        cmp "$work/a" "$work/b"
    done
}

@test "a recurrent net over a loop in the graph learns, whatever the number of threads" {
    tf-graph digits_rnn.lua | tf-opt | tf-place > "$work/rnn"
    ./feed --rows 1-1437 --shuffle --batch 64 --epochs 20 |
        tf-exec -g "$work/rnn" --run train --save "$work/rnn.ckpt" > /dev/null
    ./feed --rows 1438- --batch 360 |
        tf-exec -g "$work/rnn" --run eval --restore "$work/rnn.ckpt" |
        tf-show --json | jq -e '.accuracy > 0.9'
    losses "$work/rnn" --deterministic --threads 1 > "$work/a"
    losses "$work/rnn" --deterministic --threads 2 > "$work/b"
    cmp "$work/a" "$work/b"
}

near_numpy() { # TOLERANCE: weights on stdin, one a line
    paste - "$root/tests/data/ridge/weights.txt" | awk -v tolerance="$1" '
        { d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > worst) worst = d }
        END { print NR " weights, worst " worst; exit !(NR == 10 && worst <= tolerance) }'
}

@test "ridge regression: the closed form is NumPy's to 1e-6, gradient descent to 1e-4" {
    tf-graph ridge.lua | tf-opt | tf-place > "$work/ridge"
    ./feed-diabetes --epochs 4000 | tf-exec -g "$work/ridge" --run train --save "$work/ridge.ckpt"
    ./feed-diabetes |
        tf-exec -g "$work/ridge" --fetch closed,w --restore "$work/ridge.ckpt" |
        tf-show --json > "$work/weights"
    jq '.closed[][]' "$work/weights" | near_numpy 1e-6
    jq '.w[][]' "$work/weights" | near_numpy 1e-4
}
