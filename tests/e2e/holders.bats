#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The process that holds a job's variables saves them, whatever the mode and the cluster: the graphs
# tell which one that is.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    cat >m.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1}}
w = variable{name = "w", shape = {}, init = 0}
loss = nn.mse(w * OnesLike(x), x)
entry.train = minimize(loss, optim.sgd{rate = 0.5})
END
    tf-graph m.lua >m.tfg
    printf '%s\n' 1 0 1 0 1 100 1 0 >x.csv # two steps of each of two workers
    printf 'task ps:0 unix:a\ntask worker:0 unix:b\ntask worker:1 unix:c\n' >c
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

feed=(tf-data -q csv x.csv x=1 --batch 2)

saved() { # STORE: step, number of tensors and w of the newest
    tf-ckpt list --json "$1" | jq -rs '.[-1] | "\(.step) \(.tensors)"' | tr '\n' ' '
    tf-ckpt cat "$1" w | tf-show --json | jq -r .w
}

@test "each mode, with shards and without, keeps its variables and goes on from them" {
    while read -r tensors mode words; do
        rm -rf st
        read -ra options <<<"$words"
        line=(timeout -k 5 60 tf-run "${options[@]}" --mode "$mode" --save st/ -q m.tfg --)
        "${line[@]}" "${feed[@]}" 3>&- >/dev/null
        got=$(saved st)
        echo "$mode $words: $got"
        [[ $got =~ ^2\ $tensors\  && $got != *" 0" ]]
        line=("${line[@]/#-q/--resume}")
        "${line[@]}" "${feed[@]}" --epochs 2 3>&- >/dev/null
        [[ $(saved st) =~ ^4\ $tensors\  ]]
    done <<'END'
1 allreduce --ps 1 --workers 2
1 allreduce -c c
1 allreduce,bits=1 --ps 2 --workers 2
2 allreduce,delay=1 --ps 1 --workers 2
1 allreduce --workers 2
1 sync,update=worker --ps 2 --workers 2
1 sync,update=worker -c c
1 sync --ps 2 --workers 2
1 sync,bits=1 -c c
END
}

@test "TF_CONFIG names a ps: the workers of all-reduce save all the same" {
    export TF_CONFIG='{"cluster":{"ps":["127.0.0.1:0"],"worker":["127.0.0.1:0","127.0.0.1:0"]}}'
    timeout -k 5 60 tf-run --mode allreduce --save st/ -q m.tfg -- "${feed[@]}" 3>&- >/dev/null
    [[ $(saved st) =~ ^2\ 1\  ]]
}

counts() { # OPTION...: a job in the background; each step adds 1 to a and to each element of b
    cat >count.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1}}
a = variable{name = "a", shape = {}, init = 0}
b = variable{name = "b", shape = {300, 2}, init = 0}
entry.train = minimize(Mean(x, 0) * 0 - a - Sum(b, {0, 1}), optim.sgd{rate = 1})
END
    tf-graph count.lua >count.tfg
    timeout -k 5 90 tf-run "$@" --job job -q count.tfg -- "${feed[@]}" --epochs 1000000 2>err \
        3>&- >/dev/null &
    soon 30 tf-ps get a --job job
}

@test "workers that have the variables answer questions about them, each of one step" {
    while read -r words; do
        read -ra words <<<"$words"
        echo "${words[@]}"
        rm -rf bk other
        tf-ckpt init bk
        counts "${words[@]}"
        [ "$(tf-ps list --job job | awk '$1 == "worker:0" { print $3, $4 }')" = "a float32[]
b float32[300,2]" ]
        for i in 1 2 3; do
            tf-ps get b --job job | tf-show --json >b.json
            [ "$(jq '.b | flatten | unique | length' b.json)" = 1 ]
            tf-ckpt save bk --job job
            tf-ps save other --job job
        done
        tf-run stop --job job
        wait
        for store in bk other; do
            [ "$(tf-ckpt list --json $store | jq -s length)" -ge 2 ]
            while read -r step; do
                [ "$(tf-ckpt cat "$store@$step" a | tf-show --json | jq .a)" = "$step" ]
                [ "$(tf-ckpt cat "$store@$step" b | tf-show --json |
                    jq -c '.b | flatten | unique')" = "[$step]" ]
            done < <(tf-ckpt list --json $store | jq .step)
            tf-ckpt verify $store --data
        done
    done <<'END'
--workers 2 --mode allreduce
--workers 1 --mode allreduce
--workers 2 --mode allreduce,average=10
--workers 2 --mode sync,update=worker --ps 1
END
}

@test "a variable of which each worker has a part is read whole, and goes on from what is saved" {
    cat >wide.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1, 12}}
