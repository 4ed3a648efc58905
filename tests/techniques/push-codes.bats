#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Codes that are pushed to shards, in each policy and whoever dies: e2e/push-codes.bats, and more.
# shellcheck disable=SC2154  # feed is of lib/push_codes
load ../lib/tools
load ../lib/push_codes

@test "what counted and what was lost are all gradients, in each policy, whoever dies" {
    nothing_is_lost <<'END'
sync 2 ps-0 sync,bits=4
async 1 ps-1 async,bits=1
ssp 1 ps-1 ssp,bound=1,bits=2,threshold=4
strict 1 worker-1 ssp,bound=0,top=0.05
downpour 1 worker-1 downpour,push=3,fetch=2,bits=3
END
}

@test "jobs in which workers and shards are killed end with the bits of one without" {
    digits
    export workers=3
    job whole sync,bits=1 --save-every 4 m.tfg -- "${feed[@]}"
    for victim in worker-1 worker-2 ps-0 ps-1; do
        name=k-$victim
        killed "$name" sync,bits=1 $victim "$root/tests/lib/halfway" "$PWD/$name.go" "${feed[@]}"
        same whole "$name"
    done
    # each worker dies again and again before it gives what it keeps
    TF_FAILPOINTS=worker.rest:3:kill job often sync,bits=1 --save-every 4 m.tfg -- "${feed[@]}"
    grep -c 'killed by signal 9' often.err
    same whole often
}
