#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-replicate: which gradients go to shards, and whether shards or all-reduce take less time.
load ../lib/tools
load ../lib/explained

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

@test "a worker pushes K (M+N) or M N, by what takes less time; rows of a table as they are" {
    wide
    factors_taken --mode sync,factors=auto --workers 3
    tf-show --text wide.out >wide.txt
    grep -q '^t/push = AggregatorPush(x, ' wide.txt
    grep -q '^w/gradient/product = MatMul(w/take, w/take:1) {.*"loc:@w".*@?/job:ps ' wide.txt
    explained --mode async,factors=all --workers 3 | grep '^v 400 832 - factors$'
    explained --mode ssp,bound=2 --workers 3 | grep '^w 20000 2400 - gradient$'
    # with the bytes that cross; and the rows of all steps against one gradient
    explained --mode sync,factors=auto --workers 3 --compress bf16 | grep '^w 10000 1200 - factors$'
    sed -i '/^id = /d; /^rows = /d; s/x + rows/x/' wide.lua
    tf-graph wide.lua | tf-opt >wide.tfg
    explained --mode sync,factors=auto --workers 3 --accumulate 8 | grep '^w 2500 2400 - gradient$'
    explained --mode sync,factors=auto --workers 3 --accumulate 7 | grep '^w 2857 2400 - '
    # a layer with an interval of its own goes whole, or in code
    local both=downpour,factors=all,push.w=8
    explained --mode $both --workers 3 | grep '^w 2500 - - gradient:$'
    explained --mode $both --workers 3 | grep '^t 20000 2400 - factors$'
    explained --mode downpour,bits=1,push=2,push.w=8 --workers 3 | grep '^w 2500 - 82 code$'
    # a shard multiplies for all workers
    echo 'op MatMul 1e5' >costs
    explained --mode sync,factors=auto --workers 3 --costs costs | grep '^w 20000 2400 - gradient$'
}

# hosts N SHARDS: workers and shards, each on a host with an adapter of 100 KiB/s, in c
hosts() {
    local k each='task %s:%d %s%d:1\nhost %s%d bandwidth=100k\n'
    # shellcheck disable=SC2059  # the format is the line above
    {
        for ((k = 0; k < $1; k++)); do printf "$each" worker $k w $k w $k; done
        for ((k = 0; k < $2; k++)); do printf "$each" ps $k s $k s $k; done
    } >c
}

# taken MODE: auto.tfg equals that mode's graph
taken() {
    cmp <(tf-show --text auto.tfg | grep -v '^made') \
        <(tf-replicate --mode "$1" -c c --assume 4 wide.tfg | tf-show --text | grep -v '^made')
}

formula() {
    awk "BEGIN { printf \"%.3f\", ${1//$'\n'/ } }"
}

compared() { # MODE OPTION...: MODE's exchange of 4 rows, by mode; its graph is in auto.tfg
    tf-replicate --mode "$1" -c c --assume 4 --explain "${@:2}" wide.tfg 2>&1 >auto.tfg | tail -n 3
}

# near COMPARED MS MS MS: the times of the three modes' exchanges, to a hundredth
near() {
    echo "$1" | awk -v sync="$2" -v allreduce="$3" -v served="$4" '
        function far(a, b) { return a < 0.99 * b || a > 1.01 * b }
        far($2, NR == 1 ? sync : NR == 2 ? allreduce : served) { print; bad = 1 }
        END { exit bad }'
}

@test "auto takes shards or all-reduce, whichever exchange is shorter, and says how long both are" {
    wide
    # 100 KiB/s: one shard receives the rows of 3 workers, and sends them all variables; flows that
    # reach a worker's adapter from several hosts take 1.3 times as long
    hosts 3 1
    got=$(compared auto)
    [[ $got == "sync,factors=auto "*"ms"$'\n'"allreduce,factors=auto "*" ms  taken"$'\n'* ]]
    # read: ids and rows of the table, v, w and t; pushed: the same, but factors of w and t. Two
    # workers push while others read, if that is at most half of what they read: of the factors one
    # worker's remain, of everything else, of which as much is read, two workers'
    near "$got" \
        "$(formula '(3 * (2016 + 20000 * 2) + 2 * 2016 + 2400 * 2) / 102.4')" \
        "$(formula '1.3 * (2 * 16 + 2 * 1600 + 2 * 2400 * 2 + 2 * 400) / 102.4')" \
        "$(formula '1.3 * (2 * 16 + 2 * 1600 + 2 * 2400 * 2 + 2 * 400) / 102.4')" # small: alike
    taken allreduce,factors=auto
    # a code if it is less and allowed
    got=$(compared auto,bits=1)
    near "$got" "$(formula '(3 * 42016 + 2 * 2016 + 660 * 2) / 102.4')" \
        "$(formula '1.3 * (2 * 16 + 2 * 1600 + 880 * 2 + 2 * 400) / 102.4')" \
        "$(formula '1.3 * (2 * 16 + 2 * 1600 + 2 * 660 * 2 + 2 * 400) / 102.4')"
    taken allreduce,factors=auto,bits=1
    # after N updates the times are equal
    [ "$(compared auto,bits=1,after=3 | awk '{ print $2 }')" = "$(awk '{ print $2 }' <<<"$got")" ]
    taken allreduce,factors=auto,bits=1,after=3
    # a table's rows cross n - 1 times among workers; with as many shards as workers, once
    sed -i 's/variable{name = "\([wtv]\)"/variable{name = "\1", trainable = false/' wide.lua
    tf-graph wide.lua | tf-opt >wide.tfg
    hosts 8 8
    [[ $(compared auto) == "sync,factors=auto "*" ms  taken"$'\n'* ]]
    taken sync,factors=auto
}

