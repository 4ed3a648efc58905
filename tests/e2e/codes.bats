#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that send quantized gradients, and the error that each of them keeps.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    job=$BATS_TEST_TMPDIR/job
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

# parts N MODE: examples/digits.lua for N workers, in partsN.tfg and cN
parts() {
    local i
    for ((i = 0; i < $1; i++)); do echo "task worker:$i unix:w$i"; done >"c$1"
    tf-graph "$root/examples/digits.lua" | tf-opt |
        tf-replicate --mode "allreduce$2" --workers "$1" | tf-place -c "c$1" |
        tf-part >"parts$1.tfg"
}

feeds() { # N STEPS[,STEPS]...: fK.rec, each worker's own; as many of each, or of those as said
    local i each
    IFS=, read -ra each <<<"$2"
    for ((i = 0; i < $1; i++)); do
        (cd "$root/examples" && ./feed --rows 1-1408 --shuffle --seed "$i" --batch 16 \
            --shard "$i/$1" --epochs 50 --steps "${each[i]:-${each[0]}}") >"f$i.rec" 2>/dev/null
    done
}

# train N STEPS OPTION...: all end well; their fetches are in wK.txt, their stderr in wK.err
train() {
    local n=$1 steps=$2 i pids=()
    shift 2
    for ((i = 0; i < n; i++)); do
        TF_CLUSTER=c$n timeout 100 tf-exec --task "worker:$i" -g "parts$n.tfg" --run train \
            --fetch "${fetch:-loss}" --steps "$steps" --feed "f$i.rec" "$@" \
            >"w$i.rec" 2>"w$i.err" 3>&- &
        pids+=($!)
    done
    for ((i = 0; i < n; i++)); do
        wait "${pids[i]}" || { cat "w$i.err"; return 1; }
        tf-show --json "w$i.rec" >"w$i.txt"
    done
}

@test "the mean of the codes is what a formula says, on all workers, and nothing is lost" {
    local w=hidden/W o=output/W
    fetch=$w/gradient,$w/gradient/mean,$o/gradient,$o/gradient/mean
    while read -r n mode kind bits of_hidden hidden of_output output; do
        feeds "$n" 20
        parts "$n" ",$mode"
        rm -f w?.txt
        train "$n" 20
        code=("$root/tests/e2e/codes.py" "$kind" "$bits")
        /usr/bin/python3 "${code[@]}" "$of_hidden" "$hidden" $w w?.txt
        /usr/bin/python3 "${code[@]}" "$of_output" "$output" $o w?.txt
    done <<'END'
2 bits=1 one_bit 1 0 1024 0 1280
3 bits=1 one_bit 1 0 1024 0 1280
5 bits=1 one_bit 1 0 1024 0 1280
3 bits=3 uniform 3 0 1024 0 1280
3 bits=2,threshold=0.003 threshold 2 0.003 1024 0.003 1280
2 bits=1,threshold=0 threshold 1 0 1024 0 1280
3 top=0.01 top 1 82 8192 13 1280
END
}