h = nn.dense(x, 32, {name = "h"})
y = nn.dense(h, 16, {name = "y"})
entry.train = minimize(Sum(y, {0, 1}), optim.sgd{rate = 0})
END
    tf-graph wide.lua >wide.tfg
    printf "%s\n" 1,2,3,4,5,6,7,8,9,10,11,12 12,11,10,9,8,7,6,5,4,3,2,1 >x.csv
    wide() {
        timeout -k 5 90 tf-run --workers 2 --mode allreduce,dense=a -q "$@" wide.tfg -- \
            tf-data -q csv x.csv x=1-12 --batch 1 --epochs 1000000 3>&- >/dev/null
    }
    wide --job job --save st/ &
    soon 30 tf-ps get h/W --job job
    grep -q _part_shape <(tf-show --text job/parts.tfg)
    tf-ckpt init bk
    tf-ckpt save bk --job job
    for name in h/W y/b; do
        tf-ps get $name --job job -o "${name/\//-}.npy"
        tf-ckpt cat bk $name -o saved.npy
        cmp "${name/\//-}.npy" saved.npy
    done
    tf-run stop --job job
    wait
    for name in h/W y/b; do
        tf-ckpt cat st $name -o saved.npy
        cmp "${name/\//-}.npy" saved.npy
    done
    step=$(tf-ckpt list --json bk | jq .step)
    wide --steps $((step + 5)) --resume --save bk/
    [ "$(tf-ckpt list --json bk | jq -s '.[-1].step')" -eq $((step + 5)) ]
}

@test "a worker that waits for data answers; what would make workers differ is refused" {
    mkfifo slow
    tf-data -q csv x.csv x=1 --batch 2 >two.rec
    timeout -k 5 90 tf-run --workers 1 --mode allreduce --job job --save st/ -q m.tfg -- \
        cat slow 2>err 3>&- >/dev/null &
    exec 9>slow
    head -c "$(($(wc -c <two.rec) - 60))" two.rec >&9 # the last of four steps has no data yet
    soon 30 eval 'tf-ps save other --job job
        [ "$(tf-ckpt list --json other | tail -1 | jq .step)" = 3 ]'
    run -66 --separate-stderr tf-ps get nobody --job job
    [ "$stderr" = "tf-ps: no worker has a variable 'nobody'" ]
    run -78 --separate-stderr tf-ps reset --job job
    [[ $stderr == "tf-ps: worker:0: a worker lets others read and save its variables, "* ]]
    run -78 --separate-stderr tf-ps save st --job job
    [[ $stderr == "tf-ps: worker:0: it saves to st/ by itself"* ]]
    run -78 --separate-stderr tf-ps stop --job job
    tail -c 60 two.rec >&9
    exec 9>&-
    wait
    [ "$(tf-ckpt list --json st | tail -1 | jq .step)" -eq 4 ]
}

@test "a checkpoint asked of a worker lacks what the worker sets at each start, as its own does" {
    cat >coded.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1}}
w = variable{name = "w", shape = {30000}, init = 0}
entry.train = minimize(nn.mse(w * Mean(x, 0), OnesLike(w)), optim.sgd{rate = 0.5})
END
    tf-graph coded.lua >coded.tfg
    timeout -k 5 60 tf-run --workers 2 --mode allreduce,average=10,bits=1 --job job --save st/ -q \
        coded.tfg -- "${feed[@]}" --epochs 1000000 3>&- >/dev/null &
    soon 30 tf-ps get w/anchor --job job
    tf-ps save other --job job
    tf-run stop --job job
    wait
    names() { tf-ckpt show --json "$1" | jq -r '.. | .name? // empty' | sort; }
    [[ $(names st) == *w* && $(names st) != *anchor* ]]
    [ "$(names other)" = "$(names st)" ]
}

