#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A user's first hour: the sessions of the documents, typed as they stand there, with their output.
# Each section continues in the folder that the first one has made.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    cp -r "$root/examples/." "$root/tests/data/walkthrough/." "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return 1
    set -o pipefail
    tf-graph digits.lua | tf-opt | tf-place > digits.tfg
    ./feed --rows 1-1437 --batch 64 > train.rec
    ./feed --rows 1-1437 --shuffle --batch 64 --epochs 20 |
        tf-exec -g digits.tfg --run train --fetch loss,accuracy --save digits.ckpt > fetches.rec
}

teardown_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    load ../lib/lab
    lab_close
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    set -o pipefail
}

# Runs a shell line; $status, $output and $stderr are those of the whole line.
sh_line() { # STATUS LINE
    run --separate-stderr bash -c "$2"
    printf 'status %s\n--- stdout\n%s\n--- stderr\n%s\n' "$status" "$output" "$stderr"
    [[ $status -eq $1 ]]
}

is() { # WANTED TEXT
    [[ $2 == "$1" ]] || { printf 'wanted: %s\nis:     %s\n' "$1" "$2" && false; }
}

matches() { # REGEX TEXT
    [[ $2 =~ ^$1$ ]] || { printf 'wanted: %s\nis:     %s\n' "$1" "$2" && false; }
}

at_least() { # NUMBER LEAST
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }' || { echo "$1 is less than $2" && false; }
}

teardown() {
    kill_job run
}

# ---- the page, literally ----

@test "docs/walkthrough.md" {
    has_terminal
    cp -r "$root/examples" "$BATS_TEST_TMPDIR/typed"
    cd "$BATS_TEST_TMPDIR/typed" || return 1
    /usr/bin/python3 "$root/tests/lib/page.py" "$root/docs/walkthrough.md"
}

# ---- 1. The first five minutes ----

@test "a script becomes a graph, and a pipe trains it with a live line" {
    sh_line 0 'tf-data csv data/digits.csv.gz x=1-64 y=65:int32 --rows 1-1437 --shuffle --batch 64 --epochs 20 |
        tf-exec -g digits.tfg --run train --fetch loss,accuracy --save a.ckpt | tf-show --follow'
    matches 'step 460/460  loss [0-9.e-]+  accuracy [01](\.[0-9]+)?  [0-9]+ steps/s  0:00 left' "${lines[-1]##*$'\r'}"
    is "" "$stderr"
}

@test "feed is that command, to be typed less often" {
    sh_line 0 'tail -1 feed'
    # shellcheck disable=SC2016
    is 'exec tf-data csv data/digits.csv.gz x=1-64 y=65:int32 "$@"' "$output"
}

@test "the trained net knows images that it has not seen" {
    sh_line 0 './feed --rows 1438- --batch 360 |
        tf-exec -g digits.tfg --run eval --restore digits.ckpt | tf-show'
    matches 'step 1  accuracy 0\.[0-9]+' "$output"
    at_least "${output##* }" 0.95
}

@test "three ways in give the same variables: -g, the graph on stdin, one after the other" {
    tf-graph digits.lua | tf-place | tf-exec --run train --feed train.rec --save one.ckpt
    tf-graph digits.lua | tf-place > plain.tfg
    cat plain.tfg train.rec | tf-exec --run train --save two.ckpt
    tf-exec -g plain.tfg --run train --save three.ckpt < train.rec
    tf-show --json one.ckpt > one.json
    is 14 "$(wc -l < one.json)"
    tf-show --json two.ckpt | cmp - one.json
    tf-show --json three.ckpt | cmp - one.json
}

# ---- 2. Looking into every stage ----

@test "tf-show says what a graph is" {
    sh_line 0 'tf-show digits.tfg'
    matches 'graph   [0-9]+ nodes on 1 device' "${lines[0]}"
    is 'entry   train ^train   eval accuracy   predict class' "${lines[1]}"
    is 'feeds   x float32[?,64]   y int32[?]' "${lines[2]}"
    is 'state   14 variables, 112.6 KiB: 4 trained (37.5 KiB), 10 of the optimizer' "${lines[3]}"
    is 'made    tf-graph 1.0 digits.lua | tf-opt 1.0 | tf-place 1.0' "${lines[4]}"
}

