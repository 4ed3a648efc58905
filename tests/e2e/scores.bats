#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Scores over all rows of a feed, compared with scikit-learn's for the same predictions
# (tests/data/metric, made by metric.py there).
# shellcheck disable=SC2154  # root is of use_tools, stderr of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    data=$root/tests/data/metric
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    tf-graph "$data/metric.lua" >g
}

feed() { # OPTION...
    tf-data csv "$data/rows.csv" rows=1-10 --header yes "$@"
}

# Its lines are: name, elements.
agrees() { # JSON
    jq -r 'del(.step) | to_entries[] |
        "\(.key) \([.value] | flatten | map(tostring) | join(" "))"' "$1" >got
    awk 'NR == FNR { got[$1] = $0; next }
         { n = split(got[$1], value)
           if (n != NF) { print "missing: " $1; bad = 1 }
           for (i = 2; i <= NF; i++) {
               d = value[i] - $i; size = $i < 0 ? -$i : $i
               if (!(d <= 1e-6 * size && -d <= 1e-6 * size)) {
                   print $1, "element", i - 2 ":", value[i], "not", $i; bad = 1
               }
           } }
         END { exit bad }' got "$data/expected.txt"
}

@test "of probabilities of classes the area is that of their logits" {
    cat >area.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1, 3}}
y = Placeholder{dtype = int32, shape = {-1}}
entry.eval = {metric.auc(x, y, {name = "a"}), metric.auc(Softmax(x), y, {name = "b"})}
END
    tf-graph area.lua >area.tfg
    awk 'BEGIN { srand(7); for (i = 0; i < 200; i++)
        print 9 * rand(), 9 * rand(), 9 * rand(), int(3 * rand()) }' >rows.txt
    tf-data csv rows.txt x=1-3 y=4:int32 --header no --batch 64 |
        tf-exec -q -g area.tfg --run eval | tf-show --json |
        jq -e '(.a - .b | . * . < 1e-12) and .a > 0.3 and .a < 0.7'
}

@test "one line at the end is scikit-learn's, whatever the batches are" {
    local size
    for size in 403 64 17; do
        feed --batch "$size" | tf-exec -g g --run eval | tf-show --json >all
        [ "$(wc -l <all)" -eq 1 ]
        agrees all
    done
    # steps of unequal size, in another order
    { feed --batch 300 --rows 104-403 && feed --batch 7 --rows 1-103; } >rec
    tf-exec -g g --run eval --feed rec | tf-show --json >all
    agrees all
}

@test "the same when the graph was optimized and placed" {
    tf-opt g | tf-place >o
    feed --batch 64 | tf-exec -g o --run eval | tf-show --json >all
    agrees all
}

@test "a score of one's own, and the mean of what is none, weighted by rows" {
    cat >own.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1}}
share = metric.total(Sum(x * x, 0)) / metric.total(Sum(x, 0))
loss = Mean(x, {0})
last = metric.rows(x)
pairs_of = Pack({x, x}, {axis = 1})
entry.eval = {share, loss, last}
END
    tf-graph own.lua >own
    seq 10 >x.csv
    tf-data csv x.csv x=1 --batch 4 >rec
    [ "$(tf-exec -g own --run eval --feed rec | tf-show --json)" = \
        '{"step":3,"share":7,"loss":5.5,"last":[1,2,3,4,5,6,7,8,9,10]}' ]
    run --separate-stderr -64 tf-exec -g own --fetch share,pairs_of --feed rec
    [ "$stderr" = \
        "tf-exec: own: 'pairs_of' is float32[?,2], neither a score (metric...) nor a number" ]
    # without a score each step gives a record
    [ "$(tf-exec -g own --fetch loss --feed rec | tf-show | wc -l)" -eq 3 ]
}

