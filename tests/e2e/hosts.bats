#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-run on a cluster of several machines: over ssh (to a sshd of our own, on another address of the
# loopback), described by TF_CONFIG and Slurm, over TCP with a key.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    cp -r "$root/examples/." "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return 1
    tf-graph digits.lua | tf-opt >digits.tfg
    start_sshd >sshd.out 2>&1 || true
}

# Without privileges, with keys of its own only.
start_sshd() {
    local sshd port=$((20000 + RANDOM % 20000))
    sshd=$(command -v sshd || command -v /usr/sbin/sshd) || return 1
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    mkdir -m 700 ssh there
    ssh-keygen -q -t ed25519 -N '' -f ssh/host
    ssh-keygen -q -t ed25519 -N '' -f ssh/user
    printf '%s\n' "ListenAddress 127.0.0.2:$port" "HostKey $PWD/ssh/host" \
        "AuthorizedKeysFile $PWD/ssh/user.pub" "PidFile $PWD/ssh/pid" \
        "SetEnv TMPDIR=$PWD/there" 'UsePAM no' \
        'StrictModes no' 'PasswordAuthentication no' >ssh/sshd_config
    printf '[127.0.0.2]:%s %s\n' "$port" "$(cut -d' ' -f1,2 ssh/host.pub)" >ssh/known
    printf '%s\n' 'Host 127.0.0.2' "Port $port" "IdentityFile $PWD/ssh/user" \
        "UserKnownHostsFile $PWD/ssh/known" 'IdentitiesOnly yes' >ssh/config
    "$sshd" -f "$PWD/ssh/sshd_config" -E "$PWD/ssh/log" 3>&-
    soon 5 test -s ssh/pid
    ssh -F ssh/config -o BatchMode=yes 127.0.0.2 true
}

teardown_file() {
    [ ! -s "$BATS_FILE_TMPDIR/ssh/pid" ] || kill "$(cat "$BATS_FILE_TMPDIR/ssh/pid")"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR TF_SSH_OPTIONS="-F $BATS_FILE_TMPDIR/ssh/config"
    job=$BATS_TEST_TMPDIR/job
    port=$((20000 + RANDOM % 20000))
}

# a shard and a worker here, a shard and a worker there
two_hosts() {
    ssh -F ssh/config -o BatchMode=yes 127.0.0.2 true 2>/dev/null || skip "no sshd of our own"
    printf 'task %s\n' "ps:0 127.0.0.1:$port" "ps:1 127.0.0.2:$((port + 1))" \
        "worker:0 127.0.0.1:$((port + 2))" "worker:1 127.0.0.2:$((port + 3))" \
        >"$BATS_TEST_TMPDIR/c"
    line=(timeout -k 5 90 tf-run -c "$BATS_TEST_TMPDIR/c" --fetch loss --job "$job"
        --save "$BATS_TEST_TMPDIR/ck/" "$@" digits.tfg
        -- ./feed --rows 1-1437 --shuffle --batch 32 --epochs "${epochs:-20}")
}

command_lines() { # of all processes
    cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'
}

# Processes on the other host have a folder of their own there.
no_agents() {
    ! compgen -G "there/tf-run.*" >/dev/null
}

@test "two hosts: trained as on one, the key is in no command line, nothing is left" {
    two_hosts
    "${line[@]}" 2>err 3>&- &
    local tf_run=$!
    soon 40 test -s "$job/worker-1.rec"
    grep -Exq '[0-9a-f]{64}' "$job/key"
    ! command_lines | grep -F -f "$job/key" || false
    wait "$tf_run"
    grep -E '^worker:1 +[0-9]+ +460 +460 +0 +0 +done' err
    [ "$(tf-show "$job/worker-1.rec" | tail -1 | cut -c1-9)" = "step 460 " ]
    no_agents
    timeout 60 tf-run --ps 2 --workers 2 --save "$BATS_TEST_TMPDIR/here/" digits.tfg 3>&- \
        -- ./feed --rows 1-1437 --shuffle --batch 32 --epochs 20
    # except for the clock's records of workers: every start of one has a number of its own
    tf-ckpt diff "$BATS_TEST_TMPDIR/ck@460" "$BATS_TEST_TMPDIR/here@460" >differs || [ $? = 1 ]
    ! grep -v '^clock:' differs || false
    [ "$(tf-ckpt show "$BATS_TEST_TMPDIR/ck@460" | grep -c hidden/)" -gt 0 ]
}