@test "who has less data gives the others what its codes have lost, by the same formulas" {
    local w=hidden/W o=output/W
    fetch=$w/gradient,$w/gradient/mean,$o/gradient,$o/gradient/mean
    while read -r steps mode kind bits of_hidden hidden of_output output; do
        feeds 3 "$steps"
        parts 3 ",$mode"
        train 3 20
        [ "$(cat w?.txt | wc -l)" = $((${steps//,/+})) ]
        code=("$root/tests/e2e/codes.py" "$kind" "$bits")
        /usr/bin/python3 "${code[@]}" "$of_hidden" "$hidden" $w w?.txt
        /usr/bin/python3 "${code[@]}" "$of_output" "$output" $o w?.txt
    done <<'END'
20,9,20 bits=1 one_bit 1 0 1024 0 1280
9,11,20 bits=3 uniform 3 0 1024 0 1280
9,9,20 bits=1 one_bit 1 0 1024 0 1280
20,20,9 top=0.01 top 1 82 8192 13 1280
END
}

residuals() { # STORE: what all workers have lost, as NumPy's lines of numbers: the sum by element
    local v
    for v in {hidden,output}/W/gradient/{,part/}residual; do
        tf-ckpt cat "$1" "$v" | tf-show --json
        tf-ckpt cat "$1" "worker_state:$v/values" 2>/dev/null | tf-show --json || true
    done | /usr/bin/python3 -c '
import json, sys
import numpy as np
sums = {}
for line in sys.stdin:
    for name, value in json.loads(line).items():
        variable = name.split(":")[-1].removesuffix("/values")
        stack = np.array(value, np.float64)
        stack = stack.reshape(-1, *stack.shape[-2:])
        sums[variable] = sums.get(variable, 0) + stack.sum(0)
for name in sorted(sums):
    print(name, *("%.5f" % (x + 0.0) for x in sums[name].ravel()), sep="\n")'
}

@test "a run that is resumed has the same bits, and every worker its own residual" {
    feeds 3 40
    for mode in bits=1 top=0.05; do
        parts 3 ",$mode"
        rm -rf whole half
        train 3 40 --save whole/
        train 3 17 --save half/ --save-every 5
        train 3 40 --save half/ --resume
        tf-ckpt diff --all whole half
        tf-ckpt show --all half |
            grep '^worker_state:hidden/W/gradient/residual/values  *float32\[2,64,128'
        run -1 cmp -s <(tf-ckpt cat half hidden/W/gradient/residual | tf-show --json | jq '.[]') \
            <(tf-ckpt cat half worker_state:hidden/W/gradient/residual/values | tf-show --json |
                jq '.[][0]')
    done
    # also in a file
    train 3 17 --save half.ckpt
    train 3 0 --restore half.ckpt --save again.ckpt
    tf-ckpt diff --all half.ckpt again.ckpt
    run -1 tf-ckpt diff --all half.ckpt whole
}

@test "after=N: the first N updates are those of whole gradients, whatever was resumed" {
    feeds 3 30
    parts 3 ""
    train 3 30
    mkdir dense
    mv w?.txt dense/
    parts 3 ",bits=1,after=12"
    train 3 30 --save whole/
    for i in 0 1 2; do
        cmp <(head -n 13 dense/w$i.txt) <(head -n 13 w$i.txt) # the 13th is before its update
        run -1 cmp -s <(sed -n 14p dense/w$i.txt) <(sed -n 14p w$i.txt)
    done
    for steps in 5 12 20 30; do train 3 $steps --save half/ --resume; done
    tf-ckpt diff --all whole half
}

# moves SHIFT: in each step hidden/W moves by -0.05 times the mean of the workers' gradients of the
# step SHIFT before
moves() {
    /usr/bin/python3 - "$1" w?.txt <<'END'
import json, sys
import numpy as np
workers = [[json.loads(line) for line in open(path)] for path in sys.argv[2:]]
w = np.array([step["hidden/W"] for step in workers[0]])
g = np.mean([[step["hidden/W/gradient"] for step in worker] for worker in workers], 0)
k = int(sys.argv[1])
move, mean = w[1 + k:] - w[k:-1], g[:len(g) - 1 - k]
sys.exit(not np.allclose(move, -0.05 * mean, rtol=0, atol=1e-7))
END
}

@test "delay=1: updates are by the gradients of the step before, which cross while it computes" {
    feeds 3 30
    tf-graph -D optimizer=sgd "$root/tests/e2e/perceptron.lua" | tf-opt >net.tfg
    for i in 0 1 2; do echo "task worker:$i unix:w$i"; done >c3
    for mode in "" ,delay=1; do
        tf-replicate --mode "allreduce$mode" --workers 3 net.tfg | tf-place -c c3 |
            tf-part >parts3.tfg
        fetch=hidden/W,hidden/W/gradient train 3 10
        shift=$([ -z "$mode" ] && echo 0 || echo 1)
        moves "$shift"
        run -1 moves $((1 - shift))
    done
    train 3 8 --trace trace
    tf-show --json trace | jq -se 'map(select(.step == 8)) |
        (map(select(.op == "AllReduce").start) | min) < (map(select(.op == "MatMul").start) | max)'
    # waiting gradients are in checkpoints
    for mode in ,delay=1 ,bits=1,after=9,delay=1; do
        parts 3 "$mode"
        rm -rf whole half
        train 3 30 --save whole/
        for steps in 7 19 30; do train 3 $steps --save half/ --resume; done
        tf-ckpt diff --all whole half
    done
}

@test "with other numbers of workers the sum of what was lost stays; from and to whole gradients" {
    feeds 3 30
    for n in 1 2 3; do parts $n ,bits=1; done
    train 3 30 --save from/
    residuals from >want
    [ "$(sort -u want | wc -l)" -gt 1000 ]
    for n in 3 2 1; do
        train $n 0 --restore from@30 --save to$n/
        residuals to$n >got
        paste want got | awk '{ d = $1 - $2; if (d > 2e-5 || d < -2e-5) bad = 1 } END { exit bad }'
    done
    # a checkpoint from whole gradients has no residual, so it begins at zero
    parts 2 ""
    train 2 10 --save dense/
    parts 2 ,bits=1
    train 2 20 --save dense/ --resume
    parts 2 ""
    train 2 30 --save dense/ --resume
    [ "$(tf-ckpt list --json dense | jq -s 'map(.step) | max')" = 30 ]
}

@test "who has less data saves what all have, and leaves; the others go on, and save after it" {
    feeds 3 30
    parts 3 ,bits=1
    (cd "$root/examples" && ./feed --rows 1-1408 --batch 16 --shard 0/3 --steps 12) >f0.rec
    train 3 30 --save ck/ --save-every 9
    [ "$(wc -l <w0.txt) $(wc -l <w1.txt)" = "12 30" ]
    tf-ckpt list --json ck | jq .step >steps
    grep -qx 12 steps
    grep -qx 30 steps
    tf-ckpt show --all ck@30 | grep 'residual/ranks *int64\[2\]'
    tf-ckpt show --all ck@12 | grep 'residual/ranks *int64\[3\]'
}

@test "a worker is killed: all go back to the newest checkpoint, and on to the same bits" {
    cp -r "$root/examples/." .
    tf-graph digits.lua | tf-opt >digits.tfg
    line=(timeout -k 5 100 tf-run --workers 2 --mode "allreduce,bits=1" --fetch loss digits.tfg)
    feed=(--rows 1-1408 --shuffle --batch 32 --epochs 20)
    "${line[@]}" --save whole/ -- ./feed "${feed[@]}" 3>&-
    "${line[@]}" --save ck/ --save-every 20 --job "$job" \
        -- "$root/tests/lib/halfway" go ./feed "${feed[@]}" 2>err 3>&- &
    has_saved() { tf-ckpt list --json ck 2>/dev/null | finds step; }
    soon 30 has_saved
    kill -9 "$(cat "$job/worker-1.pid")"
    has_restarted() { grep '(restart 1 of 5)' err; }
    soon 30 has_restarted
    touch go
    wait $!
    tf-ckpt diff --all whole ck
}

accuracy() { # MODE [WITHOUT]: on the last 360 digits, of 3 workers; WITHOUT: nothing is kept
    tf-opt digits.tfg | tf-replicate --mode "allreduce$1" --workers 3 | tf-show --text >g.txt
    [ -z "$2" ] || sed -i '/^entry train/s#, ^[a-zA-Z/]*lost##g' g.txt
    tf-graph --text g.txt | tf-place -c c3 | tf-part >parts3.tfg
    train 3 720 --save net.ckpt
    (cd "$root/examples" && ./feed --rows 1438-1797 --batch 360 --epochs 1) |
        tf-exec -g <(tf-place digits.tfg) --restore net.ckpt --run eval --fetch accuracy |
        tf-show --json | jq .accuracy
}

@test "what codes lose has to be kept: with it digits are told as well as by whole gradients" {
    for i in 0 1 2; do
        echo "task worker:$i unix:w$i" >>c3
        (cd "$root/examples" && ./feed --rows 1-1437 --shuffle --batch 20 --shard $i/3 \
            --epochs 30) >f$i.rec
    done
    sed 's/optim.adam{.*}/optim.momentum{rate = 0.05, momentum = 0.9}/' \
        "$root/examples/digits.lua" | tf-graph - >digits.tfg
    {
        accuracy ""
        accuracy ,bits=1,after=100
        accuracy ,bits=1 without
        accuracy ,top=0.01
        accuracy ,top=0.01 without
    } | tr '\n' ' ' >of
    cat of
    awk '{ exit !($1 > 0.96 && $2 > $1 - 0.015 && $3 < $1 - 0.1 && $4 > $1 - 0.015 && $5 < $4) }' of
}
