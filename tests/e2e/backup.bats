#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Saves of shards as one store: tf-ckpt's verbs, restoring into one process and onto another number
# of shards, and checkpoints of a running job over its links.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    cp -r "$root/examples/." "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return 1
    tf-graph digits.lua | tf-opt >digits.tfg
    tf-place digits.tfg >one.tfg
    export OMP_NUM_THREADS=1
    train 2 4 --save whole/ digits.tfg # 92 rounds
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    ln -sf "$BATS_FILE_TMPDIR"/{digits.tfg,one.tfg,feed,data,whole} "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
    kill_job run
}

line() { # SHARDS EPOCHS OPTION...; fed by $feed
    local shards=$1 epochs=$2
    shift 2
    line=(timeout -k 5 60 tf-run --ps "$shards" --workers 2 --fetch "loss,accuracy" "$@"
        -- "${feed:-./feed}" --rows 1-1437 --shuffle --batch 32 --epochs "$epochs")
}

train() {
    line "$@"
    "${line[@]}" 3>&-
}

@test "the verbs work on what shards have saved" {
    tf-ckpt list whole | finds -E '^92 .* accuracy|^92 '
    tf-ckpt list --json whole | jq -e '.shards == 2 and .scalars == {}' # no step came after
    tf-ckpt show whole | finds -E '^hidden/W +float32\[64,128\] .* ps-[01] '
    tf-ckpt verify whole --data
    tf-ckpt cat whole output/b -o b.npy
    tf-ckpt diff whole whole@92
    tf-ckpt init other
    tf-ckpt copy whole other
    tf-ckpt diff whole other
    tf-ckpt export whole digits.safetensors
    [ -s digits.safetensors ]
}

@test "one process goes on from what shards have saved, and shards from what one has" {
    accuracy=$(./feed --rows 1438- --batch 360 |
        tf-exec -g one.tfg --run eval --restore whole | tf-show --json | jq -s '.[0].accuracy')
    jq -en "$accuracy > 0.8"
    tf-exec -g one.tfg --run eval --feed <(./feed --rows 1438- --batch 360) --restore whole \
        --save one/ >/dev/null
    train 2 0 --steps 0 --restore one --save two/ digits.tfg
    tf-ckpt diff one two
}

@test "two shards' checkpoint goes on with three, and with one, to the same values" {
    cp -rL whole on3
    cp -rL whole on1
    train 3 8 --save on3/ --resume digits.tfg
    train 1 8 --save on1/ --resume digits.tfg
    train 2 8 --save on2/ digits.tfg
    [ "$(tf-ckpt list --json on3 | tail -1 | jq -c '[.step, .shards]')" = '[184,3]' ]
    tf-ckpt diff on2@184 on3@184
    # the clock's records of workers, how often they joined and which have left, are no values
    run tf-ckpt diff --all on2@184 on3@184
    [ "$status" -le 1 ]
    run -1 grep -vE '^(clock|aggregator):|^$' <<<"$output"
    run -1 bash -c 'tf-ckpt show on3 | grep -F clock:'
    tf-ckpt show --all on3 | finds '^clock:train/version '
    [ "$(tf-ckpt list --json on3 | tail -1 | jq .tensors)" -eq 14 ]
    tf-ckpt diff on2@184 on1@184
}

@test "a table in two slices goes on in three, and as a whole" {
    cat >m.lua <<'LUA'
ids = Placeholder{dtype = int32, shape = {-1}}
y = Placeholder{dtype = float32, shape = {-1}}
local e = nn.embedding(ids, 1001, 8, {name = "table", init = init.uniform{min = -1, max = 1},
                                      partitions = D.n})
local table = trainable()[1]
loss = nn.mse(Sum(e, {1}), y)
entry.train = minimize(loss, optim.adagrad{rate = 0.1})
entry.whole = table
LUA
    awk 'BEGIN { srand(7); for (i = 0; i < 240; i++) print int(1001 * rand()) "," rand() }' >x.csv
    tf-data csv x.csv ids=1:int32 y=2 --batch 6 >f.rec
    slices() { # STORE N [OPTION]...
        local store=$1 n=$2
        shift 2
        tf-graph m.lua -D n="$n" | tf-opt >m.tfg
        timeout -k 5 60 tf-run --ps "$n" --workers 1 --mode async --save "$store/" "$@" m.tfg \
            -- cat "$PWD/f.rec" 3>&-
    }
    whole() { # STORE
        tf-graph m.lua | tf-opt | tf-exec --run whole --restore "$1" | tf-show --json
    }
    slices two 2 --steps 20
    tf-ckpt show two | finds '^table/W/part_1 .* ps-1'
    slices straight 2
    cp -r two three
    slices three 3 --resume
    tf-ckpt show three | finds '^table/W/part_2 '
    [ "$(tf-ckpt list --json three | tail -1 | jq .step)" = 40 ]
    whole straight >straight.json
    grep -q '^{' straight.json
    whole three | cmp straight.json
    tf-ckpt init copy
    tf-ckpt copy three copy
    whole copy | cmp straight.json

    # from outside it is one table, however it is partitioned
    tf-ckpt diff straight@40 three@40
    run tf-ckpt diff two@20 three@40
    [ "$status" -eq 1 ]
    [ "$(awk '{print $1}' <<<"$output" | xargs)" = "table/W table/W/adagrad" ]
    [ "$(tf-ckpt cat three table/W | tf-show)" = "$(tf-ckpt cat straight table/W | tf-show)" ]
    tf-ckpt cat three table/W/part_2 | tf-show | finds 'float32\[33[0-9],8\]'
    for form in ckpt npz safetensors index; do
        tf-ckpt export three "x.$form"
        tf-ckpt init "of-$form"
        tf-ckpt import "x.$form" "of-$form" --step 40
        [ "$(tf-ckpt show "of-$form" | awk '$1 ~ /W/ {print $1, $2}' | sort | xargs)" = \
            "table/W float32[1001,8] table/W/adagrad float32[1001,8]" ]
        tf-ckpt diff three "of-$form"
        whole "of-$form" | cmp straight.json
    done
    whole x.ckpt | cmp straight.json
    tf-ckpt salvage three saved.npz
    cmp saved.npz x.npz
    slices of-ckpt 3 --resume --steps 0
    slices on-npz 3 --restore of-npz --steps 0
    tf-ckpt diff three on-npz
}

