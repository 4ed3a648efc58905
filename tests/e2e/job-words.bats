#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The words that a user types for a job reach its processes as typed; words that cannot are reported
# before anything starts.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    cat >m.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1}}
w = variable{name = "w", shape = {}, init = 0}
loss = nn.mse(w * OnesLike(x), x)
entry.train = minimize(loss, optim.sgd{rate = 0.5})
END
    tf-graph m.lua >m.tfg
    printf '%s\n' 1 0 1 0 1 100 >x.csv
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

feed=(tf-data -q csv x.csv x=1 --batch 2)

quick() { # OPTION...: a job of a shard and a worker
    timeout -k 5 60 tf-run --ps 1 --workers 1 -q "$@" m.tfg -- "${feed[@]}" 3>&- >/dev/null
}

@test "folders with a backslash, a quote, a blank or a newline in their names" {
    local name
    for name in 'a\b' "it's" 'two words' $'two\nlines' '$HOME' '-n'; do
        quick --save "./$name/" --job "./$name.job" --fetch w
        [[ $(tf-ckpt list --json "./$name") == *'"step":3'* ]]
        [ "$(tf-show --json "./$name.job/worker-0.rec" | wc -l)" = 3 ]
        quick --save "./$name/" --job "./$name.job" --mode sync --resume
    done
}

@test "standard streams that are closed" {
    timeout -k 5 60 tf-run --ps 1 --workers 1 -q m.tfg -- "${feed[@]}" <&- 3>&- >/dev/null
    timeout -k 5 60 tf-run --ps 1 --workers 1 -q m.tfg -- "${feed[@]}" >&- 3>&-
    timeout -k 5 60 tf-run --ps 1 --workers 1 --save st/ m.tfg -- "${feed[@]}" <&- >&- 2>&- 3>&-
    [[ $(tf-ckpt list --json st) == *'"step":3'* ]]
}

@test "a parent that reads to the end of stderr before it waits does so" {
    /usr/bin/python3 -c 'import subprocess
said = subprocess.run(["tf-run", "none.tfg"], capture_output=True, timeout=20).stderr
assert said == b"tf-run: none.tfg: No such file or directory\n", said'
}

@test "a directory whose sockets would have too long a path is named with it" {
    local long
    long=$PWD/$(printf '%0100d' 0)
    run -78 --separate-stderr tf-run --job "$long" m.tfg -- "${feed[@]}"
    why=' bytes, and the path of a socket at most 107'
    [[ $stderr == *"job directory: $long/ps-0.sock: has "*"$why" ]]
    [[ $stderr != *$'\n'* ]]
}

@test "--save-every takes steps and times, with shards and without" {
    local mode
    cat >endless <<'END'
#!/bin/sh
exec tf-data -q csv x.csv x=1 --batch 2 --epochs 10000000
END
    chmod +x endless
    for mode in sync async allreduce; do
        rm -rf st
        timeout -k 5 60 tf-run --workers 2 --mode "$mode" --save st/ --save-every 0.2s --job job \
            -q m.tfg -- ./endless 3>&- >/dev/null 2>err &
        soon 30 eval '[ "$(tf-ckpt list --json st 2>&1 | wc -l)" -ge 3 ]'
        tf-run stop --job job
    done
    for every in often 0 -3 0s 1e999 99999999999999999999; do
        run -64 --separate-stderr tf-run --save st/ --save-every "$every" m.tfg -- ./endless
        [[ $stderr == *"'$every' is neither a number of steps below 2^63 nor a time like 30s" ]]
        run -64 --separate-stderr tf-ps serve --save st/ --save-every "$every"
        [[ $stderr == *"'$every' is neither a number of steps below 2^63 nor a time like 30s" ]]
    done
}

@test "--dry-run for other hosts prints what a shell takes" {
    mkdir bin
    cat >bin/ssh <<'END'
#!/bin/sh
host=$1
shift
echo "$host" >>"$BATS_TEST_TMPDIR/reached"
cd / && TF_HERE=$host exec sh -c "$*"
END
    chmod +x bin/ssh
    PATH=$PWD/bin:$PATH
    printf '%s\n' 'task ps:0 127.0.0.1:0' 'task worker:0 hosta:7102' 'task worker:1 hosta:7103' >c
    tf-run -c c --dry-run --job 'the job' m.tfg -- "${feed[@]}" >commands
    [ "$(grep -c '^ssh hosta ' commands)" = 2 ]
    [ "$(grep -c '^tar ' commands)" = 1 ]
    sh -n commands
    # every line but the shard's, with a program that prints its arguments
    printf '#!/bin/sh\nprintf "%%s," "$@"; echo "$TF_HERE"; wc -c\n' >bin/tf-exec
    chmod +x bin/tf-exec
    sed -i "s|PATH=\$PATH:|PATH=$PWD/bin:\$PATH:|" commands
    grep -v tf-ps commands | sh >said
    cat said
    [ "$(grep -c -- ",--threads,[1-9][0-9]*,hosta$" said)" = 2 ]
    [ "$(grep -cE '^[1-9][0-9]+$' said)" = 2 ] # what they are fed
    [ "$(sort -u reached)" = hosta ]
}

@test "steps that make no whole push are told: they count for nothing" {
    quick --accumulate 3 2>err
    [ ! -s err ]
    quick --accumulate 2 2>err
    why='1 of its steps, the last, as 2 make a push: they count for nothing'
    [[ "$(cat err)" == 2*"Z tf-run: worker:0: not pushed: $why" ]]
    quick --mode downpour,push=2 2>err
    [[ "$(cat err)" == 2*"Z tf-run: worker:0: not pushed: $why" ]]
    run -64 --separate-stderr quick --accumulate 4 --steps 3
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-run: --accumulate 4: --steps 3 make no push: nothing would be trained" ]
}

@test "a mode of shards without any is refused, and the mode without shards named" {
    run -64 --separate-stderr tf-run --ps 0 --workers 2 --mode async m.tfg
    [ "$stderr" = "tf-run: --ps 0: --mode async wants shards; --mode allreduce needs none" ]
    echo 'task worker:0 unix:w0' >workers
    run -78 --separate-stderr tf-run -c workers m.tfg
    why='the cluster has no task ps:0: --mode sync wants shards; --mode allreduce needs none'
    [ "$stderr" = "tf-run: $why" ]
}
