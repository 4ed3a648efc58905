#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Collectives of groups: four workers in two groups, of neighbours or two apart. Results equal, bit
# for bit, those that one process computes for each group (collective.lua), and gradients agree with
# differences of the losses.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools
load ../lib/workers

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export TF_CLUSTER=c OMP_NUM_THREADS=1
    for i in 0 1 2 3; do echo "task worker:$i unix:w$i"; done >c
}

teardown() {
    kill_pids "${pids[@]}"
}

graph() { # OPTION...
    tf-graph "$@" "$root/tests/e2e/collective.lua" | tf-opt
}

# check_group OP ROWS COLS RANK RANK: the group's two workers have the results of one process
check_group() {
    local name place ranks=("$4" "$5")
    graph -D "op=$1" -D "rows=$2" -D "cols=$3" -D one=true -D "ranks=$4,$5" |
        TF_CLUSTER='' tf-place | tf-exec --fetch y0,y1,g0,g1 | tf-show --json >one.txt
    for place in 0 1; do
        for name in y g; do
            cmp <(jq -c ".$name" "w${ranks[place]}.txt") <(jq -c ".$name$place" one.txt) || {
                echo "$*: $name of worker ${ranks[place]}"
                return 1
            }
        done
    done
}

# alike STRIDE OP ROWS COLS: the same for both groups; ROWS of the two places
alike() {
    local i rows stride=$1
    shift
    IFS=, read -ra rows <<<"$2"
    graph -D "op=$1" -D "rows=$2" -D "cols=$3" -D group=2 -D "stride=$stride" |
        tf-place -c c | tf-part >parts.tfg
    for i in 0 1 2 3; do
        export "FEED$i=--feed k=$i --feed rows=${rows[i / stride % 2]}"
    done
    among 4 --fetch y,g,slope,rise
    if ((stride == 1)); then
        check_group "$@" 0 1
        check_group "$@" 2 3
    else
        check_group "$@" 0 2
        check_group "$@" 1 3
    fi
    for i in 0 1 2 3; do
        jq -e '.slope as $a | .rise as $b | ($a - $b) / $b | fabs < 1e-6' "w$i.txt" >/dev/null
    done
}

@test "every collective of two groups, and its gradient: one process' bits" {
    while read -r op rows stride; do
        alike "$stride" "$op" "$rows" 2
    done <<'OPS'
broadcast 4,4 1
gather 5,3 2
scatter 0,7 1
reduce_scatter 5,5 2
mean_scatter 4,4 1
all_gather 5,2 2
all_to_all 7,7 1
all_reduce 4,4 2
mean_reduce 4,4 1
rows 3,5 2
mean_rows 1,3 1
part 3,3 2
OPS
}

@test "as well of large values, in blocks" {
    alike 2 all_reduce 11,11 9001
    alike 1 all_gather 15,1 9001
    alike 2 broadcast 7,7 9001
}

@test "several groups and all workers in one graph; a member knows its place" {
    cat >m.lua <<'END'
device("/job:worker/task:*", function()
  local k = Placeholder{dtype = int64, shape = {1}, name = "k"}
  Identity(collective.all_gather(k), {name = "all"})
  Identity(collective.all_gather(k, 2), {name = "near"})
  Identity(collective.all_gather(k, {size = 2, stride = 2}), {name = "far"})
  Identity(collective.broadcast(k, 1, 2), {name = "second"})
  Identity(collective.rank{size = 2, stride = 2}, {name = "place"})
end)
END
    tf-graph m.lua | tf-place -c c | tf-part >parts.tfg
    for i in 0 1 2 3; do export "FEED$i=--feed k=[$i]"; done
    among 4 --fetch all,near,far,second,place -n 3
    for i in 0 1 2 3; do
        near=$((i / 2 * 2))
        far=$((i % 2))
        echo "[0,1,2,3] [$near,$((near + 1))] [$far,$((far + 2))] [$((near + 1))] $((i / 2))"
    done >expected
    for i in 0 1 2 3; do
        jq -c '[.all,.near,.far,.second,.place]' "w$i.txt" | uniq |
            sed 's/^\[//; s/\]$//; s/\],/] /g; s/,\([0-9]\)$/ \1/'
    done | sed 's/\] *\([0-9]\)/] \1/' >got
    diff expected got
}

@test "groups that do not come out even are refused by all" {
    echo 'device("/job:worker/task:*", function()
  Identity(collective.all_reduce(Placeholder{dtype = float32, shape = {2}, name = "x"}, "sum", 3),
           {name = "y"})
end)' >m.lua
    tf-graph m.lua | tf-place -c c | tf-part >parts.tfg
    for i in 0 1 2 3; do export "FEED$i=--feed x=[1,$i]"; done
    run -65 among 4 --fetch y
    for i in 0 1 2 3; do
        grep -q "4 workers are not parted into groups of 3, 1 apart" "w$i.err"
        [ "$(grep -c . "w$i.err")" -eq 1 ]
    done
    echo 'collective.all_gather(Const({1, 2}), {stride = 2})' >bad.lua
    run -65 --separate-stderr tf-graph bad.lua
    [[ $stderr == *"bad.lua:1: collective.all_gather: a group is a number of workers"* ]]
}

# The reduction is in a branch, which each worker takes or not by its feed.
branch() {
    cat >m.lua <<'END'
device("/job:worker/task:*", function()
  local x = Placeholder{dtype = float32, shape = {2}, name = "x"}
  local p = Placeholder{dtype = bool, shape = {}, name = "p"}
  Identity(cond(p, function() return collective.all_reduce(x, "sum", 2) end,
                function() return x end), {name = "y"})
end)
END
    tf-graph m.lua | tf-place -c c | tf-part >parts.tfg
}

@test "a group of which nobody has anything goes on; where one has, it is told who has not" {
    branch
    for i in 0 1 2 3; do
        export "FEED$i=--feed x=[1,$i] --feed p=$([ "$i" -lt 2 ] && echo true || echo false)"
    done
    among 4 --fetch y -n 5
    for i in 0 1; do [ "$(jq -c .y "w$i.txt" | uniq)" = "[2,1]" ]; done
    for i in 2 3; do [ "$(jq -c .y "w$i.txt" | uniq)" = "[1,$i]" ]; done
    export FEED1="--feed x=[1,1] --feed p=false"
    run -65 among 4 --fetch y -n 5
    grep -q "AllReduce.*': worker:1 brings nothing: its input is dead" w0.err
}