@test "a whole job killed at any moment and resumed ends with the bits of one that never was" {
    local i n=${JOB_KILLS:-1} tf_run code feed
    # It waits after some fifty steps' records, so that no worker has ended when it is killed.
    cat >held <<'SH'
#!/bin/sh
./feed "$@" | {
    dd bs=4096 count=104 iflag=fullblock 2>&3
    until [ -e go ]; do sleep 0.02; done
    cat
} 3>/dev/null
SH
    chmod +x held
    for ((i = 0; i < n; i++)); do
        rm -rf killed job go
        feed=./held
        line 2 4 --save killed/ --save-every 10 --resume --job job digits.tfg
        "${line[@]}" 2>err 3>&- &
        tf_run=$!
        soon 30 has_reached killed "$((RANDOM % 4 + 1))0"
        # both at once: a worker whose shard is gone ends by itself
        # shellcheck disable=SC2046  # words
        kill -9 $(cat job/ps-0.pid job/ps-1.pid job/worker-0.pid)
        kill -TERM "$tf_run" || :
        code=0
        wait "$tf_run" || code=$?
        touch go
        [ "$code" -eq 143 ]
        tf-ckpt verify killed --data
        feed=./feed
        train 2 4 --save killed/ --save-every 10 --resume --job job digits.tfg
        tf-ckpt diff whole@92 killed@92
    done
}

@test "a running job is saved over its links, and the lines of a cron job" {
    line 2 2000 --job run digits.tfg
    "${line[@]}" 2>err 3>&- &
    local tf_run=$!
    soon 20 test -s run/worker-1.rec
    run --separate-stderr tf-ckpt save backup --job run
    [ "$status" -eq 66 ]
    [ "$stderr" = "tf-ckpt: backup: no store there; tf-ckpt init makes one" ]
    tf-ckpt init backup
    tf-ckpt save backup --job run --lock-wait 60s --max-runtime 10m
    sleep 0.3
    [ -z "$(tf-ckpt save backup --job run 2>&1)" ]
    tf-ckpt list --json backup | jq -es 'length == 2 and .[0].step < .[1].step'
    tf-ckpt list --json backup | jq -es '.[1].scalars.accuracy > 0.1 and .[1].shards == 2'
    tf-ckpt verify backup --data
    ./feed --rows 1438- --batch 360 | tf-exec -g one.tfg --run eval --restore backup |
        tf-show --json | jq -es '.[0].accuracy > 0.1'

    newest=$(tf-ckpt list --json backup | tail -1 | jq .step)
    exec 9<>backup/writer.lock
    flock 9
    run --separate-stderr tf-ckpt save backup --job run --lock-wait 0.2s
    exec 9>&-
    [ "$status" -eq 75 ]
    [[ $stderr == "tf-ckpt: backup: locked by "*"; newest stays backup@$newest" ]]

    kill -STOP "$(cat run/ps-1.pid)"
    run --separate-stderr tf-ckpt save backup --job run --max-runtime 1s
    [ "$status" -eq 69 ]
    [[ $stderr == "tf-ckpt: ps:1 at "*"; newest stays backup@$newest" ]]
    pkill -9 -P "$tf_run" # the child of timeout, which would not hand it on
    soon 20 test ! -e /proc/"$(cat run/ps-0.pid)"/exe
    run --separate-stderr tf-ckpt save backup --job run --max-runtime 1s
    [[ $status -eq 69 || $status -eq 66 ]]
    [[ $stderr == *"newest stays backup@$newest" || $status -eq 66 ]]
    tf-ckpt verify backup --data
}