@test "auto takes shards that only add where they have adapters of their own" {
    echo 'entry.train = minimize(Mean(Square(variable{name = "b", shape = {100, 400}, init = 1}),
        {0, 1}), optim.sgd{rate = 0.1})' >wide.lua
    tf-graph wide.lua | tf-opt >wide.tfg
    hosts 4 4
    got=$(compared auto)
    [[ $got == *$'\n'"sync,update=worker,factors=auto "*" ms  taken" ]]
    near "$got" "$(formula '2.3 * 160000 / 102.4')" "$(formula '1.3 * 1.5 * 160000 / 102.4')" \
        "$(formula '1.3 * 160000 / 102.4')"
    taken sync,update=worker,factors=auto
    # for one mode the last line has the same time
    for mode in sync allreduce sync,update=worker; do
        tf-replicate --mode $mode -c c --explain wide.tfg 2>&1 >one.tfg | tail -n 1
    done >each
    [ "$(cut -d: -f1 each | sort -u)" = "exchange of a step" ]
    near "$(cut -d: -f2 each | sed 's/^/:/')" "$(formula '2.3 * 160000 / 102.4')" \
        "$(formula '1.3 * 1.5 * 160000 / 102.4')" "$(formula '1.3 * 160000 / 102.4')"
    # on workers' hosts, their adapters also send the sums of all
    sed -i '/ps:[23]/d; s/ s\([01]\):1/ w\1:2/; /^host s/d' c
    tf-replicate --mode auto -c c --explain wide.tfg 2>&1 >auto.tfg |
        grep '^allreduce,factors=auto .* ms  taken$'
}

# on_cores N COMPARED: the time of exchanging a table's rows among four workers on N cores. A
# message of 50 us takes a core 60 at each end, a byte 1.5 ns. Each worker sends and receives three
# of each, twice; a shard receives four, or sends them, three times
on_cores() {
    local n=$1 links=1.073741824 rows=1616 among by_shards
    among=$(formula "(2 * (50 + 60 * 24 / $n) +
        $rows / 1e3 * sqrt((1.3 * 3 / $links) ^ 2 + (1.5 * 24 / $n) ^ 2)) / 1e3")
    by_shards=$(formula "(3 * (50 + 60 * 8 / $n) +
        1.625 * $rows / 1e3 * sqrt((4 / $links) ^ 2 + (1.5 * 8 / $n) ^ 2)) / 1e3")
    near "$2" "$by_shards" "$among" "$among"
}

@test "where workers share cores auto takes what needs fewer messages" {
    wide
    sed -i 's/variable{name = "\([wtv]\)"/variable{name = "\1", trainable = false/' wide.lua
    tf-graph wide.lua | tf-opt >wide.tfg
    hosts 4 1
    sed -i 's/bandwidth=100k/bandwidth=1G/' c
    [[ $(compared auto) == *$'\n'"allreduce,factors=auto "*" ms  taken"$'\n'* ]]
    sed -i '/^host/s/$/ within=m/' c
    echo 'host m cores=1' >>c
    on_cores 1 "$(compared auto)"
    taken sync,factors=auto
    sed -i 's/cores=1/cores=2/' c
    on_cores 2 "$(compared auto)"
    # all multiply factors at once: four for two layers, which takes twice as long on two cores
    wide
    echo 'op MatMul 1e6' >costs
    within=$(compared auto --costs costs | awk '/^allreduce/ { print $2 }')
    sed -i '/^host m/d; s/ within=m//' c
    apart=$(compared auto --costs costs | awk '/^allreduce/ { print $2 }')
    echo "$within ms on two cores, $apart ms on four"
    awk -v a="$within" -v b="$apart" 'BEGIN { exit !(a > 1.9 * b) }'
}

@test "auto says why a mode cannot be, and takes the other" {
    wide
    hosts 2 0
    [[ $(compared auto) == "sync,factors=auto "*"-     the cluster has no task of the job ps"* ]]
    [ "$(tf-show --text auto.tfg | grep -c /job:ps)" = 0 ]
    hosts 2 2
    why="--compress is for what is pushed to shards; with --mode allreduce there are none"
    [[ $(compared auto --compress bf16) == *"  taken"*"-     $why"* ]]
}
