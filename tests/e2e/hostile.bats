#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A job in a hostile network: strangers at the ports of its shards while it trains, and a link
# through a relay that does harm (tests/lib/proxy.c). The job ends as if nothing had happened, or
# with one line that explains why. HARMS=all tries all harms.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run and setup
load ../lib/tools

bats_require_minimum_version 1.5.0

readonly steps=16

setup_file() {
    use_tools
    tools=${PATH%%:*}
    proxy=$(realpath -m "$root/${BUILD:-build}/tests/lib/proxy")
    export tools proxy
    cd "$BATS_FILE_TMPDIR" || return 1
    local shard
    tf-graph "$root/examples/digits.lua" | tf-opt >digits.tfg
    for shard in 0 1; do
        (cd "$root/examples" && ./feed --rows 1-1437 --batch 32 --shard "$shard/2" \
            --steps "$((steps / 2))") >"feed.$shard.rec"
    done
    # half of the data, and the other half once the go file is there
    cat >feed <<'SH'
#!/bin/sh
cat "feed.${TF_SHARD%/*}.rec"
until [ -e "$1" ]; do sleep 0.02; done
exec cat "feed.${TF_SHARD%/*}.rec"
SH
    # bytes of strangers; the first one sends nothing, as a port scan does
    cat >stranger.py <<'PY'
import os, socket, sys
port, what = int(sys.argv[1]), sys.argv[2]
def link():
    return socket.create_connection(("127.0.0.1", port))
if what == "scan":
    for i in range(50):
        link().close()
elif what == "open": # a handshake that is begun and never ended
    all = [link() for i in range(20)]
    for one in all:
        one.sendall(bytes([0x16, 3, 1, 1, 0, 1]))
    sys.stdin.read()
else:
    one = link()
    one.sendall(os.urandom(4000) if what == "random" else
                b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" if what == "http" else
                open(what, "rb").read())
    one.settimeout(10)
    try:
        while one.recv(4096):
            pass
    except ConnectionError:
        pass
PY
    chmod +x feed
    make_tools
    touch go
    run_job calm go
    wait "$tf_run"
    values calm >calm.json
}

# tf-exec waits until the test has laid the link through the relay.
make_tools() {
    local tool
    mkdir bin
    for tool in "$tools"/tf-*; do ln -s "$tool" bin/; done
    rm bin/tf-run bin/tf-exec
    cp "$tools/tf-run" bin/tf-run
    ln -s "$(realpath "$tools/../lib")" lib
    cat >bin/tf-exec <<EOF
#!/bin/sh
until [ -z "\$RELAY" ] || [ -e "\$RELAY" ]; do sleep 0.02; done
exec '$tools/tf-exec' "\$@"
EOF
    chmod +x bin/tf-exec
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    PATH=$BATS_FILE_TMPDIR/bin:$PATH
    export OMP_NUM_THREADS=1 TMPDIR=$BATS_TEST_TMPDIR
    unset TF_JOB TF_CLUSTER RELAY
    set -o pipefail
    children=()
}

teardown() {
    end_pids "${children[@]}"
}

# run_job NAME GO: runs in the background, over TCP, with ports chosen by the system; sets tf_run
run_job() {
    printf 'task %s 127.0.0.1:0\n' ps:0 ps:1 worker:0 worker:1 >"$1.cluster"
    timeout -k 5 60 "$BATS_FILE_TMPDIR/bin/tf-run" -c "$1.cluster" --job "$1" --threads 1 \
        --lease 1s --timeout 8s --save "$1.ck/" digits.tfg -- ./feed "$2" 2>"$1.err" 3>&- &
    tf_run=$!
    children+=("$tf_run")
}

values() { # NAME: the variables, without how often a worker was started
    tf-ckpt export "$1.ck@$steps" "$1.ckpt"
    tf-show --json "$1.ckpt" | grep -v '^{"clock:' | sort
}

port_of() { # JOB TASK
    sed -n "s/^task $2 127.0.0.1:\([1-9][0-9]*\).*/\1/p" "$1/cluster"
}

has_port() {
    [ -n "$(port_of "$@" 2>/dev/null)" ]
}

has_trained() { # JOB ROUNDS
    tf-ps status --job "$1" 2>/dev/null | grep "step=$2 " >/dev/null
}

refused() { # JOB: by ps:1
    tf-ps stats --json --task ps:1 --job "$1" | jq .refused
}

more_refused() { # JOB THAN
    (($(refused "$1") >= $2))
}

