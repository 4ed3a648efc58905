#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The examples learn more than simple baselines: a table of counts, principal components, noise in
# the data, chance.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    work=$BATS_TEST_TMPDIR
    cd "$root/examples" || return 1
    set -o pipefail
}

learn() { # SCRIPT TF-GRAPH-OPTION...: from the records of stdin
    local script=$1
    shift
    tf-graph "$@" "$script.lua" | tf-opt | tf-place >"$work/g"
    tf-exec -q -g "$work/g" --run train --save "$work/ck"
}

score() { # ENTRY NAME: with what was learned
    tf-exec -q -g "$work/g" --run "$1" --restore "$work/ck" | tf-show --json | jq ".$2"
}

below() { # BOUND: a number on stdin
    awk -v bound="$1" '{ print $1, "is to be below", bound; exit !($1 + 0 == $1 && $1 < bound) }'
}

above() { # BOUND: a number on stdin
    awk -v bound="$1" '{ print $1, "is to be above", bound; exit !($1 + 0 == $1 && $1 > bound) }'
}

# Counts of pairs of bytes in the training rows, each with 0.1 more, have a perplexity of 13.3178 on
# the other rows (NumPy).
@test "an LSTM and a transformer know more of a text than counts of pairs do" {
    text() { ./feed-text "$root/LICENSE" --batch 64 "$@"; }
    text --rows 1-3400 --shuffle --epochs 8 | learn text -D units=32
    text --rows 3401- | score eval perplexity | below 13.3178
    text --rows 3401- --steps 1 | score predict 'next | flatten | length' | finds -x 64
    text --rows 1-3400 --shuffle --epochs 8 | learn text -D units=32 -D net=unrolled
    text --rows 3401- | score eval perplexity | below 13.3178
    text --rows 1-3400 --shuffle --epochs 2 | learn text -D units=32 -D net=transformer
    text --rows 3401- | score eval perplexity | below 13.3178
}

digits() {
    tf-data csv data/digits.csv.gz x=1-64 --batch 64 "$@"
}

# As many principal components of the same images leave 0.0246279 of the other images (NumPy).
@test "an autoencoder leaves less of an image out than principal components do" {
    digits --rows 1-1437 --shuffle --epochs 30 | learn autoencoder
    digits --rows 1438- | score eval mse | below 0.0246279
}

# The mean squared distance from a real image to the nearest one of another digit is 3.45116; from
# pixels drawn independently to the nearest image it is 4.7 (NumPy).
@test "digits that are drawn are as near to real ones as the same digits are to each other" {
    digits --shuffle --drop-remainder --epochs 150 | learn gan
    tf-exec -q -g "$work/g" --run predict --restore "$work/ck" |
        tf-show --npy - drawn >"$work/drawn.npy"
    tf-graph -e '
        x = Placeholder{dtype = float32, shape = {-1, 64}}
        y = Placeholder{dtype = int32, shape = {-1}}
        drawn = Placeholder{dtype = float32, shape = {-1, 64}}
        local apart = Sum(drawn * drawn, 1, {keep_dims = true}) + Sum(x * x / 256, 1) -
                      MatMul(drawn, x, {transpose_b = true}) / 8
        far = Mean(Min(apart, 1), 0)
        kinds = Size((Unique(Gather(y, ArgMin(apart, 1)))))' >"$work/near"
    ./feed --batch 1797 | tf-exec -q -g "$work/near" --fetch far,kinds \
        --feed drawn="$work/drawn.npy" --feed - | tf-show --json >"$work/told"
    jq .far "$work/told" | below 3
    jq .kinds "$work/told" | above 6
}

# The noise alone is 0.3; the ratings vary by 0.9.
@test "tastes are found in ratings, up to the noise that is in them" {
    ./feed-ratings --rows 1-18000 --shuffle --batch 256 --epochs 20 | learn ratings
    ./feed-ratings --rows 18001- --batch 256 | score eval rmse >"$work/rmse"
    below 0.36 <"$work/rmse"
    above 0.28 <"$work/rmse"
}

@test "words that are used alike get vectors that point the same way" {
    ./feed-words --shuffle --batch 256 --epochs 3 | learn words
    # the five nearest of 200 words: by chance a tenth are of the word's kind
    score nearest nearest </dev/null |
        jq '[range(200) as $i | .[$i][1:][] | select(. % 10 == $i % 10)] | length' | above 950
}

@test "papers that are tied tell each other's field" {
    ./feed-papers --epochs 100 | learn graph
    ./feed-papers | score eval accuracy | above 0.7
    ./feed-papers --epochs 100 | learn graph -D ties=0
    ./feed-papers | score eval accuracy | below 0.55
}

@test "a cart learns to keep its pole up" {
    tf-graph cart.lua | tf-opt | tf-place >"$work/g"
    score_of() { tf-exec -q -g "$work/g" --run eval "$@" | tf-show --json | jq .lasted; }
    score_of | below 40 # pushed by chance
    tf-exec -q -g "$work/g" --run train --steps 100 --save "$work/ck"
    score_of --restore "$work/ck" | above 190
}

papers() { # NET NARROW EPOCHS: so narrow that a second thread does not pay
    export TF_THREADS=1
    ./feed --rows 1-1437 --shuffle --batch 32 --epochs "$3" |
        learn papers -D net="$1" -D narrow="$2"
    ./feed --rows 1438- --batch 360 | score eval accuracy | above 0.85
}

@test "AlexNet, Overfeat and VGG learn digits, narrow as they are here" {
    papers alexnet 8 8
    papers overfeat 8 8
    papers vgg 8 8
}

@test "GoogLeNet and Inception-v3 learn digits, narrow as they are here" {
    papers googlenet 4 20
    papers inception 8 10
}
