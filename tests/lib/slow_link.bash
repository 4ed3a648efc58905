# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools: two workers, each on a host of its own, joined by a slow link.
# Hosts are network namespaces, which need root and tc.

slow_net=tf-slow-$$

inside() { # HOST COMMAND...
    ip netns exec "$slow_net-$1" "${@:2}"
}

# slow_link MBIT: the cluster file c, and the key of both. The test sets pids=() before.
slow_link() {
    local i
    command -v ip tc >/dev/null || skip "needs ip and tc"
    ip netns add "$slow_net-0" 2>/dev/null || skip "needs the right to make network namespaces"
    ip netns add "$slow_net-1"
    ip link add eth0 netns "$slow_net-0" type veth peer name eth0 netns "$slow_net-1"
    for i in 0 1; do
        inside $i ip addr add "10.9.1.$((i + 1))/24" dev eth0
        inside $i ip link set lo up
        inside $i ip link set eth0 up
        inside $i tc qdisc replace dev eth0 root tbf rate "$1mbit" burst 32kb latency 200ms
        echo "task worker:$i 10.9.1.$((i + 1)):7000"
    done >c
    (umask 077; openssl rand -hex 32 >key)
}

slow_link_close() {
    local i
    for i in 0 1; do ip netns del "$slow_net-$i" 2>/dev/null || true; done
}

# step STEPS: what a step of both workers takes of parts.tfg: seconds. Their traces are in t0 and
# t1. They come before what else the machine does, as hosts of their own would.
step() {
    local i workers=()
    for i in 0 1; do
        inside $i nice -n -20 tf-exec -c c --task "worker:$i" -g parts.tfg --key-file key \
            --run train -n "$1" --trace "t$i" >"w$i.rec" 2>"w$i.err" 3>&- &
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