@test "a node is a line of text, with types and the script's line" {
    sh_line 0 "tf-graph digits.lua | tee a.tfg | tf-show --text | grep -E '^(entry t|hidden/(W =|M))'"
    is 'entry train = ^train' "${lines[0]}"
    is 'hidden/W = Variable() {container="", dtype=float32, shape=[64,128], shared_name=""} : float32[64,128] at digits.lua:5' \
        "${lines[1]}"
    is 'hidden/MatMul = MatMul(Div, hidden/W/read) {T=float32, transpose_a=false, transpose_b=false} : float32[?,128] at digits.lua:5' \
        "${lines[2]}"
}

@test "a placed node has a device" {
    sh_line 0 "tf-show --text digits.tfg | grep '^h ='"
    is 'h = Relu(hidden/BiasAdd) {T=float32} @/job:localhost/task:0/device:CPU:0 : float32[?,128] at digits.lua:5' \
        "$output"
}

@test "a graph is edited with sed, and one change is one line of diff" {
    tf-graph digits.lua > a.tfg
    tf-show --text a.tfg | sed '/^adam\/rate =/s/0.003/0.001/' | tf-graph --text > b.tfg
    sh_line 0 "diff <(tf-show --text a.tfg) <(tf-show --text b.tfg) | grep '^[<>]'; true"
    is '< adam/rate = Const() {dtype=float32, value=0.003} : float32[] at digits.lua:10' "${lines[0]}"
    is '> adam/rate = Const() {dtype=float32, value=0.001} : float32[] at digits.lua:10' "${lines[1]}"
    is 2 "${#lines[@]}"
}

@test "gradients and updates are added to an edited graph, and it trains" {
    grep -v '^entry.train' digits.lua | tf-graph - > fwd.tfg
    tf-show --text fwd.tfg | sed 's/ = Relu(/ = Tanh(/' | tf-graph --text |
        tf-grad --minimize loss --optimizer adam > tanh.tfg
    run -1 bash -c "tf-show --text tanh.tfg | grep ' = Relu('"
    sh_line 0 'tf-exec -g tanh.tfg --run train --fetch loss --feed train.rec | tf-show --json | jq .loss'
    at_least "${lines[0]}" "${lines[-1]}"
}

@test "a graph is drawn, a scope as one box" {
    tf-show --dot --depth 1 digits.tfg | dot -Tsvg > digits.svg
    grep -q '>hidden</text>' digits.svg
}

@test "nodes as JSON lines, for jq" {
    sh_line 0 "tf-show --json digits.tfg | jq -r 'select(.op == \"Variable\") | .name + \" \" + .type' | head -1"
    is 'hidden/W float32[64,128]' "$output"
}

@test "feed records in a line each" {
    sh_line 0 'tf-show train.rec | head -1'
    is 'feed 1  x float32[64,64] min 0 max 16 mean 4.88  y int32[64] min 0 max 9 mean 4.75' "$output"
}

@test "a tensor of a stream as .npy, as NumPy reads it" {
    tf-show --npy train.rec x > x.npy
    # the first row of the file
    sh_line 0 "/usr/bin/python3 -c 'import numpy; x = numpy.load(\"x.npy\"); print(x.dtype, x.shape, *x[0])'"
    is "float32 (1437, 64) $(zcat data/digits.csv.gz | grep -m 1 '^[0-9]' | cut -d, -f1-64 |
        sed 's/\([0-9][0-9]*\)\(,\|$\)/\1.0 /g; s/ $//')" "$output"
}

@test "a plan: kernels, order, memory" {
    sh_line 0 "tf-exec -g digits.tfg --run train --feed train.rec --dump-plan | tf-show | sed -n '1,2p; /MatMul/p' | head -3"
    matches 'plan   train  [0-9]+ of [0-9]+ nodes  x float32\[64,64\]  y int32\[64\]  peak [0-9.]+ KiB' \
        "${lines[0]}"
    matches 'ORDER +NODE +KERNEL +BUFFER +BYTES +LIVE' "${lines[1]}"
    matches '[0-9]+ +[A-Za-z0-9/_]+ +[A-Za-z_()+]+ +arena\+[0-9]+ +[0-9]+ +[0-9]+-[0-9]+' \
        "${lines[2]}"
    # the hidden layer's product includes its bias and activation, and has the name of the last of
    # them
    sh_line 0 "tf-exec -g digits.tfg --run train --feed train.rec --dump-plan | tf-show | grep ' h '"
    matches '[0-9]+ +h +fused_[A-Za-z_()+]+ +arena\+[0-9]+ +32768 +[0-9]+-[0-9]+' "${lines[0]}"
    sh_line 0 "tf-exec -g digits.tfg --run train --feed train.rec --dump-plan --without products | tf-show | grep hidden/MatMul"
    matches '[0-9]+ +hidden/MatMul +[a-z_]+ +arena\+[0-9]+ +32768 +[0-9]+-[0-9]+' "${lines[0]}"
}

