#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Checkpoints survive the accidents of jobs: kill -9 at each system call, calls that fail, a
# training run that is killed and resumed. CHECKPOINT_SOAK=N does N times as much.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

soak=${CHECKPOINT_SOAK:-1}
# The system calls that change a store; tests/unit/checkpoint/store_calls tries every call, without
# the tools.
calls=(pwrite64 msync)
errors=(pwrite64:ENOSPC fallocate:ENOSPC msync:EIO)
if ((soak > 1)); then
    calls+=(fallocate fdatasync fsync flock fcntl mmap ftruncate openat munmap close)
    errors+=(fdatasync:EIO flock:EIO)
fi

setup_file() {
    use_tools
    export OMP_NUM_THREADS=2
    cd "$BATS_FILE_TMPDIR" || return 1
    cp "$root/examples/digits.lua" "$root/examples/feed" . && cp -r "$root/examples/data" .
    tf-graph digits.lua | tf-opt | tf-place >digits.tfg
    for epochs in 1 2 3; do
        ./feed --rows 1-640 --batch 64 --epochs $epochs |
            tf-exec -g digits.tfg --run train --save "$((epochs * 10)).ckpt" >/dev/null
    done
    tf-ckpt init base
    tf-ckpt import 10.ckpt base
    tf-ckpt import 20.ckpt base
    tf-ckpt init base-copy
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
}

# Sets `command` to the VERB's run on the store `s`.
command_of() { # VERB
    case $1 in
    save) command=(tf-ckpt import 30.ckpt s) ;;
    forget) command=(tf-ckpt forget s --keep-last 1) ;;
    prune) command=(tf-ckpt prune s) ;;
    copy) command=(tf-ckpt copy base s-copy) ;;
    init) command=(tf-ckpt init s-new) ;;
    esac
}

fresh() { # VERB
    rm -rf s s-copy s-new
    cp -r base s
    cp -r base-copy s-copy
    [[ $1 != prune ]] || tf-ckpt forget s --keep-last 1
}

# In any case every listed checkpoint is whole, the newest is the one saved last, and the store can
# be written.
is_sound() { # VERB
    local newest
    tf-ckpt verify s --data || return 1
    newest=$(tf-ckpt list s --json | jq -s '.[-1].step')
    tf-ckpt diff s "$newest.ckpt" || return 1
    [[ $newest == 20 || ($1 == save && $newest == 30) ]] || return 1
    tf-ckpt verify s-copy --data || return 1
    for step in $(tf-ckpt list s-copy --json | jq .step); do
        tf-ckpt diff "s-copy@$step" "$step.ckpt" || return 1
    done
    tf-ckpt import 30.ckpt s && tf-ckpt diff s 30.ckpt && tf-ckpt prune s-copy
}

# How often the command makes a system call.
count_calls() { # CALL
    strace -f -qq -e trace="$1" -o trace.txt "${command[@]}" >/dev/null 2>&1 || true
    wc -l <trace.txt
}

# All of n calls with soak, otherwise some; the first ones belong to the loader.
some_of() { # N
    local n=$1 step=$(($1 / (3 * soak) + 1))
    seq "$n" "-$step" 1
}

# With threads there may be fewer calls than when they were counted.
kill_at() { # CALL N
    local status=0
    strace -f -qq -o trace.txt -e "inject=$1:signal=KILL:when=$2" "${command[@]}" \
        >/dev/null 2>&1 || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 137 ]
    tries=$((tries + 1)) killed=$((killed + (status == 137)))
}

was_killed_mostly() {
    echo "$killed of $tries were killed"
    [ "$((10 * killed))" -ge "$((9 * tries))" ]
}

strace_works() {
    strace -qq -o trace.txt -e inject=getppid:error=EIO true 2>/dev/null
}

@test "kill -9 at the system calls of a save, a forget, a prune and a copy" {
    strace_works || skip "may not trace"
    local killed=0 tries=0
    for verb in save forget prune copy; do
        command_of $verb
        for call in "${calls[@]}"; do
            fresh $verb
            for n in $(some_of "$(count_calls "$call")"); do
                fresh $verb
                kill_at "$call" "$n"
                is_sound $verb || { echo "killed at $call $n of $verb"; return 1; }
            done
        done
    done
    was_killed_mostly
}