@test "a worker on another host is killed, and started again there" {
    two_hosts
    "${line[@]}" 2>err 3>&- &
    local tf_run=$!
    soon 40 test -s "$job/worker-1.rec"
    kill -9 "$(cat there/tf-run.*/worker-1.pid)"
    wait "$tf_run"
    grep -E '^[0-9T:.-]+Z tf-run: worker:1 .* killed by signal 9 at step [0-9]+; started again' err
    grep -E '^worker:1 +[0-9]+ +460 +460 +0 +1 +done' err
}

@test "kill -9 of tf-run ends what runs on another host" {
    epochs=2000
    two_hosts
    "${line[@]:4}" 2>err 3>&- &
    local tf_run=$! pids
    soon 40 test -s "$job/worker-1.rec"
    pids=$(cat there/tf-run.*/*.pid)
    [ "$(wc -w <<<"$pids")" -eq 2 ]
    kill -9 "$tf_run"
    # shellcheck disable=SC2086
    soon 20 eval '! kill -0 '$pids' 2>/dev/null'
    soon 10 no_agents
}

@test "a host that does not answer is named, and waited for as long as was said" {
    two_hosts --timeout 3s
    sed -i 's/127.0.0.2:\([0-9]*\)$/127.0.0.3:\1/' "$BATS_TEST_TMPDIR/c"
    run --separate-stderr "${line[@]}" 3>&-
    [ "$status" -eq 69 ] || { echo "$status: $stderr"; false; }
    waits='[0-3] of 4 ready; waiting for .* on 127.0.0.3: ssh: .* refused, [0-9] s'
    grep -E "^[0-9T:.-]+Z tf-run: $waits" \
        <<<"$stderr"
}

@test "TF_CONFIG names the cluster" {
    export TF_CONFIG='{"cluster": {"ps": ["127.0.0.1:'$port'"],
        "worker": ["127.0.0.1:'$((port + 1))'", "127.0.0.1:'$((port + 2))'"]},
        "task": {"type": "worker", "index": 0}}'
    run --separate-stderr timeout 60 tf-run --job "$job" digits.tfg 3>&- \
        -- ./feed --rows 1-1437 --batch 32 --epochs 1
    [ "$status" -eq 0 ]
    [[ $stderr =~ worker:1\ +[0-9]+\ +23\ +23\ +0\ +0\ +done ]]
    ! [[ $stderr =~ ps:1 ]] || false
}

@test "a Slurm allocation is the cluster" {
    mkdir "$BATS_TEST_TMPDIR/bin"
    cat >"$BATS_TEST_TMPDIR/bin/scontrol" <<'SH'
#!/bin/sh
[ "$1 $2 $3" = "show hostnames node[1-3]" ] && printf '%s\n' node1 node2 node3
SH
    chmod +x "$BATS_TEST_TMPDIR/bin/scontrol"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH SLURM_JOB_NODELIST='node[1-3]' TF_PORT=7000 \
        tf-run --ps 2 --workers 4 --dry-run --job "$job" digits.tfg -- ./feed >commands
    cat >wanted <<'TEXT'
task ps:0 node1:7000 device=CPU:0
task ps:1 node2:7000 device=CPU:0
task worker:0 node3:7000 device=CPU:0
task worker:1 node1:7001 device=CPU:0
task worker:2 node2:7001 device=CPU:0
task worker:3 node3:7001 device=CPU:0
TEXT
    diff <(grep ^task "$job/cluster") wanted
    [ "$(grep -c '^ssh node[123] ' commands)" -eq 6 ]
}
