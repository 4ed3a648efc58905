#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Training with an entry that is evaluated meanwhile: the best is kept, and it ends in time.
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
local h = nn.dropout(nn.dense(x / 16, 32, {activation = Relu}), 0.9)
logits = nn.dense(h, 10, {name = "output"})
loss = nn.cross_entropy(logits, y)
hits = metric.accuracy(logits, y)
entry.train = {minimize(loss, optim.adam{rate = 0.01}), loss, hits}
entry.eval = {loss, hits, metric.confusion(logits, y)}
entry.bad = logits
END
    tf-graph d.lua | tf-opt >d.tfg
    part train --shuffle --epochs 12 --batch 64 >train.rec
    part valid --batch 100 >valid.rec
    rule=eval/loss,patience=2,min-delta=0.03
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
    tf-show --json fetched | cmp - plain.json
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

@test "what cannot be evaluated is refused, before anything runs" {
    local status line options
    while IFS='|' read -r status line options; do
        # shellcheck disable=SC2086
        run --separate-stderr -"$status" train $options
        [[ $stderr = "tf-exec: $line"* ]] || { echo "$stderr" && false; }
    done <<'END'
65|d.tfg: --eval: there is no entry or node 'evl'; the entries are train, eval|--eval evl
64|d.tfg: 'logits' is float32[?,10], neither a score (metric...) nor a number|--eval bad
64|d.tfg: --eval train: it runs ops, and does not only fetch|--eval train
64|--eval-every: '0' is neither a number of steps nor a time like 30s|--eval eval --eval-every 0
64|--stop-when loss: it is not evaluated; there are eval/loss|--eval eval --stop-when loss
64|--stop-when eval/loss,patience=0: it is METRIC,|--eval eval --stop-when eval/loss,patience=0
64|--save-best eval/f1: it is not fetched; --fetch eval/f1|--eval eval --save-best eval/f1
END
    [ ! -e ck ]
    run --separate-stderr -65 train --eval eval --eval-feed 'cat valid.rec; exit 3' --eval-every 20
    [[ $stderr = *"--eval-feed 'cat valid.rec; exit 3' ended with 3"* ]]
    run --separate-stderr -66 train --eval eval --eval-feed none.rec
    [[ $stderr = *"--eval-feed: none.rec: "* ]]
}
