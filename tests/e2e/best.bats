#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs keep the best checkpoint with its own loss: the loss in a checkpoint is that of its
# variables, whichever process saves. The model's loss reveals its variable: loss = |w - 100|, and
# each update adds 1 to w, which is 0 at first.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    cat >model.lua <<'END'
w = variable{name = "w", shape = {}, init = Const(0.0)}
loss = Abs(w - 100)
pair = Const({1.0, 2.0})
entry.train = minimize(loss, optim.sgd{rate = 1})
END
    tf-graph model.lua >m.tfg
}

measures_what_it_keeps() { # STORE: of each checkpoint that has a loss; says how many have
    local name step loss n=0
    while read -r step loss; do
        [ "$loss" != - ] || continue
        name=$1@$step
        tf-ckpt cat "$name" w | tf-show >shown
        [ "$(awk '{ print $3 < 100 ? 100 - $3 : $3 - 100 }' shown)" = "$loss" ] ||
            { echo "$name: loss $loss, w $(tf-ckpt cat "$name" w | tf-show)" >&2; return 1; }
        n=$((n + 1))
    done < <(tf-ckpt list "$1" --json | jq -r '"\(.step) \(.scalars.loss // "-")"')
    echo "$n"
}

teardown() {
    kill_job run
}

@test "shards: each checkpoint but the last has its own loss; the best stays" {
    tf-run -q --ps 2 --workers 2 --steps 60 --fetch loss --save ck/ --save-every 7 --keep 20 m.tfg
    [ "$(measures_what_it_keeps ck)" -eq 8 ]
    tf-ckpt list ck --json | jq -es 'length == 9 and .[8].step == 60 and .[8].scalars == {}'
    tf-ckpt forget ck --keep-best 2 --by loss
    [ "$(tf-ckpt list ck --json | jq -r .step | paste -sd' ')" = "49 56 60" ]
}

@test "shards: --save-best keeps the best of those that are made, beside the newest" {
    tf-run --ps 2 --workers 2 --steps 60 --fetch loss --save ck/ --save-every 7 \
        --save-best loss:max --keep 2 m.tfg 2>err
    finds 'tf-run: ended after step 60, loss=41; ck@60 is kept, and the best, ck@7$' err
    [ "$(tf-ckpt list ck --json | jq -r .step | paste -sd' ')" = "7 56 60" ]
    [ "$(measures_what_it_keeps ck)" -eq 2 ]
    tf-ckpt show ck@best | finds -E '^checkpoint +ck@7$'
    tf-exec -g m.tfg --fetch loss --restore ck@best | tf-show | finds -E ' 93$'
}

@test "a job that goes on begins from the best of the store" {
    tf-exec -q -g m.tfg --run train -n 150 --fetch loss --save ck/ --save-best loss >/dev/null
    tf-exec -q -g m.tfg --run train -n 160 --fetch loss --save ck/ --save-best loss --resume \
        >/dev/null
    [ "$(tf-ckpt list ck --json | jq '.step | select(. >= 100)' | xargs)" = "100 150 160" ]
    tf-ckpt show ck@best | finds -E '^checkpoint +ck@100$'
}

@test "workers that update: --save-best finds the best of all steps" {
    local mode
    for mode in allreduce sync,update=worker; do
        rm -rf ck
        tf-run -q --workers 2 --mode "$mode" --steps 130 --fetch loss --save ck/ --keep 1 \
            --save-best loss m.tfg
        [ "$(tf-ckpt list ck --json | jq -r .step | paste -sd' ')" = "100 130" ]
        [ "$(measures_what_it_keeps ck)" -eq 1 ]
    done
}

@test "a running job that is saved from outside: the loss is of what was saved" {
    tf-run -q --ps 2 --workers 2 --steps 1000000 --fetch loss --job run m.tfg 3>&- &
    soon 20 test -s run/worker-0.rec
    tf-ckpt init backup
    tf-ckpt save backup --job run --max-runtime 20s
    tf-ckpt save backup --job run --max-runtime 20s
    tf-run stop --job run || [ $? -eq 143 ]
    [ "$(measures_what_it_keeps backup)" -eq 2 ]
}

@test "asynchronous workers: a loss is of the checkpoint's variables or soon after" {
    tf-run -q --ps 1 --workers 2 --mode async --steps 40 --fetch loss --save ck/ --save-every 10 \
        --keep 20 m.tfg
    tf-ckpt list ck --json | jq -es 'map(select(.scalars.loss)) |
        length > 0 and all(.[]; .scalars.loss <= 100 - .step and .scalars.loss >= 90 - .step)'
}

@test "copies of a worker's own are no measure of what shards keep" {
    tf-run -q --ps 1 --workers 1 --mode downpour,fetch=3,push=1 --steps 12 --fetch loss --save ck/ \
        --save-every 4 m.tfg
    tf-ckpt list ck --json | jq -es 'length == 3 and all(.[]; .scalars == {})'
}

@test "a metric that is no number, or is not fetched, is refused before anything runs" {
    local where
    for where in "tf-exec -g m.tfg --run train -n 2" "tf-run --workers 1 --steps 2 m.tfg" \
        "tf-run --mode allreduce --workers 1 --steps 2 m.tfg"; do
        # shellcheck disable=SC2086
        run --separate-stderr $where --fetch pair --save ck/ --save-every 1 --save-best pair
        [ "$status" -eq 64 ]
        [ "$stderr" = "${where%% *}: --save-best pair: is less of it better, or more? pair:min or \
pair:max" ]
        # shellcheck disable=SC2086
        run --separate-stderr $where --fetch pair --save ck/ --save-every 1 --save-best pair:min
        [ "$status" -eq 64 ]
        [ "$stderr" = "${where%% *}: --save-best pair: it is float32[2], and no number" ]
        # shellcheck disable=SC2086
        run --separate-stderr $where --fetch pair --save ck/ --save-every 1 --save-best loss
        [ "$status" -eq 64 ]
        [[ $stderr == "${where%% *}: --save-best loss: neither fetched nor evaluated: METRIC, "* ]]
        [ ! -e ck ]
    done
    run --separate-stderr tf-run --workers 1 --fetch loss --save ck/ --save-best loss m.tfg
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-run: --save-best loss: shards choose among what --save-every makes" ]
}

@test "a metric of unknown shape is refused after the first step" {
    cat >any.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1}}
w = variable{name = "w", shape = {}, init = Const(0.0)}
each = Abs(w - x)
entry.train = minimize(Mean(each, {0}), optim.sgd{rate = 1})
END
    tf-graph any.lua >any.tfg
    run --separate-stderr tf-exec -g any.tfg --run train -n 2 --feed 'x=[1.0,2.0]' \
        --fetch each --save ck/ --save-best each:max
    [ "$status" -eq 64 ]
    [[ $stderr == "tf-exec: --save-best each: it is float32[2], and no number"* ]]
}
