#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that each have a part of the dense layers, compared with one process that has all batches.
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

graph() { # OPTION...: net.tfg
    tf-graph "$@" "$root/tests/e2e/dense.lua" | tf-opt >net.tfg
}

# parts N: net.tfg for N workers, in parts.tfg and c
parts() {
    local i
    for ((i = 0; i < $1; i++)); do echo "task worker:$i unix:w$i"; done >c
    tf-replicate -c c --mode "allreduce,dense=${scheme:-a}$each" net.tfg | tf-place -c c |
        tf-part >parts.tfg
}

# feeds N ROWS STEPS: fK.rec has each worker's ROWS, and f.rec, in each step, the rows of all by
# rank
feeds() {
    zcat "$root/examples/data/digits.csv.gz" | sed -n "1,$(($1 * $2 * $3))p" >f.csv
    awk -v n="$1" -v rows="$2" '{ k = int((NR - 1) / rows) % n; print >"f" k ".csv" }' f.csv
    tf-data csv f.csv x=1-64 y=65:int32 --batch "$(($1 * $2))" >f.rec
    for ((i = 0; i < $1; i++)); do
        tf-data csv "f$i.csv" x=1-64 y=65:int32 --batch "$2" >"f$i.rec"
    done
}

one() { # OPTION...: one process; its losses are in one.txt
    tf-place net.tfg | tf-exec --run train --fetch loss --feed f.rec "$@" |
        tf-show --json | jq .loss >one.txt
}

# workers N OPTION...: all end well; the mean of their losses is in many.txt. The first saves
# many.ckpt.
workers() {
    local n=$1 i pids=() save=(--save many.ckpt) code
    shift
    rm -f w*.txt
    for ((i = 0; i < n; i++)); do
        TF_CLUSTER=c timeout 100 tf-exec --task "worker:$i" -g parts.tfg --run train \
            --fetch loss --feed "f$i.rec" "${save[@]}" "$@" >"w$i.rec" 2>"w$i.err" 3>&- &
        pids+=($!)
        save=()
    done
    for ((i = 0; i < n; i++)); do
        wait "${pids[i]}" || { code=$?; cat "w$i.err"; return "$code"; }
        tf-show --json "w$i.rec" | jq .loss >"w$i.txt"
    done
    paste w*.txt | awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i; printf "%.15g\n", s / NF }' \
        >many.txt
}

# alike STEPS: compares losses and checkpoints, up to rounding in float64
alike() {
    paste one.txt many.txt | awk -v n="$1" '
        { d = $1 - $2; if (d > 1e-12 || d < -1e-12) { print NR ": " d; bad = 1 } }
        END { exit bad || NR != n }'
    tf-ckpt diff one.ckpt many.ckpt >differences || [ $? -eq 1 ]
    awk '$2 > 1e-12 { print; bad = 1 } END { exit bad }' differences
}

@test "2, 3 and 4 workers train as one process with the joined batch, by each optimizer" {
    while read -r n optimizer; do
        graph -D "optimizer=$optimizer"
        parts "$n"
        feeds "$n" 5 10
        one --save one.ckpt
        workers "$n"
        alike 10
    done <<<"2 sgd
2 momentum
3 adagrad
3 rmsprop
4 adam"
}

@test "with dropout between the layers, weight decay and a bound of the global norm as well" {
    for n in 2 3; do
        graph -D optimizer=adam -D dropout=true -D decay=0.001 -D clip=0.5
        parts "$n"
        feeds "$n" 4 10
        one --save one.ckpt
        workers "$n"
        alike 10
    done
}

@test "in passes: one worker's rows after the other's, and a part of each worker's" {
    for scheme in b c; do
        while read -r n rows optimizer; do
            graph -D "optimizer=$optimizer" -D decay=0.001 -D clip=0.5
            parts "$n"
            feeds "$n" "$rows" 6
            one --save one.ckpt
            workers "$n"
            alike 6
        done <<<"2 5 momentum
3 4 rmsprop
4 3 adam" # of three rows a part of four has none
    done
}

