#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The accuracy that one bit with error feedback costs (Seide et al., 1-Bit Stochastic Gradient
# Descent, Interspeech 2014): over some seeds at most half a point.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    for i in 0 1 2; do echo "task worker:$i unix:w$i"; done >c
    sed 's/optim.adam{.*}/optim.momentum{rate = 0.05, momentum = 0.9}/' \
        "$root/examples/digits.lua" >digits.lua
    digits --rows 1438-1797 --batch 360 --epochs 1 >unseen.rec
}

digits() { # OPTION... of feed
    (cd "$root/examples" && ./feed "$@")
}

accuracy() { # SEED MODE: on the last 360 digits, of 3 workers
    local i pids=()
    rm -rf net.ckpt
    tf-graph --seed "$1" digits.lua | tf-opt >digits.tfg
    tf-replicate --mode "allreduce$2" --workers 3 digits.tfg | tf-place -c c | tf-part >parts.tfg
    for i in 0 1 2; do
        digits --rows 1-1437 --shuffle --seed "$1" --batch 20 --shard $i/3 --epochs 30 |
            TF_CLUSTER=c timeout 100 tf-exec --task worker:$i -g parts.tfg --run train \
                --steps 720 --feed - --save net.ckpt >/dev/null 2>"w$i.err" 3>&- &
        pids+=($!)
    done
    for i in 0 1 2; do
        wait "${pids[i]}" || { cat "w$i.err"; return 1; }
    done
    tf-exec -g <(tf-place digits.tfg) --restore net.ckpt --run eval --fetch accuracy \
        --feed unseen.rec | tf-show --json | jq .accuracy
}

@test "of five seeds the mean is within half a point of whole gradients', with error feedback" {
    local seed
    for seed in 1 2 3 4 5; do
        echo "$(accuracy $seed "") $(accuracy $seed ,bits=1,after=100)"
    done >of
    cat of
    awk '{ whole += $1 / 5; coded += $2 / 5 }
        END { print whole, coded; exit !(NR == 5 && whole > 0.96 && coded > whole - 0.005) }' of
}