# ---- 3. One op from the shell ----

@test "one op from the shell, and a pipe of them" {
    sh_line 0 "tf-op MatMul '[[1.0,2],[3,4]]' '[[1.0],[1]]' | tf-show"
    is 'float32[2,1]  3 7' "$output"
    sh_line 0 "tf-op RandomStandardNormal '[4,3]' dtype=float32 seed=7 -o a.npy"
    is "" "$output$stderr"
    sh_line 0 'tf-op MatMul a.npy a.npy transpose_b=true | tf-op Softmax | tf-op Sum - 1 | tf-show'
    matches 'float32\[4\]  (1 ?){4}' "$output"
}

# ---- 4. What goes wrong, and what it says ----

@test "an error of the script names its line, and the next stage names the stage" {
    sh_line 65 'tf-graph wrong.lua | tf-show'
    is "" "$output"
    is "tf-graph: wrong.lua:7: node 'output/MatMul': MatMul: inner dimensions 128 and 64 differ: float32[?,128] x float32[64,10]
tf-show: stdin: stopped by tf-graph" "$stderr"
}

@test "the cause is printed once, down a whole pipe" {
    sh_line 65 'set -o pipefail; tf-graph wrong.lua | tf-opt | tf-place | tf-exec --run predict | tf-show'
    is 1 "$(grep -c 'inner dimensions' <<< "$stderr")"
    for pair in tf-opt:tf-graph tf-place:tf-opt tf-exec:tf-place tf-show:tf-exec; do
        grep -qx "${pair%:*}: stdin: stopped by ${pair#*:}" <<< "$stderr"
    done
}

@test "a cut stream is not taken for a whole one" {
    sh_line 65 'tf-graph digits.lua | head -c 9000 | tf-opt > cut.tfg'
    is 'tf-opt: stdin: truncated after 9000 bytes: no trailer, the stage before did not finish' "$stderr"
    sh_line 65 'tf-show cut.tfg'
    is 'tf-show: cut.tfg: stopped by tf-opt' "$stderr"
}

@test "a conflict of devices names both ends and the way between them" {
    tf-graph m.lua > pinned.tfg
    sh_line 65 'tf-place pinned.tfg > placed.tfg'
    is "tf-place: pinned.tfg: 'W' on /job:ps/task:0 (m.lua:3) and 'm' on /job:ps/task:1 (m.lua:8) must share a device: W -> W/slot -> m" \
        "$stderr"
}

@test "a loss that is NaN stops the training with its step and node; --check finds the origin" {
    tf-graph steep.lua | tf-opt | tf-place > steep.tfg
    sh_line 65 './feed --batch 64 2>feed.err | tf-exec -g steep.tfg --run train --save steep.ckpt'
    matches "tf-exec: steep\.tfg: step [0-9]+: node 'loss/check' \(steep\.lua:9\): CheckNumerics: loss is NaN; nothing saved; --check finds the origin" \
        "$stderr"
    [[ ! -e steep.ckpt && ! -s feed.err ]]
    sh_line 65 './feed --batch 64 2>feed.err | tf-exec -g steep.tfg --run train --save steep.ckpt --check'
    matches "tf-exec: steep\.tfg: step [0-9]+: node 'Log' \(steep\.lua:8\): Log: result is -Inf at \[[0-9]+,[0-9]\] of float32\[64,10\]; nothing saved" \
        "$stderr"
    [[ ! -e steep.ckpt ]]
}

@test "a feed that is missing is named, with all that is needed" {
    tf-show --npy train.rec x > x.npy
    sh_line 66 'tf-exec -g digits.tfg --run train --feed x=x.npy'
    is "tf-exec: digits.tfg: node 'y' (digits.lua:4): not fed; --run train needs x float32[?,64], y int32[?]" \
        "$stderr"
}