@test "update=pass: layers change after each pass, as they do in NumPy, and the rest after all" {
    local scheme n rows optimizer each=,update=pass
    while read -r scheme n rows optimizer; do
        graph -D "optimizer=$optimizer"
        parts "$n"
        feeds "$n" "$rows" 6
        tf-place net.tfg | tf-exec --run init --save first.ckpt >/dev/null
        tf-ckpt export first.ckpt first.npz
        workers "$n" --restore first.ckpt
        tf-ckpt export many.ckpt many.npz
        echo "$scheme $n $rows $optimizer"
        /usr/bin/python3 "$root/tests/e2e/dense.py" "$scheme" "$n" "$rows" 6 "$optimizer" \
            first.npz many.npz f.csv
    done <<END
b 2 5 momentum
b 3 4 adam
c 2 5 sgd
c 4 3 adam
END
    # which differs from the sum of all passes
    each=
    parts 4
    workers 4 --restore first.ckpt
    tf-ckpt export many.ckpt many.npz
    run /usr/bin/python3 "$root/tests/e2e/dense.py" c 4 3 6 adam first.npz many.npz f.csv
    [ "$status" -eq 1 ]
    [[ $output == *" from what it is to be" ]]
}

@test "update=pass: what would not be what it was is refused in a line" {
    graph -D clip=0.5
    run --separate-stderr tf-replicate --workers 2 --mode allreduce,dense=b,update=pass net.tfg
    [ "$status" -eq 65 ]
    [[ $stderr == *"node 'update/one/W/Apply"*"gradients of what is not in passes change it"* ]]
    { cat "$root/tests/e2e/dense.lua" && echo 'entry.test = accuracy'; } >test.lua
    tf-graph test.lua | tf-opt >net.tfg
    tf-replicate --workers 2 --mode allreduce,dense=b net.tfg >/dev/null
    run --separate-stderr tf-replicate --workers 2 --mode allreduce,dense=b,update=pass net.tfg
    [ "$status" -eq 65 ]
    [[ $stderr == *"entry 'test' goes through dense layers, which with update=pass"* ]]
    for mode in allreduce,update=pass allreduce,dense=a,update=pass; do
        run --separate-stderr tf-replicate --workers 2 --mode $mode net.tfg
        [ "$status" -eq 64 ]
        [[ $stderr == *"update=pass is of the passes of dense=b and dense=c" ]]
    done
}

# rows NAME: the node's rows in the first step, in each of three workers
rows() {
    local i pids=()
    for i in 0 1 2; do
        TF_CLUSTER=c timeout 60 tf-exec --task "worker:$i" -g parts.tfg --run train --fetch "$1" \
            --feed "f$i.rec" --steps 1 >"r$i.rec" 2>"r$i.err" 3>&- &
        pids+=($!)
    done
    for i in 0 1 2; do wait "${pids[i]}" || { cat "r$i.err"; return 1; }; done
    for i in 0 1 2; do tf-show --json "r$i.rec"; done | jq ".[\"$1\"] | length" | paste -sd' '
}

@test "between layers a pass has the rows of one worker, where one pass of all has those of all" {
    graph
    feeds 3 6 1
    parts 3
    [ "$(rows one/MatMul)" = "18 18 18" ]
    for scheme in b c; do
        parts 3
        [ "$(rows pass_0/one/MatMul)" = "6 6 6" ]
        [ "$(rows pass_2/one/MatMul)" = "6 6 6" ]
        [ "$(rows logits)" = "6 6 6" ] # all of the worker's own, by its name
        # and a pass begins when the one before has ended
        tf-show --text parts.tfg | grep -E '^pass_1/one/MatMul = ' |
            finds -F '^pass_0/gradients/one/MatMul_grad/MatMul'
    done
    run tf-replicate -o o.tfg --mode allreduce,dense=b net.tfg
    [ "$status" -eq 64 ]
    [[ $output == *"dense=b has a pass for each worker"* ]]
}

@test "what a worker brings to a pass: all its rows to its own, or a third of them to each" {
    graph
    feeds 3 6 1
    scheme=b parts 3
    [ "$(rows pass_0/rows/Reshape_1/Slice)" = "6 0 0" ]
    [ "$(rows pass_1/rows/Reshape_1/Slice)" = "0 6 0" ]
    [ "$(rows pass_2/rows/Reshape_1/Slice)" = "0 0 6" ]
    scheme=c parts 3
    for k in 0 1 2; do [ "$(rows pass_$k/rows/Reshape_1/Slice)" = "2 2 2" ]; done
}

@test "what layers exchange in a pass is more urgent than later rows, and errors the least" {
    graph
    scheme=b parts 3
    # all exchanges with a priority; those between layers or after the last one have none
    tf-show --text parts.tfg | grep -E '^dense/.*= (AllReduce|Collective)' |
        sed -nE 's#^dense/(pass_[0-9])/(rows|gradients)/.* _priority=([0-9]+), .*#\1 \2 \3#p' |
        sort >urgent
    cat urgent
    diff urgent <(printf '%s\n' 'pass_0 gradients 4' 'pass_0 rows 1' 'pass_1 gradients 4' \
        'pass_1 rows 2' 'pass_2 gradients 4' 'pass_2 rows 3')
}