@test "a worker that has left is not asked: those that go on are" {
    cat >feed.sh <<'END'
case $TF_SHARD in 0/*) n=3 ;; *) n=1000000 ;; esac
unset TF_SHARD
exec tf-data -q csv x.csv x=1 --batch 2 --epochs $n
END
    timeout -k 5 60 tf-run --workers 2 --mode allreduce --job job -q m.tfg -- sh feed.sh 3>&- \
        >/dev/null &
    soon 30 eval '[[ $(tf-run status --job job) == *worker:0*done* ]]'
    [ "$(tf-ps list --job job | awk '$3 == "w" { print $1 }')" = worker:1 ]
    tf-ps save other --job job
    tf-run stop --job job
    wait
}

@test "a worker runs where it cannot listen, if no step needs it" {
    echo 'task worker:0 127.0.0.1:1' >alone
    tf-place -q -c alone m.tfg | tf-part -q -c alone >parts.tfg
    "${feed[@]}" | tf-exec -c alone --task worker:0 -g parts.tfg --run train --feed - \
        --save m.ckpt 2>err
    [[ $(cat err) == *"nobody can ask for its variables: "*"--key-file FILE is needed"* ]]
    [ -s m.ckpt ]
}

@test "nothing to save is refused before anything is run" {
    echo 'y = Identity(Placeholder{dtype = float32, shape = {-1}, name = "x"}, {name = "y"})
entry.train = group{y}' >none.lua
    tf-graph none.lua >none.tfg
    run -64 --separate-stderr tf-exec -g none.tfg --fetch y --feed 'x=[1,2]' --save st/
    echo "$stderr"
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-exec: --save st/: the graph has no variables" ]
    run -64 --separate-stderr tf-exec -g none.tfg --fetch y --feed 'x=[1,2]' --save x.ckpt
    [ ! -e st ]
    [ ! -e x.ckpt ]
}

@test "a checkpoint that lacks a variable of the graph is not resumed, by shards as by workers" {
    quick() {
        timeout -k 5 60 tf-run --workers 1 --steps 3 --save st/ -q "$@" 3>&- >/dev/null
    }
    tf-graph -e 'w = variable{name = "w", shape = {}, init = 1}
entry.train = minimize(w * w, optim.sgd{rate = 0.1})' >w.tfg
    tf-graph -e 'w = variable{name = "w", shape = {}, init = 1}
entry.train = minimize(w * w, optim.momentum{rate = 0.1})' >more.tfg
    for mode in sync "async --ps 2" sync,bits=1 allreduce; do
        rm -rf st
        # shellcheck disable=SC2086 # words
        quick --mode $mode w.tfg
        # shellcheck disable=SC2086
        run -65 --separate-stderr quick --mode $mode --resume more.tfg
        [[ $stderr == *"st@3: variable 'w/momentum' is not in it"* ]]
        [[ $(saved st) =~ ^3\ 1\ 0\.51 ]]
    done
}

@test "what has no value is named, and nothing is saved without it" {
    cat >two.txt <<'END'
v = Variable() {dtype=float32, shape=[]}
u = Variable() {dtype=float32, shape=[]}
one = Const() {dtype=float32, value=1.0}
set = Assign(v, one)
entry train = ^set
END
    tf-graph --text two.txt >two.tfg
    run -65 --separate-stderr tf-exec -g two.tfg --run train --save st/
    [[ $stderr == *"'u'"*"has no value, and --run train gives it none"* ]]
    run -65 --separate-stderr tf-exec -g two.tfg --run train --save x.ckpt
    [[ $stderr == *"nothing saved: "*"'u'"*"has no value" ]]
    [ ! -e x.ckpt ]
}

by_hand() {
    export TF_JOB=job
}

@test "shards that are started by hand: init is refused where it would set what was trained" {
    cat >model.lua <<'END'
x = Placeholder{dtype = float32, name = "x", shape = {-1}}
local sum = 0
for i = 1, D.n do sum = sum + variable{name = "v" .. i, shape = {}, init = 0.5} end
entry.train = minimize(Square(sum - Mean(x, 0)), optim.sgd{rate = 0.01})
END
    printf 'task ps:0 unix:p0\ntask ps:1 unix:p1\ntask worker:0 unix:w0\n' >c
    for n in 3 4; do
        tf-graph -D n=$n model.lua | tf-opt | tf-replicate --mode async --workers 1 |
            tf-place -c c | tf-part >parts$n
    done
    seq 50 >x.csv
    tf-data csv x.csv x=1 >x.rec
    by_hand
    tf-ps init -c c
    for i in 0 1; do tf-ps serve --task ps:$i --save ck 3>&- & done
    tf-exec -q -g parts3 --task worker:0 --run train --feed x.rec
    [ "$(tf-ps list | awk '{ print $3, $5 }' | sort -u | tail -3)" = "v1 51
v2 51
v3 51" ]
    tf-ps save ck
    tf-ps get v1 >v1.rec
    run --separate-stderr tf-exec -q -g parts4 --task worker:0 --run train --feed x.rec
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-exec: worker:0: 'v4' has no value, but 'v"?"' was trained (51 updates), and \
init would set both: "* ]]
    tf-ps get v1 | cmp - v1.rec
    tf-ps stop
    wait
    for i in 0 1; do tf-ps serve --task ps:$i --save ck --resume 3>&- & done
    run --separate-stderr tf-exec -q -g parts4 --task worker:0 --run train --feed x.rec
    [ "$status" -eq 65 ]
    tf-ps get v1 | cmp - v1.rec
    tf-ps reset
    tf-exec -q -g parts4 --task worker:0 --run train --feed x.rec
    [ "$(tf-ps get v1 | tf-show --json | jq .v1)" = 0.5 ]
    [ "$(tf-ps list | grep -c '^ps:')" -eq 4 ]
    tf-ps stop
    wait
}

@test "init sets the variables of a container, whatever another graph has trained in others" {
    cat >model.lua <<'END'
container(D.c, function() w = variable{name = "w", shape = {}, init = 0.5} end)
entry.train = minimize(Square(w - 1), optim.sgd{rate = 0.01})
END
    printf 'task ps:0 unix:p0\ntask worker:0 unix:w0\n' >c
    by_hand
    tf-ps init -c c
    tf-ps serve --task ps:0 3>&- &
    for c in one two; do
        tf-graph -D c=$c model.lua | tf-opt | tf-place -c c | tf-part >parts
        tf-exec -q -g parts --task worker:0 --run train --steps 20
    done
    [ "$(tf-ps list | awk '$3 == "w" { print $2, $5 }')" = "one 21
two 21" ]
    tf-ps stop
    wait
}