@test "a terminal gets no binary" {
    has_terminal
    sh_line 64 'script -qec "tf-graph digits.lua" /dev/null'
    is 'tf-graph: will not write a binary stream to a terminal; try: tf-graph digits.lua | tf-show' \
        "${output%$'\r'}"
}

# ---- 5. An optimizer of one's own ----

@test "an optimizer written by a user trains" {
    sed 's/optim.adam/require "lion"/' digits.lua > mine.lua
    tf-graph mine.lua | tf-opt | tf-place > lion.tfg
    sh_line 0 'tf-show lion.tfg'
    is 'state   8 variables, 75.1 KiB: 4 trained (37.5 KiB), 4 of the optimizer' "${lines[3]}"
    ./feed --rows 1-1437 --shuffle --batch 32 --epochs 20 |
        tf-exec -g lion.tfg --run train --save lion.ckpt
    sh_line 0 './feed --rows 1438- --batch 360 | tf-exec -g lion.tfg --run eval --restore lion.ckpt |
        tf-show --json | jq .accuracy'
    at_least "$output" 0.93
}

@test "the script beside the examples is that one" {
    cmp <(sed 's/optim.adam/require "lion"/' digits.lua) lion-digits.lua
}

# ---- 6. Distributed: four terminals, over TCP with a key ----

@test "four terminals: shards and workers over TCP, with a key" {
    port=$((20000 + RANDOM % 20000))
    cat > digits.cluster << EOF
task  ps:0      127.0.0.1:$port  device=CPU:0 memory=1G
task  ps:1      127.0.0.1:$((port + 1))  device=CPU:0 memory=1G
task  worker:0  127.0.0.1:$((port + 2))  device=CPU:0
task  worker:1  127.0.0.1:$((port + 3))  device=CPU:0
link  *  *      bandwidth=2G latency=50us
EOF
    (umask 077; openssl rand -hex 32 > digits.key); export TF_KEY_FILE=digits.key
    sh_line 0 'tf-graph digits.lua | tf-opt | tf-replicate --mode sync |
        tf-place -c digits.cluster --report | tf-part --report > parts.tfg'
    grep -qE '^hidden/W +/job:ps/task:[01]/device:CPU:0 +variable, ' <<< "$stderr"
    grep -qE '^hidden/MatMul +/job:worker/task:\*/device:CPU:0 +one in each of 2 workers' <<< "$stderr"
    grep -qE '^tf-part: [34] graphs, [0-9]+ tensors cross, (at least )?[0-9.]+ KiB a step(; [0-9]+ times order only)?$' <<< "$stderr"
    for shard in 0 1; do
        timeout 100 tf-ps serve -c digits.cluster --task ps:$shard 2> ps-$shard.err 3>&- &
    done
    for worker in 1 0; do
        ./feed --rows 1-1437 --shuffle --batch 32 --epochs 2 --shard $worker/2 |
            timeout 60 tf-exec -g parts.tfg -c digits.cluster --task worker:$worker --run train \
                --fetch loss 3>&- | tf-show --follow > $worker.out 3>&- &
        workers[worker]=$!
    done
    wait_each "${workers[0]}" "${workers[1]}"
    grep -x "tf-ps: ps:0: ready on 127.0.0.1:$port" ps-0.err
    matches 'step 46(/46)?  loss [0-9.]+ .*' "$(tail -1 0.out | tr '\r' '\n' | tail -1)"

    # 13. Off the loopback
    (umask 077; openssl rand -hex 32 > other.key)
    sh_line 77 'tf-ps list -c digits.cluster --key-file other.key'
    matches "tf-ps: ps:[01] at 127.0.0.1:[0-9]+: other.key is not the key of this cluster" "$stderr"
    sh_line 0 'tf-ps list -c digits.cluster | wc -l'
    is 15 "$output"
    sh_line 0 'tf-ps stop -c digits.cluster'
}

# ---- 13. Off the loopback ----

@test "a shard over TCP wants a key, and says how to make one" {
    unset TF_KEY_FILE
    echo 'task ps:0 localhost:7000' > lab.cluster
    sh_line 78 'tf-ps serve -c lab.cluster --task ps:0'
    is "tf-ps: ps:0: localhost:7000 is TCP: --key-file FILE is needed; to make one: (umask 077; openssl rand -hex 32 > FILE)" \
        "$stderr"
}

