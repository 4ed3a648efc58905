#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers without shards, some with less data: the state that they keep for themselves is handed on.
# shellcheck disable=SC2034,SC2154  # feeds are of among; root is of use_tools
load ../lib/tools
load ../lib/push_codes
load ../lib/workers

bats_require_minimum_version 1.5.0

# shares N...: makes m.tfg and x.csv, of which worker k has so many rows; FEEDk
shares() {
    local i=0 from=1 n
    rows $(($(tr ' ' + <<<"$*")))
    rm -f c
    for n in "$@"; do
        echo "task worker:$i unix:w$i" >>c
        awk -v from=$from -v n="$n" 'NR >= from && NR < from + n' x.csv |
            tf-data csv - x=1-1024 --batch 1 >x$i.rec 2>/dev/null
        printf -v "FEED$i" %s "--feed x$i.rec"
        ((from += n, ++i))
    done
}

# many MODE N: parts.tfg, for so many workers
many() {
    export TF_CLUSTER=c
    tf-replicate --mode "$1" --workers "$2" m.tfg | tf-place -c c | tf-part >parts.tfg
}

# nothing_lost STORE[@STEP] STATE...: the means of all steps, each times its number of workers, and
# the workers' own states at the end add up to the rows of x.csv. The workers' texts have w before
# each step, the store at STEP has w after the last one, if more steps were run then.
nothing_lost() {
    local store=${1%@*} v
    {
        [ "$1" = "$store" ] || tf-ckpt cat "$1" w | tf-show --json
        shift
        for v in w "$@"; do
            tf-ckpt cat "$store" "$v" | tf-show --json
            tf-ckpt cat "$store" "worker_state:$v/values" 2>/dev/null |
                tf-show --json 2>/dev/null || true
        done
    } | /usr/bin/python3 -c '
import json, sys
import numpy as np
steps = [[json.loads(line)["w"] for line in open(path)] for path in sys.argv[1:]]
there = [sum(len(w) > k for w in steps) for k in range(max(map(len, steps)))]
w, kept = [np.array(v, np.float64).ravel() for v in max(steps, key=len)], 0
for line in sys.stdin:
    for name, value in json.loads(line).items():
        value = np.array(value, np.float64).reshape(-1, 1024)
        if name == "w":
            w.append(value[0])
        else:
            kept = kept + value.sum(0)
there += there[-1:] * (len(w) - 1 - len(there))
sent = sum(n * (before - after) for n, before, after in zip(there, w, w[1:]))
want = np.loadtxt("x.csv", delimiter=",").sum(0)
print(there, np.abs(kept).max(), np.abs(sent + kept - want).max())
sys.exit(int(not np.abs(kept).max() or np.abs(sent + kept - want).max() > 1e-2))' w?.txt
}

