#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-ckpt from the shell: what it prints, what it says when something is wrong, its exit codes.
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

# Flips a bit of the byte at OFFSET.
flip() { # FILE OFFSET
    local byte
    byte=$(od -An -tu1 -j "$2" -N1 "$1")
    # shellcheck disable=SC2059  # the byte is the format
    printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
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
    [ "$(sed -n 1p <<<"$output" | tr -s ' ')" = "STEP SAVED TENSORS SIZE NEW" ]
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
    [ "$output" = "step 1  forgotten
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

@test "copy brings what the other store lacks" {
    fill store
    tf-ckpt init other
    tf-ckpt copy store@2 other
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
    # the page that the tree begins with: nothing but salvage gets in
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
    reads=$(strace -qq -e trace=pread64 tf-ckpt list cut 2>&1 >/dev/null | wc -l)
    # the last ones of the walk, whereafter the mapping is used, and the first of the manifest
    for ((n = reads - 4; n < reads; n++)); do
        cp whole/data.mdb cut/data.mdb
        strace -qq -o trace.txt -e trace=pread64 -e "inject=pread64:delay_exit=400000:when=$n" \
            tf-ckpt list cut >seen 2>said 3>&- &
        for ((i = 0; i < 100; i++)); do
            [[ ! -f trace.txt || $(wc -l <trace.txt) -lt $((n - 1)) ]] || break
            sleep 0.02
        done
        sleep 0.1
        truncate -s 0 cut/data.mdb
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
    [ "$(tf-ckpt show of-npz | awk 'NR > 5 {print $1, $2}' | sort | xargs)" = \
        "a/b float32[9] b bool[7] f16 float16[3,5] i64 int64[2,0,3] s float64[] u8 uint8[5]" ]
    [ "$(tf-ckpt cat of-npz s | tf-show)" = "s  float64[]  3.25" ]
    [ "$(tf-ckpt cat of-safetensors u8 | tf-show)" = "u8  uint8[5]  0 1 2 3 4" ]
}

@test "TensorFlow's checkpoints, there and back" {
    data=$BATS_TEST_DIRNAME/../data/checkpoint # written by TensorFlow 2.21
    tf-ckpt init store
    tf-ckpt import "$data/small-tf.index" store
    [ "$(tf-ckpt show store | awk 'NR > 5 {print $1, $2}' | xargs)" = "a/b float32[9] b bool[7]\
 bf bfloat16[4] f16 float16[3,5] i64 int64[2,0,3] s float64[] words string[3]" ]
    [ "$(tf-ckpt cat store s | tf-show)" = "s  float64[]  3.25" ]
    tf-ckpt cat store words | tf-show | grep -q '"one"'
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
