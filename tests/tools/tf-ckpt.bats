#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-ckpt in the shell: its output, its error messages, its exit codes.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    python=/usr/bin/python3
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.txt <<'TEXT'
entry init = ^set, ^count
entry step = ^add, ^tick
x = Placeholder() {dtype=float32, shape=[2]}
v = Variable() {dtype=float32, shape=[2]}
n = Variable() {dtype=int64, shape=[], container="scratch"}
zero = Const() {dtype=float32, value=[0,0]}
none = Const() {dtype=int64, value=0}
one = Const() {dtype=int64, value=1}
set = Assign(v, zero)
count = Assign(n, none)
add = AssignAdd(v, x)
tick = AssignAdd(n, one)
TEXT
    tf-graph --text m.txt >m.tfg
    for steps in 1 2 3; do
        tf-exec -g m.tfg --run step --feed 'x=[1,2.5]' -n $steps --save $steps.ckpt
    done
}

fill() { # STORE
    tf-ckpt init "$1"
    for steps in 1 2 3; do tf-ckpt import $steps.ckpt "$1"; done
}

# One line on stderr, which is or begins with LINE, and nothing on stdout.
refuses() { # STATUS LINE ARGUMENT...
    local wanted=$1 line=$2
    shift 2
    run --separate-stderr tf-ckpt "$@"
    [[ $status -eq $wanted && $stderr == "tf-ckpt: $line"* && ${#stderr_lines[@]} -eq 1 && -z $output ]] ||
        { echo "tf-ckpt $*: $status, $stderr$output" && false; }
}

# Flips a bit of the byte at OFFSET.
flip() { # FILE OFFSET
    local byte
    byte=$(od -An -tu1 -j "$2" -N1 "$1")
    # shellcheck disable=SC2059  # the byte is the format
    printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

@test "a tool that reads streams says what a store is" {
    tf-graph -e 'v = variable{shape = {}, init = 1}' >m.tfg
    tf-exec -q -g m.tfg --run init --save st/
    local hint="(tf-ckpt shows and exports checkpoints)"
    run -65 --separate-stderr tf-show st/
    [ "$stderr" = "tf-show: st/: is a directory $hint" ]
    run -66 --separate-stderr tf-show st@1
    [ "$stderr" = "tf-show: st@1: No such file or directory $hint" ]
}

@test "a store is made by init only; what it holds is listed and shown" {
    run --separate-stderr tf-ckpt list store
    [ "$status" -eq 66 ]
    [ "$stderr" = "tf-ckpt: store: no store there; tf-ckpt init makes one" ]
    run --separate-stderr tf-ckpt import 1.ckpt store
    [ "$status" -eq 66 ]
    fill store
    [ -z "$output" ]
    run tf-ckpt list store
    [ "$(sed -n 1p <<<"$output" | tr -s ' ')" = "STEP SAVED TENSORS SIZE NEW RUN" ]
    [ "$(awk '{print $1, $4, $5, $6}' <<<"$output" | tail -1)" = "3 2 16 B" ]
    [ "$(tf-ckpt list --json store | jq -c '[.step, .tensors, .bytes]' | tail -1)" = "[3,2,16]" ]
    run tf-ckpt show store@2
    [[ $output == "checkpoint  store@2"* ]]
    [ "$(grep -c 'float32\[2\]  *3  *8 B' <<<"$output")" -eq 1 ]
    [ "$(tf-ckpt show --json store@2 | jq -r 'select(.name == "n") | .container')" = scratch ]
    run --separate-stderr tf-ckpt show store@9
    [ "$status" -eq 66 ]
    run --separate-stderr tf-ckpt init store
    [ "$status" -eq 64 ]
}

@test "diff answers as diff(1) does" {
    fill store
    run --separate-stderr tf-ckpt diff store@3 3.ckpt
    [ "$status" -eq 0 ]
    [ -z "$output$stderr" ]
    run --separate-stderr tf-ckpt diff store@1 store
    [ "$status" -eq 1 ]
    [ -z "$stderr" ]
    [ "$output" = "v          5  0.667
scratch:n  2  0.667" ]
    run tf-ckpt diff --json store@1 store
    [ "$(head -1 <<<"$output" | jq -c '[.name, .absolute, .elements]')" = '["v",5,2]' ]
}

@test "one tensor comes out as a record and as .npy" {
    fill store
    [ "$(tf-ckpt cat store@2 v | tf-show)" = "v  float32[2]  2 5" ]
    tf-ckpt cat store v -o v.npy
    [ "$(tf-op Neg v.npy | tf-show)" = "float32[2]  -3 -7.5" ]
    [ "$(tf-ckpt cat store scratch:n | tf-show)" = "scratch:n  int64[]  3" ]
    run --separate-stderr tf-ckpt cat store w -o w.npy
    [ "$status" -eq 66 ]
    [ ! -e w.npy ]
}

@test "other formats, there and back" {
    fill store
    for form in npz safetensors ckpt; do
        tf-ckpt export store@2 x.$form
        tf-ckpt init back-$form
        tf-ckpt import x.$form back-$form --step 2
        tf-ckpt diff store@2 back-$form
    done
    run --separate-stderr tf-ckpt export store x.zip
    [ "$status" -eq 64 ]
    head -c 90 x.safetensors >cut.safetensors
    run --separate-stderr tf-ckpt import cut.safetensors back-npz
    [ "$status" -eq 65 ]
    "$python" -c 'import numpy' 2>/dev/null || skip "needs NumPy"
    [ "$("$python" -c "import numpy; z = numpy.load('x.npz')
print(z['v'].tolist(), z['v'].dtype, z['scratch:n'])")" = "[2.0, 5.0] float32 2" ]
}

@test "policies: what is forgotten is told, and its space given back" {
    fill store
    run tf-ckpt forget store --dry-run --keep-every 2
    [ "$output" = "step 1  to be forgotten
step 2  kept (every)
step 3  kept (last)" ]
    [ "$(tf-ckpt list store | wc -l)" -eq 4 ]
    run tf-ckpt forget store
    [ "$status" -eq 64 ]
    run tf-ckpt forget store --keep-best 1
    [ "$status" -eq 64 ]
    run tf-ckpt forget store --keep-last 1
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    run tf-ckpt prune store --json
    [ "$(jq -c '[.removed_chunks, .kept_chunks]' <<<"$output")" = "[4,2]" ]
    tf-ckpt diff store 3.ckpt
}

@test "copy holds a chunk of a checkpoint in memory, not all of it" {
    local peak
    cat >wide.lua <<'END'
for i = 1, 30 do
    variable{name = "w" .. i, shape = {500, 1000}, init = init.normal{stddev = 1}}
end
entry.train = {Const(0)}
END
    tf-graph wide.lua | tf-exec -q -g - --run train --steps 1 --save wide/ >fetches
    [ "$(tf-ckpt list --json wide | jq .bytes)" -eq 60000000 ]
    tf-ckpt init other
    peak=$(env time -q -f %M tf-ckpt copy wide other 2>&1)
    [ "$peak" -lt 45000 ]
    tf-ckpt verify --data other
    tf-ckpt diff wide other
}

@test "copy brings what the other store lacks" {
    fill store
    tf-ckpt init other
    TF_DRY_RUN=1 tf-ckpt copy store@2 other # is for forget and prune
    tf-ckpt copy store other
    [ "$(tf-ckpt list other | awk 'NR > 1 {print $1}' | xargs)" = "2 1 3" ]
    tf-ckpt diff store@1 other@1
    run --separate-stderr tf-ckpt copy store missing
    [ "$status" -eq 66 ]
}

@test "verify finds a flipped bit and names the tensor; salvage saves the rest" {
    fill store
    run --separate-stderr tf-ckpt verify store --data
    [ "$status" -eq 0 ]
    [ -z "$output$stderr" ]
    tf-ckpt verify store --data=5% --metrics m.prom
    grep -q '^tf_ckpt_damaged_tensors{verb="verify",store="store"} 0$' m.prom
    at=$("$python" -c "import struct
print(open('store/data.mdb','rb').read().rfind(struct.pack('<2f', 3, 7.5)))")
    flip store/data.mdb "$at"
    run --separate-stderr tf-ckpt verify store --data
    [ "$status" -eq 1 ]
    [ "$stderr" = "tf-ckpt: store@3: 'v': chunk 1 of 1: digest differs; newest intact is store@2" ]
    run --separate-stderr tf-ckpt cat store v
    [ "$status" -eq 65 ]
    run --separate-stderr tf-ckpt salvage store x.npz
    [ "$status" -eq 1 ]
    [ "${stderr_lines[0]}" = "tf-ckpt: store@3: 'v': chunk 1 of 1 is lost" ]
    [ "${stderr_lines[1]}" = "tf-ckpt: store@3: 1 of 2 tensors are intact, and in x.npz" ]
    # the root page of the tree: only salvage can read the store then
    root=$("$python" -c "import struct; d = open('store/data.mdb','rb').read()
print(max(struct.unpack_from('<QQQ', d, p + 128)[::-1] for p in (0, 4096))[2])")
    flip store/data.mdb $((root * 4096 + 10))
    run --separate-stderr tf-ckpt list store
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-ckpt: store: data.mdb: damaged: page "* ]]
    run --separate-stderr tf-ckpt verify store
    [ "$status" -eq 1 ]
}

@test "one writer at a time; the others are told who it is" {
    fill store
    exec 9>>store/writer.lock
    flock 9
    run --separate-stderr tf-ckpt prune store
    [ "$status" -eq 75 ]
    [[ $stderr == "tf-ckpt: store: locked by "*"; --lock-wait waits" ]]
    (sleep 0.3; exec 9>&-) &
    exec 9>&-
    tf-ckpt prune store --lock-wait 10s
    tf-ckpt list store >/dev/null
}

@test "wrong usage" {
    run --separate-stderr tf-ckpt
    [ "$status" -eq 64 ]
    run --separate-stderr tf-ckpt lsit store
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-ckpt: there is no verb 'lsit'; did you mean list?" ]
    run --separate-stderr tf-ckpt diff store
    [ "$stderr" = "tf-ckpt: usage: tf-ckpt diff A B" ]
    fill store
    run --separate-stderr tf-ckpt verify store --data=x%
    [ "$status" -eq 64 ]
}

@test "what is no store, or not whole, is named" {
    fill store
    tf-ckpt init other
    echo text >text
    mkdir folder empty rubbish
    : >empty/data.mdb
    head -c 100000 /dev/zero | tr '\0' x >rubbish/data.mdb
    cp -r store cut
    truncate -s 5000 cut/data.mdb
    local verb name
    for verb in "list NAME" "show NAME" "verify NAME" "forget NAME --keep-last 1" "prune NAME" \
        "copy NAME other" "export NAME x.npz" "cat NAME v -o x.npy" "diff NAME store" "import 1.ckpt NAME"; do
        for name in missing folder missing@x; do
            # shellcheck disable=SC2086  # words
            refuses 66 "$name: no store there; tf-ckpt init makes one" ${verb/NAME/$name}
        done
        # shellcheck disable=SC2086
        refuses 66 "store@x: no checkpoint has this tag" ${verb/NAME/store@x}
        local damaged=65
        [[ $verb != verify* ]] || damaged=1
        # shellcheck disable=SC2086
        refuses $damaged "empty: data.mdb: damaged: truncated at byte 0" ${verb/NAME/empty}
        # shellcheck disable=SC2086
        refuses $damaged "cut: data.mdb: damaged: truncated: 5000 of " ${verb/NAME/cut}
        # shellcheck disable=SC2086
        refuses $damaged "rubbish: data.mdb: damaged: page 0 is no meta page" ${verb/NAME/rubbish}
    done
    for name in list verify prune; do
        refuses 66 "text: no store there" $name text
        refuses 64 "store@2: $name takes a store, store, not one of its checkpoints" $name store@2
    done
    for verb in show "copy NAME other" "export NAME x.npz" "cat NAME v -o x.npy" "diff NAME store"; do
        [[ $verb == *NAME* ]] || verb="$verb NAME"
        # shellcheck disable=SC2086
        refuses 66 "store@9: there is no checkpoint of this step" ${verb/NAME/store@9}
        # shellcheck disable=SC2086
        [[ $verb == copy* ]] || refuses 65 "text: not a tf-tools stream" ${verb/NAME/text}
        # shellcheck disable=SC2086
        [[ $verb == copy* ]] || refuses 66 "no.ckpt: No such file or directory" ${verb/NAME/no.ckpt}
    done
    refuses 64 "store: is copied onto itself" copy store store
    refuses 64 "store@1: copy takes a store, store," copy store store@1
    refuses 64 "usage: tf-ckpt list STORE" list ""
    refuses 66 "missing: No such file or directory" salvage missing x.npz
    refuses 65 "rubbish: no manifest is left" salvage rubbish x.npz
    refuses 66 "store@9: no manifest of this step is there" salvage store@9 x.npz
    [[ ! -e x.npz && ! -e x.npy ]]
}

@test "files that cannot be read or written are named, whatever their form" {
    fill store
    local form
    for form in npz safetensors index ckpt; do
        echo rubbish >rubbish.$form
        : >empty.$form
        tf-ckpt export store whole.$form
        head -c $(($(wc -c <whole.$form) / 2)) whole.$form >half.$form
        for name in rubbish empty half; do
            refuses 65 "$name.$form: " import $name.$form store
        done
        refuses 66 "missing.$form: No such file or directory" import missing.$form store
        refuses 66 "whole.$form: no store there; tf-ckpt init makes one" show "whole.$form@3"
        mkdir "folder.$form"
        [[ $form == ckpt ]] || refuses 65 "folder.$form: is a directory" import folder.$form store
        refuses 65 "folder.$form: is a directory" export store folder.$form
        refuses 74 "none/x.$form: No such file or directory" export store none/x.$form
        ln -s /dev/full full.$form
        refuses 74 "full.$form: " export store full.$form
        [[ $stderr == *": No space left on device" ]]
    done
    rm whole.data-00000-of-00001
    refuses 66 "whole.index: 'scratch:n': whole.data-00000-of-00001: No such file" import whole.index store
    refuses 64 "store: its name ends in none of .npz, .safetensors, .index and .ckpt" import store store
    refuses 64 "--step: -3 is negative" import 1.ckpt store --step -3
    for verb in "list store" "show store" "diff store@1 store" "verify store --json" "prune store --json"; do
        # shellcheck disable=SC2086
        run --separate-stderr bash -c "tf-ckpt $verb >/dev/full"
        [ "$status" -eq 74 ]
        [ "$stderr" = "tf-ckpt: stdout: No space left on device" ]
    done
    refuses 74 "/dev/full: No space left on device" verify store --metrics /dev/full
    tf-ckpt verify store --data
}

@test "a rule that is none forgets nothing" {
    fill store
    refuses 66 "store: no checkpoint has a scalar 'acuracy'; nothing was forgotten" \
        forget store --keep-best 3 --by acuracy:max
    refuses 66 "store: no checkpoint has a scalar 'acuracy'; nothing was forgotten" \
        forget store --keep-best 3 --by acuracy
    refuses 64 "--keep-daily: -2 is negative" forget store --keep-last 1 --keep-daily -2
    refuses 64 "forget needs a rule" forget store --keep-last 0
    refuses 64 "--keep-last: 'all' is not a whole number" forget store --keep-last all
    [ "$(tf-ckpt list store --json | wc -l)" -eq 3 ]
}

# Two shards over TCP, with variables; `run` is the job's directory.
start_job() {
    printf 'task %s 127.0.0.1:0\n' ps:0 ps:1 worker:0 >c
    tf-ps init --job run -c c
    cat >model.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 4}}
loss = nn.mse(nn.dense(nn.dense(x, 300, {name = "a"}), 4, {name = "b"}), x)
entry.train = minimize(loss, optim.sgd{rate = 0.01})
LUA
    tf-graph model.lua | tf-opt | tf-place -c c | tf-part >parts.tfg
    for shard in 0 1; do
        timeout 100 tf-ps serve --job run --task ps:$shard 2>$shard.err 3>&- &
    done
    timeout 60 tf-exec -g parts.tfg --job run --task worker:0 --run train --feed 'x=[[1,2,3,4]]' -n 2
}

teardown() {
    kill_job run
    ! mountpoint -q disk || umount disk
}

@test "save: the job and its key, one line each" {
    refuses 64 "which job? --job DIR" save backup
    tf-ckpt init backup
    refuses 66 "job directory none: No such file or directory" save backup --job none
    mkdir -m 700 bare
    refuses 66 "job directory bare: no job runs there (no cluster file)" save backup --job bare
    start_job
    refuses 66 "missing: no store there; tf-ckpt init makes one" save missing --job run
    tf-ckpt save backup --job run
    [ "$(tf-ckpt list --json backup | jq -c '[.step, .shards, .tensors]')" = "[1,2,4]" ]
    chmod 755 run
    refuses 77 "job directory run is open to others: chmod 700 run; newest stays backup@1" \
        save backup --job run
    chmod 700 run
    # as from another host: over links, which need the key
    mkdir aside
    mv run/ps-*.sock aside
    (umask 077 && openssl rand -hex 32 >other.key && echo short >short.key)
    tf-ckpt save backup --job run
    refuses 77 "ps:" save backup --job run --key-file other.key # whichever says so first
    [[ $stderr =~ ps:[01]\ at\ 127\.0\.0\.1:[0-9]+:\ other\.key\ is\ not\ the\ key\ of\ this\ cluster\;\ newest\ stays\ backup@2$ ]]
    refuses 78 "short.key is no key: 64 hexadecimal digits; newest stays backup@2" \
        save backup --job run --key-file short.key
    refuses 66 "no.key: No such file or directory" save backup --job run --key-file no.key
    chmod 644 run/key
    refuses 77 "run/key: others may read this key" save backup --job run
    mv run/key aside
    refuses 66 "run/key: No such file or directory" save backup --job run
    echo rubbish >run/cluster
    refuses 78 "run/cluster:1: 'rubbish' is none of task, host, device and link; newest stays backup@2" \
        save backup --job run
    echo 'task worker:0 127.0.0.1:70' >run/cluster # without shards the worker is asked, by a key
    refuses 66 "run/key: No such file or directory" save backup --job run
    mv aside/key run
    chmod 600 run/key
    refuses 69 "worker:0 at 127.0.0.1:70: " save backup --job run --max-runtime 2s
    tf-ckpt verify backup --data
}

# A save whose other shard gets the signal when it writes what the first one has finished.
strike() { # SIGNAL MAX-RUNTIME
    rm -f trace.txt
    strace -f -qq -o trace.txt -e trace=fdatasync,msync \
        -e inject=fdatasync,msync:delay_enter=1000000:when=1 \
        tf-ckpt save backup --job run --max-runtime "$2" 2>said 3>&- &
    soon 20 test -s trace.txt
    kill "-$1" "$(cat run/ps-1.pid)"
    status=0
    wait $! || status=$?
    cat said
    [[ $status -eq 69 && $(wc -l <said) -eq 1 ]]
}

@test "save: a full disk, locks, shards that go midway" {
    tf-ckpt init backup
    start_job
    tf-ckpt save backup --job run
    if mkdir disk && mount -t tmpfs -o size=500k none disk 2>/dev/null; then
        tf-ckpt init disk/store
        refuses 74 "disk/store/shards/ps-0: " save disk/store --job run
        [[ $stderr == *" more bytes are needed: No space left on device" ]]
        tf-ckpt verify disk/store --data
        umount disk
    fi
    refuses 74 "/dev/full: No space left on device" save backup --job run --metrics /dev/full
    local lock
    for lock in backup backup/shards/ps-1; do
        exec 9>>$lock/writer.lock
        flock 9
        refuses 75 "$lock: locked by " save backup --job run
        [[ $stderr == *"; --lock-wait waits; newest stays backup@2" ]]
        refuses 75 "$lock: locked by " save backup --job run --lock-wait 0.1s
        exec 9>&-
    done
    if strace -qq -o trace.txt -e inject=getppid:error=EIO true; then
        strike STOP 3s
        grep -qE "^tf-ckpt: ps:1 at [^ ]+, incarnation 1: (silent for|no answer in) 3 s, waiting for [^;]+; newest stays backup@2$" said
        kill -CONT "$(cat run/ps-1.pid)"
        strike KILL 10s
        grep -qE "^tf-ckpt: ps:1 at [^ ]+, incarnation 1: connection (closed|reset by peer), waiting for [^;]+; newest stays backup@2$" said
    fi
    kill -9 "$(cat run/ps-1.pid)" || true
    refuses 69 "ps:1 at 127.0.0.1:" save backup --job run
    [[ $stderr == *"; newest stays backup@2" ]]
    tf-ckpt verify backup --data
    tf-ckpt diff backup@1 backup
}

@test "a full disk is 74, and what was there stays" {
    mkdir disk
    mount -t tmpfs -o size=3m none disk 2>/dev/null || skip "may not mount"
    tf-ckpt init disk/store
    tf-ckpt import 1.ckpt disk/store
    tf-op RandomStandardNormal '[600000]' dtype=float32 seed=1 -o big.npy
    "$python" -c 'import numpy' 2>/dev/null || { umount disk; skip "needs NumPy"; }
    "$python" -c "import numpy; numpy.savez('big.npz', w=numpy.load('big.npy'))"
    run --separate-stderr tf-ckpt import big.npz disk/store --step 5
    mine=$status said=$stderr
    tf-ckpt verify disk/store --data
    tf-ckpt diff disk/store 1.ckpt
    umount disk
    [ "$mine" -eq 74 ]
    [[ $said == "tf-ckpt: disk/store: "*" more bytes are needed: No space left on device" ]]
}

@test "a disk that old checkpoints have filled is freed by forget and prune" {
    mkdir disk
    mount -t tmpfs -o size=8m none disk 2>/dev/null || skip "may not mount"
    tf-ckpt init disk/store
    for step in 1 2 3 4 5 6 7 8 9; do
        tf-op RandomStandardNormal '[600000]' dtype=float32 seed=$step -o w.npy
        "$python" -c "import zipfile; zipfile.ZipFile('w.npz', 'w').write('w.npy')"
        run --separate-stderr tf-ckpt import w.npz disk/store --step "$step"
        [ "$status" -eq 0 ] || break
    done
    full=$status said=$stderr
    run tf-ckpt verify disk/store --data
    verified=$status
    run tf-ckpt forget disk/store --keep-last 1
    forgot=$status
    run tf-ckpt prune disk/store
    pruned=$status
    run tf-ckpt import w.npz disk/store --step "$step"
    saved=$status
    run tf-ckpt verify disk/store --data
    again=$status
    umount disk
    [ "$full" -eq 74 ]
    [[ $said == "tf-ckpt: disk/store: "*" more bytes are needed: No space left on device" ]]
    [ "$verified $forgot $pruned $saved $again" = "0 0 0 0 0" ]
}

@test "a store on a disk that may only be read" {
    mkdir disk
    mount -t tmpfs -o size=12m none disk 2>/dev/null || skip "may not mount"
    fill disk/store
    mount -o remount,ro disk
    run tf-ckpt verify disk/store --data
    verified=$status
    run tf-ckpt diff disk/store 3.ckpt
    read=$status
    for command in "import 1.ckpt disk/store" "prune disk/store" "forget disk/store --keep-last 1" \
        "init disk/other"; do
        # shellcheck disable=SC2086  # words
        run --separate-stderr tf-ckpt $command
        codes+=" $status:${#stderr_lines[@]}"
    done
    umount disk
    [ "$verified $read" = "0 0" ]
    [ "$codes" = " 77:1 77:1 77:1 77:1" ]
}

@test "several savers at once, a reader and a prune: all get their turn" {
    tf-ckpt init busy
    for saver in 1 2 3; do
        (for ((i = 0; i < 6; i++)); do
            tf-ckpt import $saver.ckpt busy --step $((10 * saver + i)) --lock-wait 60s || exit
        done; echo ended >saver.$saver) 3>&- &
    done
    for ((i = 0; i < 8; i++)); do
        tf-ckpt verify busy --data
        tf-ckpt prune busy --lock-wait 60s
    done
    wait
    [ "$(cat saver.*)" = $'ended\nended\nended' ]
    [ "$(tf-ckpt list busy --json | wc -l)" -eq 18 ]
    tf-ckpt verify busy --data
    for saver in 1 2 3; do tf-ckpt diff "busy@$((10 * saver + 5))" $saver.ckpt; done
}

@test "a store that is cut while it is in use is one line and 65" {
    strace -qq -o trace.txt -e inject=getppid:error=EIO true || skip "may not trace"
    tf-ckpt init cut
    tf-ckpt import 1.ckpt cut
    cp -r cut whole
    # shellcheck disable=SC2016  # the shell that becomes the reader says its number
    reader=(sh -c 'echo $$ >reader; exec tf-ckpt list cut')
    reads=$(strace -qq -e trace=pread64 "${reader[@]}" 2>&1 >/dev/null | wc -l)
    # the first two are the shell's own; behind the last ones the mapping is used; the reader stands
    # still behind each, however slow the machine is, until the file is cut
    for ((n = 3; n <= reads; n++)); do
        cp whole/data.mdb cut/data.mdb
        rm -f trace.txt
        strace -qq -o trace.txt -e trace=pread64 -e "inject=pread64:signal=STOP:when=$n" \
            "${reader[@]}" >seen 2>said 3>&- &
        for ((i = 0; i < 1000; i++)); do
            ! grep -qs -e '--- stopped by SIGSTOP' trace.txt || break
            sleep 0.02
        done
        truncate -s 0 cut/data.mdb
        kill -CONT "$(cat reader)"
        status=0
        wait $! || status=$?
        [ "$status" -eq 65 ]
        [ "$(wc -l <said)" -eq 1 ]
        cat said >>all
    done
    grep -qx "tf-ckpt: a file in use was cut short, or its disk cannot be read" all
}

@test "files of other programs: NumPy's and the safetensors library's" {
    data=$BATS_TEST_DIRNAME/../data/checkpoint # the same tensors, written by those
    for form in npz safetensors; do
        tf-ckpt init "of-$form"
        tf-ckpt import "$data/small.$form" "of-$form"
    done
    tf-ckpt diff of-npz of-safetensors
    [ "$(tf-ckpt show of-npz | awk 'NR > 6 {print $1, $2}' | sort | xargs)" = \
        "a/b float32[9] b bool[7] f16 float16[3,5] i64 int64[2,0,3] s float64[] u8 uint8[5]" ]
    [ "$(tf-ckpt cat of-npz s | tf-show)" = "s  float64[]  3.25" ]
    [ "$(tf-ckpt cat of-safetensors u8 | tf-show)" = "u8  uint8[5]  0 1 2 3 4" ]
}

@test "TensorFlow's checkpoints, there and back" {
    data=$BATS_TEST_DIRNAME/../data/checkpoint # written by TensorFlow 2.21
    tf-ckpt init store
    tf-ckpt import "$data/small-tf.index" store
    [ "$(tf-ckpt show store | awk 'NR > 6 {print $1, $2}' | xargs)" = "a/b float32[9] b bool[7]\
 bf bfloat16[4] f16 float16[3,5] i64 int64[2,0,3] s float64[] words string[3]" ]
    [ "$(tf-ckpt cat store s | tf-show)" = "s  float64[]  3.25" ]
    tf-ckpt cat store words | tf-show | finds '"one"'
    tf-ckpt export store back.index
    tf-ckpt init other
    tf-ckpt import back.index other
    tf-ckpt diff store other
    rm back.data-00000-of-00001
    run --separate-stderr tf-ckpt import back.index other
    [ "$status" -eq 66 ]
}

@test "Save and Restore are ops of the graph" {
    tf-ckpt init s
    cat >g.txt <<'TEXT'
entry save = ^sv
x = Placeholder() {dtype=float32, shape=[2]}
n = Neg(x)
path = Const() {dtype=string, value="s"}
names = Const() {dtype=string, value=["x","n"]}
sv = Save(path, names, x, n)
name = Const() {dtype=string, value="n"}
r = Restore(path, name) {dt=float32}
TEXT
    tf-graph --text g.txt >g.tfg
    tf-exec -g g.tfg --run save --feed 'x=[1,2]' -n 2 >/dev/null
    [ "$(tf-ckpt list s | awk 'NR > 1 {print $1, $4}' | xargs)" = "1 2 2 2" ]
    [ "$(tf-exec -g g.tfg --fetch r | tf-show)" = "step 1  r -1 -2" ]
    rm -r s
    run --separate-stderr tf-exec -g g.tfg --run save --feed 'x=[1,2]' -o out.rec
    [ "$status" -eq 66 ]
    [[ $stderr == *"node 'sv': Save: s: no store there; tf-ckpt init makes one" ]]
}
