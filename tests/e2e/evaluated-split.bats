#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# An evaluation by all workers of a job, each on a part of the feed's records (--eval-split).
# shellcheck disable=SC2154  # root is of use_tools, stderr of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    zcat "$root/examples/data/digits.csv.gz" >digits.csv
    cat >d.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
logits = nn.dense(nn.dense(x / 16, 32, {activation = Relu}), 10, {name = "output"})
loss = nn.cross_entropy(logits, y)
hits = metric.accuracy(logits, y)
auc = metric.auc(Softmax(logits), y)
certain = metric.mean(Max(Softmax(logits), 1))
entry.train = {minimize(loss, optim.adam{rate = 0.01}), loss}
entry.eval = {loss, hits, auc, certain, metric.confusion(logits, y)}
END
    tf-graph d.lua | tf-opt >d.tfg
    part valid --batch 40 >valid.rec
    touch go
    rule=eval/loss,patience=2,min-delta=0.03
}

teardown() {
    kill_job whole.job
    kill_job again.job
}

part() { # PART OPTION...
    tf-data csv digits.csv x=1-64 y=65:int32 --split 70/15/15 --part "$@"
}

# job STORE OPTION... -- EPOCHS: the feed waits halfway for the file go; EPOCHS is a shell
# expression
job() {
    local epochs=${*: -1}
    tf-run --mode allreduce --workers 3 --deterministic --job "$1.job" --save "$1/" --eval eval \
        --eval-feed valid.rec --eval-every 10 --eval-split "${@:2:$#-3}" d.tfg -- \
        sh -c "exec $root/tests/lib/halfway $PWD/go tf-data csv digits.csv x=1-64 y=65:int32 \
            --split 70/15/15 --part train --shuffle --batch 32 --epochs $epochs"
}

# same_figures CHECKPOINT RECORDS: the step's figures equal those of one process, except for the
# order in which partial sums are added
same_figures() {
    tf-exec -g d.tfg --run eval --feed valid.rec --restore "$1" | tf-show --json >alone
    local step
    step=$(tf-ckpt show "$1" | sed -n 's/^checkpoint .*@//p')
    tf-show --json "$2" | jq -es --argjson step "$step" --slurpfile alone alone '
        map(select(has("eval/loss") and .step == $step)) | length == 1 and (.[0] |
        .["eval/confusion"] == $alone[0].confusion and .["eval/hits"] == $alone[0].hits and
        all(("loss", "auc", "certain") as $name | .["eval/" + $name] / $alone[0][$name] - 1;
            fabs < 1e-9))'
}

stop_step() { # STORE
    sed -n 's/.*: step \([0-9]*\),.*; stopped, as .*/\1/p' "$1.job/worker-0.err" | tail -n 1
}

digest() { # STORE@STEP
    tf-ckpt show "$1" | awk '/float32/ { print $1, $NF }'
}

@test "three workers evaluate a part each, as one process would; a kill changes nothing" {
    local batch last
    for batch in 40 200; do # seven records, the last one short; two, so that one worker has none
        part valid --batch $batch >valid.rec
        rm -rf whole whole.job
        job whole --save-best eval/loss --stop-when "$rule" -- 12 2>err
        finds 'worker:0: stopped, as eval/loss is no better since 2 evaluations$' err
        same_figures whole@best whole.job/worker-0.rec
        last=$(stop_step whole)
        [ "$((last % 10))" -eq 1 ]
        # only the worker that saves prints them
        [ "$(grep -c 'eval/loss' whole.job/worker-0.err)" -gt 3 ]
        [ "$(cat whole.job/worker-[12].err | grep -c 'eval/loss')" -eq 0 ]
        [ ! -s whole.job/worker-1.rec ] || ! tf-show whole.job/worker-1.rec | finds eval/loss
    done
    rm go
    job again --save-best eval/loss --stop-when "$rule" --save-every 15 -- 12 2>err 3>&- &
    soon 60 grep "step 70: " again.job/worker-0.err
    soon 60 has_reached again 10
    kill_pids "$(head -n 1 again.job/worker-1.pid)"
    touch go
    wait $!
    finds 'worker:1 .*killed by signal 9.*restored from again@' err
    diff <(digest "whole@$last") <(digest "again@$last")
    diff <(digest whole@best) <(digest again@best)
}