@test "nothing is lost, whoever leaves when" {
    while read -r counts mode states; do
        # shellcheck disable=SC2086  # both are lists
        shares ${counts//,/ }
        many "allreduce,$mode" 3
        rm -rf ck w?.txt
        among 3 --run train --fetch w --save ck/
        # shellcheck disable=SC2086
        nothing_lost ck $states
    done <<'END'
9,5,9 top=0.02 w/gradient/residual
5,9,9 top=0.02 w/gradient/residual
5,5,9 top=0.02 w/gradient/residual
9,6,5 top=0.02 w/gradient/residual
5,6,9 top=0.02 w/gradient/residual
1,4,9 top=0.02 w/gradient/residual
6,6,6 top=0.02 w/gradient/residual
8,9,8 top=0.02 w/gradient/residual
9,5,9 bits=2,threshold=3 w/gradient/residual
5,5,9 delay=1 w/gradient/kept
5,6,9 delay=1,top=0.02 w/gradient/kept w/gradient/residual
9,5,9 top=0.02,after=7 w/gradient/residual
END
}

@test "a job that goes on when a worker has left: it gets its part, and gives it again" {
    local i
    shares 9 5 9
    many allreduce,top=0.02 3
    among 3 --run train --fetch w --save ck/ --steps 7
    for i in 0 1 2; do
        tf-exec --task "worker:$i" -g parts.tfg --run train --feed x$i.rec --save ck/ --resume \
            3>&- &
        pids+=($!)
    done
    wait_each "${pids[@]}"
    nothing_lost ck@7 w/gradient/residual
}

@test "shards that only add: a worker that leaves gives the others the same" {
    shares 9 5 9
    many allreduce,top=0.02 3
    among 3 --run train --fetch w --save ck/
    cat >part <<'END'
#!/bin/sh
exec cat "x${TF_SHARD%/*}.rec"
END
    chmod +x part
    unset TF_CLUSTER
    workers=3 job served sync,update=worker,top=0.02 m.tfg -- ./part
    tf-ckpt diff --all ck served
}

@test "the bits depend on the step in which a worker leaves, not on when that is" {
    local place mode
    shares 9 5 7
    for mode in bits=1 top=0.02,delay=1; do
        many "allreduce,$mode" 3
        rm -rf ck
        among 3 --run train --fetch loss --save ck/
        for place in worker.leave worker.part driver.step; do
            rm -rf late
            TF_FAILPOINTS=$place:1:delay=300 among 3 --run train --fetch loss --save late/
            tf-ckpt diff --all ck late
        done
    done
}

# killed VICTIM: that worker dies while the others learn which ones leave; all end, and say so
killed() {
    local i feed code workers=()
    for i in 0 1 2; do
        feed="FEED$i"
        # shellcheck disable=SC2086  # options
        TF_FAILPOINTS=$([ "$i" != "$1" ] || echo worker.part:1:kill) timeout -k 5 60 \
            tf-exec --task "worker:$i" -g parts.tfg --run train --save ck/ --save-every 3 \
            ${!feed} 2>"w$i.err" 3>&- &
        workers[i]=$!
    done
    for i in 0 1 2; do
        code=0
        wait "${workers[i]}" || code=$?
        cat "w$i.err"
        [ "$code" = "$([ "$i" = "$1" ] && echo 137 || echo 69)" ]
        [ "$i" = "$1" ] || finds "worker:$1 at" "w$i.err"
    done
}

@test "who leaves is killed, or who stays: all end, and go on from a checkpoint to the same bits" {
    local counts victim
    for counts in 9,9,5 5,9,9; do # the first one saves before it leaves
        # shellcheck disable=SC2086  # a list
        shares ${counts//,/ }
        many allreduce,bits=1 3
        rm -rf whole
        among 3 --run train --fetch loss --save whole/
        for victim in 0 1 2; do
            rm -rf ck
            killed $victim
            among 3 --run train --fetch loss --save ck/ --resume
            tf-ckpt diff --all whole ck
        done
    done
}

@test "what the one that leaves first saves has all workers' values, and goes on to the same bits" {
    local counts mode place
    for counts in 5,9,9 5,5,9 5,6,9; do
        # shellcheck disable=SC2086  # a list
        shares ${counts//,/ }
        for mode in bits=1 top=0.02,delay=1 bits=2,threshold=3; do
            many "allreduce,$mode" 3
            rm -rf ck half late
            among 3 --run train --fetch loss --save ck/
            tf-ckpt show --all ck@5 | finds 'gradient/.*/ranks *int64\[3\]'
            tf-ckpt init half
            tf-ckpt copy ck@5 half
            among 3 --run train --fetch loss --save half/ --resume
            tf-ckpt diff --all ck@9 half@9
            # whenever the others learn of it
            TF_FAILPOINTS=driver.step:1:delay=100 among 3 --run train --fetch loss --save late/
            tf-ckpt diff --all ck@5 late@5
        done
    done
}

@test "what is saved after a worker has left is each worker's own, and goes on to the same bits" {
    local counts step mode
    while read -r counts step mode; do
        # shellcheck disable=SC2086  # a list
        shares ${counts//,/ }
        many "allreduce,$mode" 3
        rm -rf ck half
        among 3 --run train --fetch loss --save ck/ --save-every "$step"
        tf-ckpt init half
        tf-ckpt copy "ck@$step" half
        among 3 --run train --fetch loss --save half/ --resume
        tf-ckpt diff --all ck@9 half@9
    done <<'END'
9,5,9 7 bits=1
9,5,9 7 top=0.02,delay=1
5,9,9 7 top=0.02,delay=1
6,5,9 7 top=0.02
5,5,9 7 top=0.02,delay=1
5,6,9 7 bits=2,threshold=3
9,5,7 8 bits=2,threshold=3
END
}
