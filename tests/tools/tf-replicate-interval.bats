#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-replicate --mode downpour,push.NAME=N: the interval of each layer, and the layers without one.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools
load ../lib/refused

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

@test "an interval that is nobody's, or cannot be, is refused in a line" {
    cat >i.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 4}, name = "x"}
local h = nn.dense(nn.dense(x, 3, {name = "a/one"}), 3, {name = "two"})
entry.train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 0.1}, {clip = D.clip})
LUA
    tf-graph i.lua >i.tfg
    local none="no variable that is trained has this name, or is in a scope of this name"
    for more in one a/on two/W/x '*z*' a/; do
        refused_with 65 "tf-replicate: i.tfg: push.$more=3: $none" \
            "tf-replicate --mode 'downpour,push.$more=3' i.tfg"
    done
    for more in a 'a/*' '*/W' a/one/W; do
        tf-replicate --mode "downpour,push.$more=3" i.tfg | tf-show --text |
            finds '^a/one/W/gradient/held = '
    done
    # the last match counts; an interval that all layers have is that of the whole
    tf-replicate --mode 'downpour,push.*=3,push.two=6,push.*=2' i.tfg >r.tfg
    tf-replicate --mode downpour,push=2 i.tfg >s.tfg
    cmp <(tf-show --text r.tfg | grep -v ^made) <(tf-show --text s.tfg | grep -v ^made)
    why="'two/W' is pushed every 6 steps, which is no multiple of 4, the smallest interval"
    refused_with 65 "tf-replicate: i.tfg: $why" \
        "tf-replicate --mode downpour,push=4,push.two/W=6 i.tfg"
    why="intervals of pushes are of downpour, whose rounds have one worker's push"
    for mode in sync,push.two=4 ssp,bound=3,push=2; do
        refused_with 64 "tf-replicate: --mode '$mode': $why" "tf-replicate --mode $mode i.tfg"
    done
    why="--mode downpour takes push.NAME=N for 16 names at most"
    refused_with 64 "tf-replicate: $why" \
        "tf-replicate --mode downpour\$(printf ',push.a=%d' \$(seq 17)) i.tfg"
    tf-graph -D clip=1 i.lua >i.tfg
    run -65 --separate-stderr tf-replicate --mode downpour,push.two=4 i.tfg
    [[ $stderr == *" is pushed every "*", needs one that is pushed every 4" ]]
}
