#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that step on their own and average their variables every few steps, compared with NumPy.
# shellcheck disable=SC2154  # root, stderr are of lib/tools and run
load ../lib/tools
load ../lib/two_layers

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    job=$BATS_TEST_TMPDIR/job
    pids=()
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 2 2 >c
    feeds 3 60
}

teardown() {
    touch "$BATS_TEST_TMPDIR/go"
    kill_pids "${pids[@]}"
    kill_job "$BATS_TEST_TMPDIR/job"
}

parts() { # MODE DEFINITION...: p.tfg
    local mode=$1
    shift
    tf-graph "$@" "$root/tests/e2e/two_layers.lua" | tf-opt >m.tfg
    tf-replicate --mode "$mode" -c c m.tfg | tf-place -c c | tf-part >p.tfg
}

# train STEPS,STEPS,STEPS STORE OPTION...: three workers
train() {
    local store=$2 k each pids=()
    IFS=, read -ra each <<<"$1"
    shift 2
    for k in 0 1 2; do
        timeout 100 tf-exec -c c --task "worker:$k" -g p.tfg --run train --steps "${each[k]}" \
            --feed "f$k.rec" --save "$store/" "$@" ${traced:+--trace "$k$traced"} \
            >"w$k.rec" 2>"w$k.err" 3>&- &
        pids+=($!)
    done
    for k in 0 1 2; do
        wait "${pids[k]}" || { cat "w$k.err"; return 1; }
    done
}

# learnt STORE OPTIMIZER EVERY STEPS,... ENDS [OFF]: the store has the values that NumPy computes
learnt() {
    local v
    for v in one/W two/W two/b; do
        tf-ckpt cat "$1" "$v" | tf-show --json
    done >got.json
    /usr/bin/python3 -B "$root/tests/e2e/averages.py" "$2" "$3" "$4" "$5" "${6:-1e-11}" got.json
}

# means <<OPTIMIZER EVERY STEPS,...: jobs of these lines learn what NumPy computes
means() {
    local optimizer every steps
    while read -r optimizer every steps; do
        parts "allreduce,average=$every" -D "opt=$optimizer"
        rm -rf s
        train "$steps" s
        learnt s "$optimizer" "$every" "$steps" -
    done
}

@test "variables and slots are the means that NumPy says, also where the last steps are fewer" {
    means <<'END'
sgd 4 12,12,12
sgd 1 5,5,5
momentum 3 11,11,11
adam 5 13,13,13
END
}

@test "who has fewer steps takes part until the average of its last" {
    means <<'END'
adam 4 10,7,13
sgd 3 2,9,4
momentum 4 8,12,8
END
}

@test "a step between two averages waits for nobody, and a job of one worker is one process" {
    parts allreduce,average=4
    traced=trace.rec train 9,9,9 s --fetch loss
    [ "$(tf-show --json 1trace.rec | jq -c 'select(.op == "AllReduce") | .step' | paste -sd' ')" = \
        "4 8 12" ]
    [ "$(tf-show --json 1trace.rec | jq -s 'map(select(.op == "MatMul")) | length')" = 45 ]

    echo 'task worker:0 unix:w' >c
    parts allreduce,average=4
    tf-exec -c c --task worker:0 -g p.tfg --run train --steps 9 --fetch loss --feed f0.rec >one.rec
    tf-exec -g m.tfg --run train --steps 9 --fetch loss --feed f0.rec >alone.rec
    cmp <(tf-show one.rec) <(tf-show alone.rec)
}

@test "only averages are saved, and the last step; a resumed run has the same bits, and NumPy's" {
    parts allreduce,average=4 -D opt=adam
    train 20,20,20 whole
    train 8,8,8 half
    train 20,20,20 half --resume
    tf-ckpt diff whole half
    train 10,10,10 third --save-every 1 # ends between two averages, and goes on
    tf-ckpt list third | awk 'NR > 1 { print $1 } NR > 1 && $1 % 4 && $1 != 10 { exit 1 }'
    train 17,17,17 third --resume
    learnt third adam 4 17,17,17 10,17
}

@test "the best of what is measured is an average, whether a step or an entry measures it" {
    parts allreduce,average=4
    train 22,22,22 s --fetch loss --save-best loss:min
    tf-ckpt show s@best >shown
    tf-ckpt list s
    best=$(tf-ckpt list s | awk 'NR > 1 && $NF != "-" && (!least || $NF < least) {
        least = $NF; best = $1 } END { print best }')
    ((best % 4 == 0 && best > 0 && best < 22))
}