# Worker 0 has two epochs of data, the last worker six.
@test "who has no more data leaves its records to the others; who is asked to end keeps nobody" {
    local epochs="\$((2 + 2 * \${TF_SHARD%/*}))"
    job whole -- "$epochs" 2>err
    same_figures whole whole.job/worker-2.rec
    [ "$(grep -c 'eval/loss' whole.job/worker-0.err)" -gt 1 ]
    [ "$(grep -c 'eval/loss' whole.job/worker-2.err)" -gt 1 ]
    rm go
    job again -- 12 2>err 3>&- &
    soon 60 grep "step 20: " again.job/worker-0.err
    tf-run stop --job again.job || [ $? -eq 143 ]
    wait $! || [ $? -eq 143 ]
    has_reached again 20
}

@test "what cannot be split is refused before a task runs" {
    local status line options
    while IFS='|' read -r status line options; do
        # shellcheck disable=SC2086
        run --separate-stderr -"$status" tf-run --workers 2 --eval eval --eval-split $options \
            d.tfg -- cat valid.rec
        [[ $stderr = *"tf-run: $line"* ]] || { echo "$stderr" && false; }
        [[ $stderr != *'worker:0'* ]]
    done <<'END'
64|--eval-split: with --mode sync workers do not have|--eval-feed valid.rec
64|--eval-split: with --mode ssp,bound=1 workers do not|--eval-feed valid.rec --mode ssp,bound=1
64|d.tfg: --eval eval is to be fed x, y; --eval-feed names what does|--mode allreduce
64|--eval-split: all evaluate after|--mode allreduce --eval-feed valid.rec --eval-every 5s
END
    run --separate-stderr -64 tf-run --workers 2 --eval-split d.tfg -- cat valid.rec
    [[ $stderr = *'tf-run: --eval-split is for --eval, which is not given'* ]]
    run --separate-stderr -64 tf-exec -g d.tfg --run train --feed valid.rec --eval eval \
        --eval-feed valid.rec --eval-split
    [[ $stderr = *'--eval-split: the workers of this graph do not go on together' ]]
}

@test "a rate is reduced in all workers alike; --check and --trace are of each of them" {
    sed -i 's/^loss = .*/&\nrate = variable{name = "rate", shape = {}, init = 1, trainable = false}/
        s/optim.adam.*}), loss/optim.sgd{rate = rate}), loss/' d.lua
    tf-graph d.lua | tf-opt >d.tfg
    job whole --reduce rate=eval/loss,patience=1,min-delta=0.05,factor=0.5 --fetch rate \
        --check --trace traces -- 8 2>err
    local k
    for k in 0 1 2; do
        tf-show --json whole.job/worker-$k.rec | jq 'select(.rate) | .rate' >rate.$k
    done
    [ "$(sort -u rate.0 | wc -l)" -gt 1 ]
    cmp rate.0 rate.1
    cmp rate.0 rate.2
    [ "$(cat whole.job/*.err | grep -c 'rate is')" -ge "$(($(sort -u rate.0 | wc -l) - 1))" ]
    [ "$(find traces -name 'tf-exec-*.rec' | wc -l)" -eq 3 ]
    for k in traces/*; do tf-show "$k" | finds MatMul; done
    sed 's/init = 1,/init = 1e38,/' d.lua | tf-graph - | tf-opt >hot.tfg
    run --separate-stderr -65 tf-run --workers 2 --check hot.tfg -- cat valid.rec
    [[ $stderr = *"worker:"*": result is "*" at ["* ]]
    run --separate-stderr -74 tf-run --workers 2 --trace d.lua/x hot.tfg -- cat valid.rec
    [[ $stderr = 'tf-run: --trace d.lua/x: cannot be made' ]]
    run --separate-stderr -74 tf-run --workers 2 --trace none/x hot.tfg -- cat valid.rec
    [[ $stderr = 'tf-run: --trace none/x: cannot be made' && ! -e none ]]
}