@test "a system call that fails is one line and no damage" {
    strace_works || skip "may not trace"
    for verb in save prune copy; do
        command_of $verb
        for call in "${errors[@]}"; do
            fresh $verb
            for n in $(some_of "$(count_calls "${call%:*}")"); do
                fresh $verb
                run --separate-stderr strace -f -qq -o trace.txt \
                    -e "inject=${call%:*}:error=${call#*:}:when=$n" "${command[@]}"
                [[ $status -eq 0 || ($status -eq 74 && ${#stderr_lines[@]} -eq 1) ]] &&
                    is_sound $verb ||
                    { echo "$call $n of $verb: $status $stderr"; return 1; }
            done
        done
    done
}

@test "a store is made whole or not at all" {
    strace_works || skip "may not trace"
    command_of init
    local killed=0 tries=0
    for call in openat fsync fdatasync pwrite64 rename mkdir; do
        fresh init
        for n in $(some_of "$(count_calls $call)"); do
            fresh init
            kill_at "$call" "$n"
            [[ -d s-new ]] || tf-ckpt init s-new
            tf-ckpt import 10.ckpt s-new
            tf-ckpt diff s-new 10.ckpt
        done
    done
    was_killed_mostly
}

# The whole run, from wherever it is, until it is killed. `hold` is put before the feed.
hold=()
train() { # STORE [COMMAND...]
    "${hold[@]}" ./feed --rows 1-640 --shuffle --batch 16 --epochs 10 |
        "${@:2}" tf-exec -g digits.tfg --run train --fetch loss --save "$1/" --save-every 10 \
            --resume >/dev/null
}

@test "training that is killed at random and resumed has the bits of training that never was" {
    train whole
    for ((i = 0; i < 3 * soak; i++)); do
        rm -rf cut
        # its feeds wait after step 200, so it runs, or saves, when it is killed
        for at in 10 0 10; do # once it has saved, or at any moment
            rm -f go pid
            hold=("$root/tests/lib/halfway" "$PWD/go")
            train cut sh -c 'echo $$ >pid; exec "$@"' sh 3>&- &
            soon 30 test -s pid
            [ "$at" -eq 0 ] || soon 30 has_reached cut "$at"
            sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
            kill -9 "$(cat pid)"
            touch go
            status=0
            wait $! || status=$?
            [ "$status" -eq 137 ]
        done
        hold=()
        train cut
        tf-ckpt diff whole@400 cut@400
    done
}

@test "SIGTERM saves, and the run goes on from there" {
    rm -rf termed
    mkfifo feeds
    # opened for reading and writing, so that the feeds do not end
    tf-exec -g digits.tfg --run train --feed feeds --fetch loss --save termed/ --resume \
        4<>feeds >seen 3>&- &
    ./feed --rows 1-640 --shuffle --batch 16 --epochs 5 >feeds
    for ((i = 0; i < 200; i++)); do [[ ! -s seen ]] || break; sleep 0.05; done
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 143 ]
    [ "$(tf-ckpt list termed | wc -l)" -eq 2 ]
    train termed
    [ -d whole ] || train whole
    tf-ckpt diff whole@400 termed@400
}

@test "the place in the data is kept, and feeds that are too short are told" {
    rm -rf short
    ./feed --rows 1-640 --shuffle --batch 64 --epochs 2 |
        tf-exec -g digits.tfg --run train --save short/ --resume >/dev/null
    [ "$(tf-ckpt show short | grep -c '^also  *place')" -eq 1 ]
    run --separate-stderr bash -c './feed --rows 1-640 --shuffle --batch 64 --epochs 3 |
        tf-exec -g digits.tfg --run train --save short/ --resume'
    [ "$stderr" = "tf-exec: short: resumed at step 20; 20 feed records passed over" ]
    run --separate-stderr bash -c './feed --rows 1-640 --shuffle --batch 64 --epochs 1 |
        tf-exec -g digits.tfg --run train --save short/ --resume'
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-exec: short: resumed at step 30, but the feeds end after step 10"* ]]
}

@test "restoring takes the newest that is intact, and says so" {
    fresh save
    at=$(/usr/bin/python3 -c "import sys
data, part = open('s/data.mdb', 'rb').read(), open('20.ckpt', 'rb').read()
i = part.find(b'output/W')
print(next(data.find(part[k:k + 64]) for k in range(i + 200, len(part), 512)
           if data.find(part[k:k + 64]) >= 0))")
    printf '\377\376\375' | dd of=s/data.mdb bs=1 seek="$at" conv=notrunc status=none
    run --separate-stderr bash -c './feed --rows 641-700 --batch 60 |
        tf-exec -g digits.tfg --run eval --restore s | tf-show'
    [ "$status" -eq 0 ]
    [[ $stderr == "tf-exec: s@20: 'output/W': chunk 1 of 1: digest differs; restored s@10" ]]
    run --separate-stderr bash -c './feed --rows 641-700 --batch 60 |
        tf-exec -g digits.tfg --run eval --restore s@20'
    [ "$status" -eq 65 ]
}

@test "names are mapped, and what does not fit is named" {
    sed 's/"hidden"/"first"/; /entry.train/d' digits.lua | tf-graph - | tf-opt >renamed.tfg
    run --separate-stderr bash -c './feed --rows 641-700 --batch 60 |
        tf-exec -g renamed.tfg --run eval --restore base'
    [ "$status" -eq 65 ]
    [[ $stderr == *"base@20: variable 'first/W' is not in it"* ]]
    a=$(./feed --rows 641-700 --batch 60 |
        tf-exec -g renamed.tfg --run eval --restore base --restore-as first/=hidden/ | tf-show)
    b=$(./feed --rows 641-700 --batch 60 |
        tf-exec -g digits.tfg --run eval --restore base | tf-show)
    [ "$a" = "$b" ]
}
