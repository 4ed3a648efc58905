#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Where the key of a job is in memory: whether core files of its processes would contain it.
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    export OMP_NUM_THREADS=1
}

teardown() {
    kill_job run
}

# Reports for each place of the key in a process' memory whether core files leave it out: "dd" in
# VmFlags, madvise(2)'s MADV_DONTDUMP. BYTES: for each piece of so many of its 32 bytes.
places() { # PID [BYTES]
    python3 - "$@" <<'END'
import re, sys
key = open('run/key').read().strip()
n = 2 * int(sys.argv[2]) if len(sys.argv) > 2 else len(key)
pieces = [key[i:i + n] for i in range(0, len(key), n)]
wanted = [piece.encode() for piece in pieces] + [bytes.fromhex(piece) for piece in pieces]
memory = open(f'/proc/{sys.argv[1]}/mem', 'rb', 0)
smaps = open(f'/proc/{sys.argv[1]}/smaps').read()
for block in re.split(r'(?m)^(?=[0-9a-f]+-[0-9a-f]+ )', smaps)[1:]:
    first, end, rights = re.match(r'([0-9a-f]+)-([0-9a-f]+) (\S+)', block).groups()
    left_out = 'dd' in re.search('VmFlags:(.*)', block)[1].split()
    try:
        memory.seek(int(first, 16))
        data = memory.read(int(end, 16) - int(first, 16)) if 'r' in rights else b''
    except (OSError, OverflowError):  # of the kernel, or of a device
        continue
    for _ in range(sum(data.count(text) for text in wanted)):
        print('left out' if left_out else 'dumped')
END
}

@test "core files of a job's processes do not have its key, links or not" {
    local port=$((20000 + RANDOM % 10000)) task
    printf 'task ps:%d 127.0.0.1:%d\n' 0 $port 1 $((port + 1)) >c
    echo "task worker:0 127.0.0.1:$((port + 2))" >>c
    echo 'w = variable{name = "w", shape = {}, init = Const(0.0)}
entry.train = minimize(Square(w - 3), optim.sgd{rate = 0.1})' >m.lua
    tf-graph m.lua >m.tfg
    tf-run -q -c c --steps 100000000 --job run m.tfg 3>&- &
    trained() { tf-ps stats --by worker --job run | finds -E '^worker:0 +[1-9]'; }
    soon 20 trained
    for task in ps-0 ps-1 worker-0; do
        [ "$(places "$(cat "run/$task.pid")" | sort | uniq -c | xargs)" = "1 left out" ]
    done
    tf-run stop --job run
}

@test "who makes the key has nothing of it left when it ends" {
    command -v strace > /dev/null || skip "needs strace"
    echo 'task ps:0 127.0.0.1:0' > c
    strace -qq -o trace -e trace=exit_group -e inject=exit_group:delay_enter=5000000 \
        tf-ps init -c c --job run 3>&- &
    local tracer=$!
    ending() { [[ $(pgrep -P $tracer -x tf-ps) ]] && test -s run/cluster; }
    soon 10 ending
    sleep 0.5
    run places "$(pgrep -P $tracer -x tf-ps)" 8
    [[ $status -eq 0 && -z $output ]]
    wait $tracer
}
