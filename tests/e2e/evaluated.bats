#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Training with an entry that is evaluated meanwhile: the best is kept, and training stops early.
# shellcheck disable=SC2054,SC2154  # commas of options; root is of use_tools, stderr of run
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
local h = nn.dropout(nn.dense(x / 16, 32, {activation = Relu}), 0.9)
logits = nn.dense(h, 10, {name = "output"})
loss = nn.cross_entropy(logits, y)
hits = metric.accuracy(logits, y)
entry.train = {minimize(loss, optim.adam{rate = 0.01}), loss, hits}
entry.eval = {loss, hits, metric.confusion(logits, y)}
entry.bad = logits
entry.none = {}
END
    tf-graph d.lua | tf-opt >d.tfg
    part train --shuffle --epochs 12 --batch 64 >train.rec
    part valid --batch 100 >valid.rec
    rule=eval/loss,patience=2,min-delta=0.03
}

teardown() {
    kill_job whole.job
    kill_job again.job
}

part() { # PART OPTION...
    tf-data csv digits.csv x=1-64 y=65:int32 --split 70/15/15 --part "$@"
}

train() { # OPTION...
    tf-exec -g d.tfg --run train --feed train.rec --deterministic --save ck/ "$@" >fetched
}

digest() { # STORE@STEP
    tf-ckpt show "$1" | awk '/float32/ { print $1, $NF }'
}