@test "a checkpoint has the scores of its own step alone" {
    sed 's/^entry.train = .*/&\nentry.eval = {loss}/' "$root/tests/e2e/two_layers.lua" >m.lua
    tf-graph m.lua | tf-opt >m.tfg
    tf-replicate --mode allreduce,average=4 -c c m.tfg | tf-place -c c | tf-part >p.tfg
    train 14,14,14 s --eval eval --eval-feed f0.rec --eval-every 8 --save-every 12
    tf-ckpt list s --json >listed
    jq -es 'map(.step) == [12, 14]' listed
    jq -es 'map(.scalars | has("eval/loss")) == [false, true]' listed

    rm -rf s # all evaluate, and the first alone saves
    train 14,14,14 s --eval eval --eval-feed f0.rec --eval-split
    run -1 grep 'not saved' w0.err w1.err w2.err
}

@test "kill -9 of a worker under tf-run: all go back to an average, and on to the same bits" {
    local feed=(tf-data csv f0.csv x=1-6:float64 y=7-9:float64 --batch 2 --epochs 3)
    parts allreduce,average=3 -D opt=momentum
    run_job() { # STORE FEED...
        local store=$1
        shift
        timeout 100 tf-run --workers 3 --mode allreduce,average=3 --job "$job" --save "$store/" \
            --save-every 3 m.tfg -- "$@" 2>err 3>&-
    }
    run_job whole "${feed[@]}"
    run_job half "$root/tests/lib/halfway" "$PWD/go" "${feed[@]}" &
    local pid=$!
    soon 60 has_reached half 3
    kill -9 "$(cat "$job/worker-1.pid")"
    soon 60 grep -q 'restored from' err
    touch go
    wait $pid || { cat err; return 1; }
    tf-ckpt diff whole half
}

@test "in few bits: all that variables changed by is in them, or in what codes have lost" {
    cat >m.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 1024}, name = "x"}
local w = variable{name = "w", shape = {1024, 1}, init = 0}
local u = variable{name = "u", shape = {1}, init = 0}
loss = Sum(MatMul(x, w), {0, 1}) + Sum(u, 0)
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    for k in 0 1 2; do
        awk -v w="$k" 'BEGIN { for (i = 0; i < 12; i++) for (k = 0; k < 1024; k++)
            printf "%d%s", (i * 7 + k * k + w * 13) % 23 - 11, k < 1023 ? "," : "\n" }' >"f$k.csv"
        tf-data csv "f$k.csv" x=1-1024 --batch 1 >"f$k.rec"
    done
    while read -r code; do
        tf-graph m.lua | tf-opt | tf-replicate --mode "allreduce,average=4,$code" -c c |
            tf-place -c c | tf-part >p.tfg
        rm -rf s
        train 6,6,6 s
        train 12,12,12 s --resume
        tf-ckpt show --all s >shown
        run -1 grep anchor shown
        awk '$1 ~ /^w$|w\/(part\/)?residual(\/values)?$/ { print $1 }' shown | sort -u >names
        while read -r v; do tf-ckpt cat s "$v" | tf-show --json; done <names | /usr/bin/python3 -c '
import json, sys
import numpy as np
got = {n: np.array(v, np.float64) for line in sys.stdin for n, v in json.loads(line).items()}
lost = {part: sum(v.reshape(-1, 1024).sum(0) for n, v in got.items()
                  if ("part" in n) == part and "residual" in n) for part in (False, True)}
rows = sum(np.loadtxt(f"f{k}.csv", delimiter=",").sum(0) for k in range(3))
want = -(rows + lost[False]) / 3 - lost[True]
off = np.abs(got["w"].ravel() - want).max()
print(sorted(got), "lost up to", np.abs(lost[False]).max(), "off", off)
sys.exit(int(not np.abs(lost[False]).max() or off > 1e-4))'
    done <<'END'
top=0.1
bits=1
bits=4
bits=2,threshold=3
bits=1,after=2
END
}

@test "sums by two levels and by bfloat16 nets: the same means" {
    printf 'task worker:%d unix:w%d host=h%d\n' 0 0 0 1 1 0 2 2 1 >c
    parts allreduce,average=4,schedule=two-level -D opt=momentum -D units=2000
    train 10,10,10 s
    learnt s momentum 4 10,10,10 - 1e-11
    tf-show --text p.tfg | grep 'averages = AllReduce.*schedule="two-level"'

    type=float32 feeds 3 60
    tf-graph -D type=float32 "$root/tests/e2e/two_layers.lua" | tf-opt --half bf16 >m.tfg
    tf-replicate --mode allreduce,average=4 -c c m.tfg | tf-place -c c | tf-part >p.tfg
    rm -rf s
    train 10,10,10 s
    learnt s sgd 4 10,10,10 - 0.01
}