# ---- 9. Cron ----

# A line of the crontab as cron runs it: silent and 0.
cron() { # LINE
    local command=${1#* * * * * }
    grep -Fxq -- "$1" "$root/scripts/cron/crontab" || { echo "not in the crontab: $1" && false; }
    run --separate-stderr sh -c "${command//'\%'/%}" < /dev/null
    is "0 " "$status $output$stderr"
}

steps_are() { # LEAST
    tf-ps status --job run --json | jq -es "map(.version) | max >= $1"
}

saves_are() { # LEAST
    tf-ckpt list --json backup | jq -es "length >= $1"
}

@test "cron saves a running job, keeps, verifies and drills in silence; what is wrong is news" {
    ln -s . digits # where its lines go to
    cp "$root/scripts/cron/restore-drill" .
    tf-graph digits.lua | tf-opt |
        timeout -k 5 120 tf-run --ps 2 --workers 2 --mode sync --run train --fetch loss,accuracy --job run --lease 60s \
            -- ./feed --rows 1-1437 --shuffle --batch 32 --epochs 20000 2> job.err 3>&- &
    job=$!
    sh_line 0 'tf-ckpt init backup'
    soon 60 steps_are 600
    cron '*/15 * * * *  cd digits && test -e run/cluster && tf-ckpt save backup --job run --lock-wait 60s --max-runtime 10m'
    soon 20 steps_are $(($(tf-ckpt list --json backup | jq .step) + 1))
    cron '*/15 * * * *  cd digits && test -e run/cluster && tf-ckpt save backup --job run --lock-wait 60s --max-runtime 10m'
    saves_are 2
    cron '10 3 * * *    cd digits && tf-ckpt forget backup --keep-last 8 --keep-daily 14 --keep-best 3 --by accuracy && tf-ckpt prune backup'
    cron '30 3 * * *    cd digits && tf-ckpt verify backup --data=5\% --metrics backup.prom'
    cron '45 3 * * *    cd digits && ./restore-drill'
    grep -q '^tf_ckpt_checkpoints{verb="verify",store="backup"} 2$' backup.prom
    is true "$(cat drill.out)"
    sh_line 0 'tail -2 restore-drill'
    is './feed --rows 1438- --batch 360 | tf-exec -g digits.tfg --run eval --restore backup | tf-show --json |' \
        "${lines[0]}"
    # shellcheck disable=SC2016
    is '  jq -es '\''.[0].accuracy > 0.95'\'' > drill.out || { echo "restore drill of backup failed" >&2; exit 1; }' \
        "${lines[1]}"

    # a stopped shard
    kill -STOP "$(cat run/ps-1.pid)"
    sh_line 69 'tf-ckpt save backup --job run'
    matches 'tf-ckpt: ps:1 at [^ ]+: no hello in [0-9]+ s, gave up after 30 s; newest stays backup@[0-9]+' "$stderr"
    kill_job run
    wait "$job" || true

    # a flipped bit in the older one
    read -r old new <<< "$(tf-ckpt list --json backup | jq .step | xargs)"
    shard=$(tf-ckpt show "backup@$old" | awk '$1 == "hidden/W" { print $6 }')
    tf-ckpt cat "backup@$old" hidden/W -o old.npy
    at=$(/usr/bin/python3 -c "import sys
data, value = (open(f, 'rb').read() for f in sys.argv[1:])
print(data.find(value[-32768:]) + 1000)" "backup/shards/$shard/data.mdb" old.npy)
    printf '\377\376\375' | dd of="backup/shards/$shard/data.mdb" bs=1 seek="$at" conv=notrunc status=none
    sh_line 1 'tf-ckpt verify backup --data'
    is "tf-ckpt: backup@$old: 'hidden/W': chunk 1 of 1 in $shard: digest differs; newest intact is backup@$new" \
        "$stderr"
    sh_line 0 './restore-drill'

    # a job that has ended, a missing disk
    rm -f run/cluster
    run --separate-stderr sh -c 'cd digits && test -e run/cluster && tf-ckpt save backup --job run'
    is "1 " "$status $output$stderr"
    mv backup mounted
    sh_line 66 'tf-ckpt verify backup --data=5% --metrics backup.prom'
    is "tf-ckpt: backup: no store there; tf-ckpt init makes one" "$stderr"
    sh_line 1 './restore-drill'
    is "tf-exec: backup: No such file or directory
tf-show: stdin: stopped by tf-exec
restore drill of backup failed" "$stderr"
}

@test "the units of systemd do what the lines of the crontab do" {
    units=$root/scripts/systemd
    for file in "$units"/*.service; do
        sed -n 's/^ExecStart=//p; s/^ExecCondition=//p' "$file" | sed 's/%%/%/g; s,^%h/%I/,./,'
    done | sort > units.txt
    sed -n 's/^[*0-9].*cd digits && //p' "$root/scripts/cron/crontab" |
        sed 's/\\%/%/g; s/ && /\n/g' | sort | diff - units.txt
    ! command -v systemd-analyze || systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' "$units/tf-ckpt-save@.timer")" \
        "$(sed -n 's/^OnCalendar=//p' "$units/tf-ckpt-night@.timer")"
}

# ---- 10. Checkpoints, and resuming bit for bit ----

@test "the checkpoints of a job are listed, compared, taken apart" {
    tf-graph digits.lua | tf-opt |
        timeout -k 5 120 tf-run --ps 2 --workers 2 --mode sync --run train --fetch loss,accuracy --save ckpt/ --save-every 100 \
            -- ./feed --rows 1-1437 --shuffle --batch 32 --epochs 20 3>&-
    # shellcheck disable=SC2016
    sh_line 0 'tf-ckpt list ckpt | sed -n '\''1p;$p'\'
    matches 'STEP  SAVED                TENSORS  SIZE       NEW        loss +accuracy' "${lines[0]}"
    matches '460   20[0-9-]{8} [0-9:]{8}  14       11[23]\.[0-9] KiB  1[01][0-9]\.[0-9] KiB  - +-' "${lines[1]}"
    # no step has computed the last variables' loss
    sh_line 0 'tf-ckpt list ckpt | grep "^400 "'
    matches '400   .* KiB  [0-9.]+ +[01](\.[0-9]+)?' "${lines[0]}"
    sh_line 0 'tf-ckpt diff ckpt@400 ckpt@460 | grep hidden/W'
    matches 'hidden/W +0\.[0-9]+ +[0-9.]+' "${lines[0]}"
    sh_line 0 'tf-ckpt cat ckpt@460 output/b -o b.npy; tf-ckpt export ckpt@460 digits.safetensors'
    is "$(tf-ckpt cat ckpt output/b | tf-show | sed 's/^output.b  //')" "$(tf-op Identity b.npy | tf-show)"
    grep -q '"hidden/W":{"dtype":"F32","shape":\[64,128\],' digits.safetensors
}

@test "training that is killed goes on, to the bits of one that never was" {
    sh_line 0 'cat train'
    # shellcheck disable=SC2016
    is './feed --rows 1-1437 --shuffle --batch 64 --epochs 20 | tf-exec -g digits.tfg --run train --save $1/ --save-every 100 --resume' \
        "$output"
    sh_line 0 'sh train a'
    # a busy machine may save nothing within 0.1 s
    for time in 0.1 0.15 0.2 0.3 0.4 0.6 0.8 1.2 1.6; do
        rm -rf b
        # until all of them are gone: a killed process finishes its current write
        timeout -s KILL "$time" sh train b | cat > /dev/null || true
        step=$(tf-ckpt list --json b 2> /dev/null | jq .step | tail -1) || true
        [ -z "$step" ] || break
    done
    sh_line 0 'sh train b'
    # saves that a busy machine left out may be printed after it
    is "tf-exec: b: resumed at step $step; $step feed records passed over" "${stderr%%$'\n'*}"
    sh_line 0 'tf-ckpt diff a@460 b@460'
    is "" "$output$stderr"
}

# ---- 11. Where the time goes ----

@test "a trace says which ops took the time, and what nodes cost when they are placed" {
    sh_line 0 './feed --rows 1-1437 --batch 64 | tf-exec -g digits.tfg --run train --trace trace.rec > /dev/null'
    is "" "$stderr"
    sh_line 0 'tf-show trace.rec | head -3'
    matches 'trace   23 steps  median [0-9.]+ (us|ms|s)  p90 [0-9.]+ (us|ms|s)  in kernels [0-9]+%  [0-9]+ threads?' \
        "${lines[0]}"
    matches 'OP +TIME +SHARE +CALLS +EACH +SLOWEST' "${lines[1]}"
    matches '[A-Za-z0-9+]+ +[0-9.]+ (us|ms|s) +[0-9]+% +[0-9]+ +[0-9.]+ (us|ms|s) +[^ ]+' "${lines[2]}"
    echo 'task localhost:0 127.0.0.1:0' > digits.cluster
    sh_line 0 './feed --rows 1-1437 --batch 64 | tf-exec -g digits.tfg --run train --trace trace.rec --without all > /dev/null'
    sh_line 0 'tf-show --costs trace.rec > digits.costs; tf-place -c digits.cluster --costs digits.costs digits.tfg | tf-show --text'
    grep -q '^node hidden/MatMul [0-9]' digits.costs
    grep -q '^hidden/MatMul = .* @/job:localhost/task:0/device:CPU:0 ' <<< "$output"
}

# ---- 12. Answers from a pipe ----

@test "each line is answered as it comes" {
    zcat data/digits.csv.gz | sed -n 1,3p > rows.csv
    : > new.csv
    mkfifo answers
    sleep 60 3>&- &
    user=$!
    tail -f --pid=$user new.csv 3>&- | tf-data csv - x=1-64 --batch 1 3>&- |
        tf-exec -g digits.tfg --run predict --restore digits.ckpt 3>&- | tf-show > answers 3>&- &
    exec 5< answers
    n=0
    while IFS= read -r row; do
        n=$((n + 1))
        echo "$row" >> new.csv
        read -r -t 10 answer <&5
        is "step $n  class ${row##*,}" "$answer"
    done < rows.csv
    exec 5<&-
    kill $user
}

# ---- 14. ssh and Slurm ----

@test "the same line over ssh, with a node that comes late, and in an allocation that is requeued" {
    load ../lib/lab
    lab_open
    for node in 1 2 3; do lab_start $node; done
    lab_silence 4
    export TF_PORT=$((lab_port + 1)) LAB_JOB=lab/job OMP_NUM_THREADS=1
    rm -rf ckpt # of the sessions before
    cat > lab.cluster << EOF
task  ps:0      node1:$((lab_port + 1))
task  ps:1      node2:$((lab_port + 1))
task  worker:0  node1:$((lab_port + 2))
task  worker:1  node2:$((lab_port + 2))
task  worker:2  node3:$((lab_port + 1))
task  worker:3  node4:$((lab_port + 1))
EOF
    (umask 077; openssl rand -hex 32 > lab.key)
    lab_run timeout -k 5 100 bash -c 'tf-run -c lab.cluster --key-file lab.key --mode sync --run train --save ckpt/ --resume digits.tfg -- ./feed --rows 1-1437 --shuffle --batch 16 --epochs 2' \
        2> lab/err 3>&- &
    run_there=$!
    waiting='^[0-9T:.-]+Z tf-run: 5 of 6 ready; waiting for worker:3 on node4: ssh: [Cc]onnection timed out, [0-9]+ s left$'
    for ((i = 0; i < 400; i++)); do grep -qE "$waiting" lab/err && break; sleep 0.1; done
    lab_start 4
    status=0
    wait $run_there || status=$?
    cat lab/err
    is 0 $status
    grep -E "$waiting" lab/err
    for worker in 0 1 2 3; do grep -E "^worker:$worker +[0-9]+ +46 +46 +0 +0 +done" lab/err; done
    matches '46 .*' "$(tf-ckpt list ckpt | tail -1)"

    status=0
    lab_run timeout -k 5 200 bash -c 'sbatch -n 6 --signal=B:TERM@120 --requeue --wrap "exec tf-run --ps 2 --workers 4 --mode sync --run train --save slurm/ --job lab/job --resume digits.tfg -- ./feed --rows 1-1437 --shuffle --batch 16 --epochs 60"' \
        > lab/out 2> lab/err 3>&- || status=$?
    cat lab/out lab/err
    is 0 $status
    is 'sbatch: ended with 143' "$(cat lab/out)"
    grep -E 'ps:0: restored from slurm@[0-9]+' lab/job/ps-0.err
    matches '1380 .*' "$(tf-ckpt list slurm | tail -1)"
}