@test "no matrix of a dense layer crosses, nor its gradient; --explain says so" {
    graph
    parts 3
    run --separate-stderr tf-replicate --mode allreduce,dense=a --workers 3 --explain net.tfg \
        -o o.tfg
    [ "$status" -eq 0 ]
    [ "$(grep -c nothing <<<"$stderr")" -eq 5 ] # W and b of one and two, W of three
    printf '%s\n' "$stderr" | finds -E '^three/W .* 0 .*nothing'
    printf '%s\n' "$stderr" | finds -E '^conv/W .*gradient'
    # every exchange has rows of the batch, or belongs to the convolution or the last bias
    tf-show --text o.tfg | grep -E '= (AllReduce|Collective)[A-Za-z]*\(' |
        grep -v CollectiveSlice | cut -d' ' -f1 >exchanges
    grep -v -E '^dense/(Reshape|two/MatMul|three/MatMul|gradients/)' exchanges | sort >others
    [ "$(xargs <others)" = "allreduce/gradients allreduce/initial" ]
    tf-show --text o.tfg | sed -n 's/^allreduce.gradients = AllReduce(\([^)]*\)).*/\1/p' >last
    [ "$(tr -d , <last | tr ' ' '\n' | grep -v "\^" | sort | xargs)" = \
        "conv/W/gradient conv/b/gradient three/b/gradient" ]
}

@test "batches of several sizes: a mean of the workers' means, as without dense" {
    graph
    feeds 2 6 8
    tf-data csv f1.csv x=1-64 y=65:int32 --batch 4 >f1.rec
    parts 2
    workers 2 --steps 8
    cp many.txt dense.txt
    mv many.ckpt one.ckpt
    tf-replicate --mode allreduce net.tfg | tf-place -c c | tf-part >parts.tfg
    workers 2 --steps 8
    cp dense.txt one.txt
    alike 8
}

@test "checkpoints are of whole variables: to one process, to others, from it, to the same bits" {
    graph -D optimizer=momentum
    feeds 3 4 6
    parts 3
    workers 3
    mv many.ckpt first.ckpt
    tf-show first.ckpt | finds -F 'one/W/momentum  float64[256,11]'
    one --restore first.ckpt --save one.ckpt
    workers 3 --restore first.ckpt
    alike 6
    cp many.ckpt again.ckpt
    workers 3 --restore first.ckpt
    tf-ckpt diff many.ckpt again.ckpt
    parts 2
    feeds 2 6 6
    workers 2 --restore first.ckpt
    alike 6
}

@test "a worker is killed: all go back to the newest checkpoint, and on to the same bits" {
    cp -r "$root/examples/." .
    graph -D optimizer=adam
    line=(timeout -k 5 100 tf-run --workers 2 --mode "allreduce,dense=a" --fetch loss net.tfg)
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

@test "a worker that leaves takes its part with it: the others say so, and end" {
    graph
    feeds 2 4 8
    parts 2
    sed -n 1,8p f1.csv >short.csv
    tf-data csv short.csv x=1-64 y=65:int32 --batch 4 >f1.rec
    run workers 2
    case $status in # of who notices it first
    65) finds '1 of 2 workers have left, with their parts' w0.err ;;
    69) finds 'others go on, and need its part' w0.err ;;
    *) false ;;
    esac
}

@test "what cannot be cut is refused in one line" {
    cat >no.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 8}}
w = variable{name = "w", shape = {8}, init = 0.5}
entry.train = minimize(Mean(Square(x * w), {0, 1}), optim.sgd{rate = 0.1})
LUA
    tf-graph no.lua >no.tfg
    run tf-replicate -o o.tfg --mode allreduce,dense=a no.tfg
    [ "$status" -eq 65 ]
    [[ $output == *"no.tfg: there is no dense layer"* ]]
    cat >cond.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 8}}
training = Placeholder{dtype = bool, shape = {}}
h = nn.dense(x, 6)
h = nn.dropout(h, 0.5, {training = training})
entry.train = minimize(Mean(Square(nn.dense(h, 1)), {0, 1}), optim.sgd{rate = 0.1})
LUA
    tf-graph cond.lua >cond.tfg
    run tf-replicate -o o.tfg --mode allreduce,dense=a cond.tfg
    [ "$status" -eq 65 ]
    [[ $output == *"control flow between dense layers"* ]]
    run tf-replicate -o o.tfg --mode allreduce,dense=d no.tfg
    [ "$status" -eq 64 ]
    [[ $output == *"not 'dense=d'"* ]]
}
