# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats, things that a test machine lacks: hosts node1 to node4, which are addresses of
# the loopback with a sshd each, and the commands of Slurm. All is in the folder lab/. The hosts'
# names need a private /etc/hosts, and so the right to make a mount namespace.

lab_open() {
    local n key
    unshare -m true 2>/dev/null || skip "needs the right to make a mount namespace"
    lab_sshd=$(command -v sshd || command -v /usr/sbin/sshd) || skip "no sshd"
    lab_port=$((20000 + RANDOM % 20000))
    mkdir -m 700 lab
    mkdir lab/bin lab/tmp
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f lab/host
    ssh-keygen -q -t ed25519 -N '' -f lab/user
    key=$(cut -d' ' -f1,2 lab/host.pub)
    echo '127.0.0.1 localhost' >lab/hosts
    for n in 1 2 3 4; do
        echo "127.0.1.$n node$n" >>lab/hosts
        echo "[node$n]:$lab_port $key" >>lab/known
        printf '%s\n' "ListenAddress 127.0.1.$n:$lab_port" "HostKey $PWD/lab/host" \
            "AuthorizedKeysFile $PWD/lab/user.pub" "PidFile $PWD/lab/sshd.$n" 'UsePAM no' \
            "SetEnv TMPDIR=$PWD/lab/tmp" 'StrictModes no' 'PasswordAuthentication no' \
            >"lab/sshd_config.$n"
    done
    printf '%s\n' 'Host node*' "Port $lab_port" "IdentityFile $PWD/lab/user" \
        "UserKnownHostsFile $PWD/lab/known" 'IdentitiesOnly yes' 'ConnectTimeout 1' >lab/config
    export TF_SSH_OPTIONS="-F $PWD/lab/config"
    lab_make_slurm
}

# An allocation of three nodes that gets its signal after some steps, and is then queued again.
lab_make_slurm() {
    cat >lab/bin/scontrol <<'SH'
#!/bin/sh
[ "$*" = "show hostnames node[1-3]" ] && printf '%s\n' node1 node2 node3
SH
    cat >lab/bin/sbatch <<'SH'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -n) export SLURM_NTASKS="$2" && shift ;;
    --signal=B:TERM@*) signal=TERM ;;
    --requeue) requeue=1 ;;
    --wrap) line=$2 && shift ;;
    *) exit 64 ;;
    esac
    shift
done
export SLURM_JOB_NODELIST='node[1-3]'
sh -c "$line" &
until tf-ps status --job "$LAB_JOB" 2>/dev/null | grep -q 'step=[1-9]'; do sleep 0.02; done
kill -"$signal" $!
wait $!
echo "sbatch: ended with $?"
[ -z "$requeue" ] || exec sh -c "$line"
SH
    chmod +x lab/bin/scontrol lab/bin/sbatch
}

lab_run() { # COMMAND...: where the hosts have their names
    unshare -m sh -c 'mount --bind lab/hosts /etc/hosts && PATH=$PWD/lab/bin:$PATH exec "$@"' \
        sh "$@"
}

lab_start() { # NUMBER: the node can be reached
    local i
    lab_speak
    lab_run "$lab_sshd" -f "$PWD/lab/sshd_config.$1" -E "$PWD/lab/log" 3>&-
    for ((i = 0; i < 400; i++)); do [ -s "lab/sshd.$1" ] && return; sleep 0.05; done
    echo "node$1: sshd did not start" && cat lab/log && false
}

# Until lab_start, the node's address neither accepts nor refuses connections.
lab_silence() { # NUMBER
    /usr/bin/python3 - "127.0.1.$1" "$lab_port" 3>&- <<'PY' &
import socket, sys, time
address = (sys.argv[1], int(sys.argv[2]))
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(address)
listener.listen(0)
waiting = [socket.socket() for _ in range(4)]
for one in waiting:
    one.setblocking(False)
    one.connect_ex(address)
time.sleep(120)
PY
    lab_silent=$!
}

# Ends lab_silence. The address is free once the process has ended, not once it was told to.
lab_speak() {
    [ -n "${lab_silent-}" ] || return 0
    kill "$lab_silent" || true
    wait "$lab_silent" || true
    lab_silent=
}

lab_close() {
    local pid
    lab_speak
    for pid in lab/sshd.?; do
        [ ! -s "$pid" ] || kill "$(cat "$pid")"
    done
}
