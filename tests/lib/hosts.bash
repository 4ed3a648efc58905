# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools: hosts 0, 1, ... with slow adapters. They are network
# namespaces, which need root and tc.

hosts_net=tf-hosts-$$

inside() { # HOST COMMAND...
    ip netns exec "$hosts_net-$1" "${@:2}"
}

open_hosts() { # NUMBER: without adapters yet; and the file key for what runs there
    local i
    command -v ip tc >/dev/null || skip "needs ip and tc"
    for ((i = 0; i < $1; i++)); do
        ip netns add "$hosts_net-$i" 2>/dev/null ||
            skip "needs the right to make network namespaces"
        inside $i ip link set lo up
    done
    (umask 077; openssl rand -hex 32 >key)
}

join_hosts() { # HOST ADAPTER HOST ADAPTER: by a cable
    ip link add "$2" netns "$hosts_net-$1" type veth peer name "$4" netns "$hosts_net-$3"
}

limit() { # HOST ADAPTER MBIT: which is up then
    inside "$1" ip link set "$2" up
    inside "$1" tc qdisc replace dev "$2" root tbf rate "$3mbit" burst 32kb latency 200ms
}

close_hosts() { # NUMBER
    local i
    for ((i = 0; i < $1; i++)); do ip netns del "$hosts_net-$i" 2>/dev/null || true; done
}