@test "where a step trains, a score is the batch's" {
    tf-graph -o m -e '
        x = Placeholder{dtype = float32, shape = {-1}}
        w = variable{name = "w", shape = {}, init = 1}
        error = metric.mse(x * w, x)
        entry.train = minimize(nn.mse(x * w, 0 * x), optim.sgd{rate = 0.001})'
    seq 10 | tf-data csv - x=1 --batch 4 | tf-exec -g m --run train --fetch error | tf-show --json |
        jq -es 'length == 3 and .[0].error == 0 and .[2].error > 0'
}

@test "a class that there is not, a curve, an average: errors" {
    local call expected
    while IFS='|' read -r call expected; do
        run --separate-stderr -65 tf-graph -e "
            x = Placeholder{dtype = float32, shape = {-1, 3}}
            y = Placeholder{dtype = int32, shape = {-1}}
            entry.eval = $call"
        [[ $stderr = *"$expected"* ]] || { echo "$stderr" && false; }
    done <<'END'
metric.auc(x, y, {curve = "lift"})|metric.auc: curve must be roc or pr, not 'lift'
metric.f1(x, y, {average = "mean"})|metric.f1: average must be binary, macro, micro or weighted
metric.f1(x, y, {averag = "macro"})|metric.f1 has no option 'averag'
metric.f2(x, y)|metric has no field 'f2'; did you mean 'f1'?
metric.mse(x, y)|differ in rank
metric.accuracy(x, x)|must have rank 1
END
    tf-graph -o c -e '
        c = Placeholder{dtype = int32, shape = {-1}}
        y = Placeholder{dtype = int32, shape = {-1}}
        entry.eval = metric.confusion(c, y, {classes = 3})'
    printf '%s\n' c,y 1,2 3,1 | tf-data csv - c=c:int32 y=y:int32 --batch 2 >rec
    run --separate-stderr -65 tf-exec -g c --run eval --feed rec
    [[ $stderr = *UnsortedSegmentSum* ]]
}

@test "rows of weight 0 are as if they were not there, in short last batches too" {
    printf '%s\n' c,y,w 0,0,1 1,0,2 1,1,1 2,2,0 2,1,0 >w.csv
    tf-graph -o c -e '
        c = Placeholder{dtype = int32, shape = {-1}}
        y = Placeholder{dtype = int32, shape = {-1}}
        w = Placeholder{dtype = float32, shape = {-1}}
        local o = {classes = 3, average = "macro", weights = w}
        precision = metric.precision(c, y, o)
        recall = metric.recall(c, y, o)
        f1 = metric.f1(c, y, o)
        accuracy = metric.accuracy(c, y, {weights = w})
        entry.eval = {precision, recall, f1, accuracy}'
    local rows expected # of three rows: (1 + 1/3) / 2, (1/3 + 1) / 2, (1/2 + 1/2) / 2, 2/4
    expected='{"precision":0.667,"recall":0.667,"f1":0.5,"accuracy":0.5}'
    for rows in 1-3 1-5; do
        tf-data csv w.csv c=c:int32 y=y:int32 w=w --rows "$rows" --batch 2 |
            tf-exec -g c --run eval | tf-show --json |
            jq -c '{precision, recall, f1, accuracy} | map_values(. * 1000 | round / 1000)' >got
        [ "$(cat got)" = "$expected" ]
    done
}

@test "a confusion matrix has the names of classes on both sides" {
    printf '%s\n' a,risk 1,low 0,high 1,high 0,high 1,low >p.csv
    tf-data csv p.csv a=a:int32 y=risk:category --fit prep.json --batch 2 >rec
    tf-graph -o c -e '
        a = Placeholder{dtype = int32, shape = {-1}}
        y = Placeholder{dtype = int32, shape = {-1}}
        confusion = metric.confusion(a, y, {classes = 2})
        entry.eval = confusion'
    tf-exec -g c --run eval --feed rec |
        tf-show --csv --matrix --prep prep.json - confusion=y >table
    diff table - <<'END'
label,confusion[high],confusion[low]
high,2,1
low,0,2
END
    tf-exec -g c --run eval --feed rec | tf-show --csv --matrix | tail -n 1 | grep -x 1,0,2
}
