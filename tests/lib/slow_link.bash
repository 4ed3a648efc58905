# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools: two workers, each on a host of its own, joined by a slow link.
load ../lib/hosts

# slow_link MBIT: the cluster file c, and the key of both. The test sets pids=() before.
slow_link() {
    local i
    open_hosts 2
    join_hosts 0 eth0 1 eth0
    for i in 0 1; do
        inside $i ip addr add "10.9.1.$((i + 1))/24" dev eth0
        limit $i eth0 "$1"
        echo "task worker:$i 10.9.1.$((i + 1)):7000"
    done >c
}

slow_link_close() {
    close_hosts 2
}

# step STEPS [OPTION...]: prints the seconds that a step of parts.tfg takes both workers. Their
# traces are in t0 and t1. They have priority over other programs, as if on hosts of their own.
step() {
    local i workers=()
    for i in 0 1; do
        inside $i nice -n -20 tf-exec -c c --task "worker:$i" -g parts.tfg --key-file key \
            --run train -n "$1" "${@:2}" --trace "t$i" >"w$i.rec" 2>"w$i.err" 3>&- &
        workers[i]=$!
        pids+=($!)
    done
    for i in 0 1; do wait "${workers[i]}" || { cat "w$i.err"; return 1; }; done
    seconds t0
}

seconds() { # TRACE: of the median step but for the first
    tf-show --json "$1" | jq -s 'map(select(.ns and (has("node") | not)).ns) | .[1:] | sort |
        .[length / 2 | floor] / 1e9'
}