@test "strangers at the port of a shard that trains are refused and counted, the job is unharmed" {
    local what port before
    rm -f later
    run_job strange later
    soon 20 has_trained strange $((steps / 2))
    port=$(port_of strange ps:1)
    before=$(refused strange)

    (umask 077 && openssl rand -hex 32 >other.key)
    run --separate-stderr tf-ps list -c strange/cluster --task ps:1 --key-file other.key
    [ "$status" -eq 77 ]
    [ "$stderr" = "tf-ps: ps:1 at 127.0.0.1:$port: other.key is not the key of this cluster" ]
    run -78 --separate-stderr tf-ps list -c strange/cluster --task ps:1 --no-key
    [[ $stderr == "tf-ps: ps:1 at 127.0.0.1:$port: "*key* && $stderr != *$'\n'* ]]
    soon 5 more_refused strange $((before + 2))

    /usr/bin/python3 stranger.py "$port" open 3>&- < <(sleep 20 3>&-) &
    children+=($!)
    /usr/bin/python3 stranger.py "$port" scan
    for what in http random feed.0.rec digits.tfg; do
        /usr/bin/python3 stranger.py "$port" "$what"
    done
    # 50 scans and four strangers, and later those that never end their handshake
    soon 5 more_refused strange $((before + 2 + 54))
    soon 10 more_refused strange $((before + 2 + 54 + 20)) ||
        { tf-ps stats --json --task ps:1 --job strange && false; }

    touch later
    wait "$tf_run"
    values strange | cmp - calm.json
    ! grep -E 'restart|silent|killed' strange.err || false
}

# relayed NAME HARM...: a job in which connections to ps:1 go through the relay
relayed() {
    local name=$1 port
    shift
    export RELAY=$PWD/$name.relay
    run_job "$name" go
    soon 20 has_port "$name" ps:0
    soon 20 has_port "$name" ps:1
    mkfifo "$name.pipe"
    "$proxy" "$@" 127.0.0.1:0 "127.0.0.1:$(port_of "$name" ps:1)" \
        <"$name.pipe" >"$name.address" 3>&- &
    children+=($!)
    exec 6>"$name.pipe"
    soon 5 test -s "$name.address"
    port=$(sed 's/.*://' "$name.address")
    sed "s/^\(task ps:1 127.0.0.1\):[0-9]*/\1:$port/" "$name/cluster" >"$name.new"
    cp "$name.new" "$name/cluster.new"
    mv "$name/cluster.new" "$name/cluster"
    touch "$RELAY"
    status=0
    wait "$tf_run" || status=$?
    exec 6>&-
}

# Either the bits equal those of an undisturbed job, or a line names the link. A handshake with a
# flipped bit looks like one with another key.
ends_well() { # NAME
    echo "$1: status $status"
    cat "$1.err"
    case $status in
    0) values "$1" | cmp - calm.json ;;
    65 | 69 | 76 | 77)
        grep -E "^[0-9T:.-]+Z tf-run: .*ended with exit $status .*(ps|worker):[01] at 127.0.0.1:" \
            "$1.err" ;;
    *) false ;;
    esac
    [ -z "$(find "$1" -name '*.pid' -o -type s -o -type p)" ]
}

@test "a relay that does no harm, or is slow: the same bits" {
    relayed slow -w 20
    [ "$status" -eq 0 ]
    ends_well slow
}

@test "a link that is cut, or falls silent: started again, the same bits" {
    relayed cut -k 2 -c -a 30000
    [ "$status" -eq 0 ]
    ends_well cut
    relayed silent -k 2 -s -a 30000
    [ "$status" -eq 0 ]
    ends_well silent
}

@test "a bit that is flipped on the way" {
    relayed flip -k 2 -f 3 -a 20000
    ends_well flip
}

@test "all the harms, in both directions, early and late" {
    [ "${HARMS-}" = all ] || skip "HARMS=all"
    local way at k harm n=0
    for way in up down; do
        for at in 10 700 40000; do
            for k in 1 3; do
                for harm in -c "-f 5" -s -n -t; do
                    n=$((n + 1))
                    # shellcheck disable=SC2086
                    relayed "all.$n" -d $way -a $at -k $k $harm
                    echo "-d $way -a $at -k $k $harm"
                    ends_well "all.$n"
                done
            done
        done
    done
}

@test "the key of a job is in no core file of its processes, whatever their links are" {
    cat >core.py <<'PY'
# Lists the processes that would leave the key in a core file: in memory without the flag `dd`.
import re, sys
key = bytes.fromhex(open(sys.argv[1]).read().strip())
for pid in sys.argv[2:]:
    with open(f'/proc/{pid}/smaps') as f:
        areas = re.findall(r'^([0-9a-f]+)-([0-9a-f]+) rw.*?^VmFlags:(.*?)$', f.read(), re.M | re.S)
    with open(f'/proc/{pid}/mem', 'rb') as memory:
        for first, last, flags in areas:
            memory.seek(int(first, 16))
            bytes = memory.read(int(last, 16) - int(first, 16))
            if ' dd' not in flags and (key in bytes or key.hex().encode() in bytes):
                print(pid, first)
PY
    (umask 077 && openssl rand -hex 32 >core.key)
    printf 'task ps:%s\n' "0 unix:core" "1 127.0.0.1:0" >core.cluster
    local shard
    for shard in 0 1; do
        tf-ps serve -c core.cluster --task "ps:$shard" --key-file core.key 2>"core.$shard" 3>&- &
        children+=($!)
        soon 10 grep -q ready "core.$shard"
    done
    (: <"/proc/${children[-1]}/mem") 2>/dev/null || skip "may not look at a process"
    [ -z "$(/usr/bin/python3 core.py core.key "${children[@]: -2}")" ]
}
