#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Six hosts in a line, joined by links of 100 Mbit/s: network namespaces, which need root and tc. A
# chain takes no longer than its schedule allows, has B bytes over each link each way, and is faster
# than sums that each host's parts are sent to.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools
load ../lib/hosts

bats_require_minimum_version 1.5.0

mbit=100
elements=2097152 # 8 MiB, in 128 blocks of 64 KiB

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    open_hosts 6
    export TF_CLUSTER=c OMP_NUM_THREADS=1
    open_line
}

teardown() {
    kill_pids "${pids[@]}"
    close_hosts 6
}

# Host i is 10.9.0.i+1; its link to the one before is called left, the other one right.
open_line() {
    local i k side
    for i in 0 1 2 3 4 5; do
        inside $i ip addr add "10.9.0.$((i + 1))/32" dev lo
        inside $i sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
        ((i == 5)) || join_hosts $i right $((i + 1)) left
    done
    for i in 0 1 2 3 4 5; do
        ((i == 0)) || limit $i left $mbit
        ((i == 5)) || limit $i right $mbit
        for k in 0 1 2 3 4 5; do
            ((k == i)) && continue
            side=right
            ((k > i)) || side=left
            inside $i ip route add "10.9.0.$((k + 1))/32" dev $side src "10.9.0.$((i + 1))" \
                scope link
        done
        # each answers for those behind it
        inside $i sh -c 'for d in /proc/sys/net/ipv4/conf/*; do
            echo 1 >$d/proxy_arp; echo 0 >$d/rp_filter; done'
        echo "task worker:$i 10.9.0.$((i + 1)):7000"
    done >c
    for ((i = 0; i < 5; i++)); do echo "link worker:$i worker:$((i + 1)) bandwidth=12M"; done >>c
}

# Bytes that went over each link, to the right and to the left
count() {
    local i
    for i in 0 1 2 3 4; do
        inside $i cat /sys/class/net/right/statistics/tx_bytes
        inside $((i + 1)) cat /sys/class/net/left/statistics/tx_bytes
    done
}

# step SCHEDULE STEPS: nanoseconds of the quickest step are in the file quickest, bytes that each
# link had of one in bytes. The workers come before what else the machine does, as hosts of their
# own would.
step() {
    local i
    cat >m.lua <<END
device("/job:worker/task:*", function()
  local x = Fill(Const({$elements}, {dtype = int32}), Const(0.5, {dtype = float32}))
  local sum = AllReduce({x}, {reductions = {"sum"}, schedule = "$1"})
  Identity(Gather(sum, Const({7}, {dtype = int32})), {name = "y"})
end)
END
    tf-graph m.lua | tf-place -c c | tf-part >parts.tfg
    count >before
    for i in 0 1 2 3 4 5; do
        inside $i nice -n -20 tf-exec --task "worker:$i" -g parts.tfg --key-file key --fetch y \
            -n "$2" --trace "trace$i" >"w$i.rec" 2>"w$i.err" 3>&- &
        workers[i]=$!
        pids+=($!)
    done
    for i in 0 1 2 3 4 5; do wait "${workers[i]}" || { cat "w$i.err"; return 1; }; done
    count >after
    paste before after | awk -v n="$2" '{ print ($2 - $1) / n }' >bytes
    tf-show --json trace0 | jq -s 'map(select(.op == "AllReduce"))' >reduced.json
    jq -r 'map(.start) | [.[1:], .[:-1]] | transpose | map(.[0] - .[1]) | min' \
        reduced.json >quickest
}

@test "a chain over a line takes the time of its rounds, and M over each link each way" {
    step chain 9
    cat quickest bytes
    chain=$(cat quickest)
    awk -v b=$((4 * elements)) '
        $1 < b || $1 > 1.07 * b { print "link " NR ": " $1; bad = 1 }
        END { exit bad || NR != 10 }' bytes
    # with their headers and acknowledgements, and nine rounds more than there are blocks
    awk -v t="$chain" -v mbit=$mbit '{ if ($1 > most) most = $1 }
        END { bound = most * 8 / (mbit * 1e6) * 137 / 128 * 1e9
              print t / 1e9, bound / 1e9, t / bound; exit t > 1.1 * bound }' bytes
    step direct 3
    cat quickest bytes
    jq -n --argjson chain "$chain" --argjson direct "$(cat quickest)" '$direct > 2 * $chain' |
        grep -x true
}