@test "who ends between two averages evaluates and saves at the second as the others do" {
    sed 's/^entry.train = .*/&\nentry.eval = {loss}/' "$root/tests/e2e/two_layers.lua" >m.lua
    tf-graph -D type=float32 -D units=300 m.lua | tf-opt >m.tfg
    type=float32 feeds 3 60
    tf-replicate --mode allreduce,average=4,bits=1 -c c m.tfg | tf-place -c c | tf-part >p.tfg
    for steps in 5,12,12 9,11,10; do
        rm -rf s
        train "$steps" s --eval eval --eval-feed f0.rec --eval-split --eval-every 4 --save-every 4
    done
}

@test "who is asked to end in a wait for feeds between two averages keeps nobody waiting" {
    sed 's/^entry.train = .*/&\nentry.eval = {loss}/' "$root/tests/e2e/two_layers.lua" >m.lua
    tf-graph -D type=float32 -D units=300 m.lua | tf-opt >m.tfg
    type=float32 feeds 3 30 # 15 steps, of which worker 0 gets 7 before it is asked
    tf-replicate --mode allreduce,average=4,bits=1 -c c m.tfg | tf-place -c c | tf-part >p.tfg
    for every in 8 100; do # an evaluation is due at the average of the last step, or is not
        rm -rf s go && pids=()
        for k in 0 1 2; do
            options=(--run train --fetch loss --save s/ --save-every 4 --eval eval
                --eval-feed f0.rec --eval-split --eval-every "$every")
            if ((k)); then
                timeout 60 tf-exec -c c --task "worker:$k" -g p.tfg "${options[@]}" --steps 7 \
                    --feed "f$k.rec" >"w$k.rec" 2>"w$k.err" 3>&- &
            else
                tf-exec -c c --task worker:0 -g p.tfg "${options[@]}" \
                    --feed - < <("$root/tests/lib/halfway" "$PWD/go" cat f0.rec 3>&-) \
                    >w0.rec 2>w0.err 3>&- &
            fi
            pids+=($!)
        done
        soon 30 has_reached s 4
        kill -TERM "${pids[0]}"
        for k in 1 2; do wait "${pids[k]}" || { cat w?.err; return 1; }; done
        code=0
        wait "${pids[0]}" || code=$?
        touch go
        [ "$code" = 143 ]
        tf-ckpt list s | awk 'END { exit $1 != 7 }'
    done
}

@test "entries of these names are a script's own, where workers take no mean" {
    sed 's/^entry.train = .*/&\nentry.anchor = {h}\nentry.average = {loss}/' \
        "$root/tests/e2e/two_layers.lua" >m.lua
    tf-graph m.lua | tf-opt >m.tfg
    tf-replicate --mode allreduce -c c m.tfg | tf-place -c c | tf-part >p.tfg
    train 4,4,4 s
    run -65 --separate-stderr tf-replicate --mode allreduce,average=4 -c c m.tfg
    [[ $stderr == *"there is an entry 'average', which a replicated graph has for itself" ]]
}

@test "what averages cannot be together with is refused, with a line" {
    tf-graph "$root/tests/e2e/two_layers.lua" | tf-opt >m.tfg
    while IFS='|' read -r mode why; do
        run -64 --separate-stderr tf-replicate --mode "$mode" -c c m.tfg
        [[ $stderr == *"$why"* ]] || { echo "$stderr"; false; }
    done <<'END'
allreduce,average=0|takes factors=auto
allreduce,average=4,delay=1|average=4 exchanges variables, where delay=1 is about gradients
allreduce,average=4,factors=all|where factors is about gradients
allreduce,average=4,dense=a|where dense is about gradients
allreduce,average=4,pieces=1M|where pieces is about gradients
sync,average=4|is none of
sync,update=worker,average=4|not 'average=4'
END
    tf-graph -D type=float32 "$root/tests/e2e/two_layers.lua" | tf-opt --half fp16 >half.tfg
    run -65 --separate-stderr tf-replicate --mode allreduce,average=4 -c c half.tfg
    [[ $stderr == *"goes by all gradients"* ]]
}