@test "the best is kept, its scores are those of an evaluation alone, a table says so" {
    train --eval eval --eval-feed valid.rec --eval-every 20 --save-best eval/loss:min 2>err
    tf-exec -g d.tfg --run eval --feed valid.rec --restore ck@best | tf-show --json >alone
    tf-ckpt list ck --json | jq -es --slurpfile alone alone '
        min_by(.scalars["eval/loss"] // 9).scalars |
        .["eval/loss"] == $alone[0].loss and .["eval/hits"] == $alone[0].hits'
    finds -E '^tf-exec: d.tfg: step 240, epoch 12, after [0-9.]+ s$' err
    finds -E '^tf-exec:  +train +eval +best$' err
    finds -E '^tf-exec:   loss +0\.[0-9]+ +0\.[0-9]+ +0\.[0-9]+$' err
    finds -E '^tf-exec: the best is of step [0-9]+, ck@best$' err
    finds -x 'tf-exec: tf-exec -g d.tfg --run eval --restore ck@best' err
    # a step that was not evaluated has no scores
    tf-ckpt list ck --json | jq -es 'all(.[]; .step % 20 == 0)'
}

@test "evaluating takes nothing from training: the same bits" {
    train
    mv ck plain
    tf-show --json fetched >plain.json
    train -q --eval eval --eval-feed 'cat valid.rec' --eval-every 7
    diff <(digest plain@240) <(digest ck@240)
    tf-show --json fetched >evaluated.json # a record more for each evaluation
    [ "$(grep -c '"eval/' evaluated.json)" -eq $((240 / 7 + 1)) ] # and the last step
    grep -v '"eval/' evaluated.json | cmp - plain.json
}

@test "it ends in time, and after a kill at the same step with the same best" {
    train --eval eval --eval-feed valid.rec --eval-every 10 --save-best eval/loss \
        --stop-when "$rule" --save-every 15 2>err
    finds -E 'stopped, as eval/loss is no better since 2 evaluations$' err
    local last best
    last=$(tf-ckpt list ck --json | tail -n 1 | jq .step)
    best=$(tf-ckpt show ck@best | sed -n 's/^checkpoint *ck@//p')
    [ "$last" -lt 240 ]
    mv ck whole
    local at
    for at in 36 86; do
        rm -rf ck
        TF_FAILPOINTS=exec.steps:$at:kill run train --eval eval --eval-feed 'cat valid.rec' \
            --eval-every 10 --save-best eval/loss --stop-when "$rule" --save-every 15
        [ "$status" -eq 137 ]
        train -q --eval eval --eval-feed valid.rec --eval-every 10 --save-best eval/loss \
            --stop-when "$rule" --save-every 15 --resume
        [ "$(tf-ckpt list ck --json | tail -n 1 | jq .step)" -eq "$last" ]
        diff <(digest "whole@$last") <(digest "ck@$last")
        diff <(digest "whole@$best") <(digest ck@best)
    done
}

@test "what was kept of no rule, or of another metric's, decides on nothing" {
    local before
    for before in "" --stop-when=eval/hits:max,patience=9; do
        rm -rf ck
        train -q --eval eval --eval-feed valid.rec --eval-every 10 --steps 30 ${before:+"$before"}
        train --eval eval --eval-feed valid.rec --eval-every 10 --steps 60 --resume \
            --stop-when eval/loss,patience=2 2>err
        finds -E 'step 60, epoch' err
    done
}

job() { # STORE OPTION...: it waits halfway for the file go
    tf-run --workers 2 --deterministic --fetch loss --job "$1.job" --save "$1/" --eval eval \
        --eval-feed valid.rec --eval-every 10 --save-best eval/loss --stop-when "$rule" "${@:2}" \
        d.tfg -- "$root/tests/lib/halfway" "$PWD/go" \
        tf-data csv digits.csv x=1-64 y=65:int32 --split 70/15/15 --part train --shuffle \
        --epochs 12 --batch 32
}

# scored STORE: the best is of the step that stopped training, and has the scores of a separate
# evaluation
scored() {
    tf-exec -g d.tfg --run eval --feed valid.rec --restore "$1@best" | tf-show --json >alone
    tf-ckpt list "$1" --json | jq -es --slurpfile alone alone '
        min_by(.scalars["eval/loss"] // 9).scalars |
        .["eval/loss"] == $alone[0].loss and .["eval/hits"] == $alone[0].hits'
    tf-show --json "$1.job/worker-0.rec" | jq -es --slurpfile alone alone '
        map(select(has("eval/loss"))) | min_by(.["eval/loss"]) |
        .["eval/loss"] == $alone[0].loss and .["eval/confusion"] == $alone[0].confusion'
}

stop_step() { # STORE
    sed -n 's/.*: step \([0-9]*\),.*; stopped, as .*/\1/p' "$1.job/worker-0.err" | tail -n 1
}

@test "a job of workers that sum: one evaluates, all end a step later; a kill changes nothing" {
    touch go
    job whole --mode allreduce 2>err
    finds 'worker:0: stopped, as eval/loss is no better since 2 evaluations$' err
    finds -E 'ended after step [0-9]+, .* and the best, whole@[0-9]+$' err
    scored whole
    local last
    last=$(stop_step whole)
    [ "$last" -lt 240 ]
    [ $((last % 10)) -eq 1 ]
    finds "worker:1: ends after step $last, as another worker was asked to" whole.job/worker-1.err
    rm go
    job again --mode allreduce --save-every 15 2>err 3>&- &
    soon 60 grep "step 110: " again.job/worker-0.err
    soon 60 has_reached again 10
    kill_pids "$(head -n 1 again.job/worker-0.pid)"
    touch go
    wait $!
    finds 'worker:0 .*killed by signal 9.*restored from again@' err
    diff <(digest "whole@$last") <(digest "again@$last")
    diff <(digest whole@best) <(digest again@best)
}

@test "a job with shards: checkpoints have the scores of their variables; a kill changes nothing" {
    touch go
    job whole --ps 2 --save-every 5 --keep 100 2>err
    scored whole
    local last evaluated
    last=$(stop_step whole)
    evaluated=$(awk '{ print $1 }' whole.job/worker-0.evaluations)
    [ "$(tail -n 1 <<<"$evaluated")" -eq "$last" ]
    [ "$last" -lt 240 ]
    # the last one was saved as the shards ended
    [ "$evaluated" = "$(tf-ckpt list whole --json | jq 'select(.scalars["eval/loss"]).step')" ]
    rm go
    job again --ps 2 --save-every 5 --keep 100 2>err 3>&- &
    soon 60 grep "step 110: " again.job/worker-0.err
    kill_pids "$(head -n 1 again.job/worker-0.pid)"
    touch go
    wait $!
    finds 'worker:0 .*killed by signal 9.*started again as incarnation 2' err
    [ "$(stop_step again)" -eq "$last" ]
    cmp {whole,again}.job/worker-0.evaluations
    diff <(digest "whole@best") <(digest again@best)
}

@test "a rate becomes less when the metric stays, by Keras' rule, and so after a kill" {
    cat >rate.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
scale = Placeholder{dtype = float32, shape = {}}
rate = variable{init = 0.5, dtype = float32, shape = {}, trainable = false}
logits = nn.dense(nn.dense(x / 16, 32, {activation = Relu}), 10)
loss = nn.cross_entropy(logits, y) * scale
entry.train = {minimize(loss, optim.sgd{rate = rate}), loss}
entry.eval = {loss, metric.accuracy(logits, y)}
END
    tf-graph rate.lua | tf-opt >d.tfg
    local reduce=(--feed scale=1 --eval eval --eval-feed valid.rec --eval-every 10
        --reduce rate=eval/loss,patience=2,min-delta=0.02,factor=0.5,least=0.1 --save-every 15)
    train "${reduce[@]}" 2>err
    sed -n 's/.*step \([0-9]*\): .*eval.loss \([^,]*\),.*/\1 \2/p' err | awk '
        NR == 1 || $2 < best - 0.02 { best = $2; waits = 0; next }
        ++waits >= 2 {
            waits = 0; rate = rate ? rate / 2 : 0.25
            if (rate < 0.1) rate = 0.1
            print "tf-exec: step " $1 ": rate is " rate " now"
        }' >expected
    [ "$(wc -l <expected)" -ge 3 ]
    grep 'rate is' err | cmp - expected
    mv ck whole
    local at
    at=$(sed -n '2s/.*step \([0-9]*\):.*/\1/p' expected)
    TF_FAILPOINTS=exec.steps:$((at + 7)):kill run train "${reduce[@]}"
    [ "$status" -eq 137 ]
    train -q "${reduce[@]}" --resume
    diff <(digest whole@240) <(digest ck@240)
    # the constant feed applied to the evaluation, too
    tf-exec -g d.tfg --run eval --feed scale=1 --feed valid.rec --restore ck | tf-show --json |
        jq -e --slurpfile last <(tf-ckpt list ck --json | tail -n 1) \
            '.loss == $last[0].scalars["eval/loss"]'
}

@test "who feeds a run that ends in time has not failed" {
    part train --epochs 0 --batch 64 | tf-exec -g d.tfg --run train --eval eval \
        --eval-feed valid.rec --eval-every 10 --stop-when "$rule" -q >fetched
}

@test "what cannot be evaluated is refused, before anything runs" {
    local status line options
    while IFS='|' read -r status line options; do
        # shellcheck disable=SC2086
        run --separate-stderr -"$status" train $options
        [[ $stderr = "tf-exec: $line"* ]] || { echo "$stderr" && false; }
    done <<'END'
65|d.tfg: --eval: there is no entry or node 'evl'; the entries are train, eval|--eval evl
64|d.tfg: --eval none: it fetches nothing|--eval none
64|d.tfg: 'bad/logits' is float32[?,10], neither a score (metric...) nor a number|--eval bad
64|d.tfg: --eval train: it runs ops, and does not only fetch|--eval train
64|--eval-every: '0' is neither a number of steps below 2^63 nor a time like 30s|--eval eval --eval-every 0
64|--stop-when is for --eval-every, which is not given|--eval eval --stop-when loss
64|--stop-when loss: it is not evaluated; there are eval/loss|--eval eval --eval-every 9 --stop-when loss
64|--stop-when eval/loss,patience=0: it is METRIC,|--eval eval --eval-every 9 --stop-when eval/loss,patience=0
64|--reduce rat=eval/loss: there is no variable 'rat' of numbers|--eval eval --eval-every 9 --reduce rat=eval/loss
64|--reduce output/W=loss: it is not evaluated|--eval eval --eval-every 9 --reduce output/W=loss
64|--reduce rate: it is VARIABLE=METRIC,|--eval eval --eval-every 9 --reduce rate
64|--save-best eval/f1: neither fetched nor evaluated|--eval eval --eval-feed valid.rec --save-best eval/f1
64|d.tfg: --eval eval is to be fed x, y; --eval-feed names what does|--eval eval
66|--eval-feed: none.rec: No such file|--eval eval --eval-feed none.rec
END
    [ ! -e ck ]
    run --separate-stderr -65 train --eval eval --eval-feed 'cat valid.rec; exit 3' --eval-every 20
    [[ $stderr = *"--eval-feed 'cat valid.rec; exit 3' ended with 3"* ]]
    run --separate-stderr -66 train --eval eval --eval-feed none.rec
    [[ $stderr = *"--eval-feed: none.rec: "* ]]
}
