#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-top: a row for each task of a job, rates between two tables, and the task that others wait for.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

teardown() {
    kill_job run
}

# A job in which worker 1 gets a record only every 0.1 s.
job_runs() { # MODE
    tf-graph -o m.tfg -e 'x = Placeholder{name = "x", dtype = float32, shape = {-1, 4}}
        w = variable{name = "w", shape = {4, 1}, init = 0.0}
        loss = Mean(Square(MatMul(x, w) - 1.0), {0, 1})
        entry.train = minimize(loss, optim.sgd{rate = 0.01})'
    printf '1,2,3,4\n%.0s' {1..4000} >rows.csv
    cat >feed <<'END'
#!/bin/sh
case $TF_SHARD in
1/*) while read -r line; do echo "$line"; sleep 0.1; done <rows.csv | tf-data csv - x=1-4 ;;
*) tf-data csv rows.csv x=1-4 --epochs 0 ;;
esac
END
    chmod +x feed
    timeout 120 tf-run --ps 1 --workers 2 --mode "$1" --job run m.tfg -- ./feed 2>run.err 3>&- &
    soon 60 eval '[[ $(tf-run status --job run 2>&1) == *worker:1*ready* ]]'
    soon 60 jq -e '.step > 2' run/run.json
}

@test "a table has all tasks, their clocks go on, and the slow one is named" {
    job_runs sync
    timeout 60 tf-top --job run --interval 3s --count 2 >top
    [ "$(grep -c '^job: running' top)" = 2 ]
    awk 'length > 80 { exit 1 }' top
    for task in ps:0 worker:0 worker:1; do
        [ "$(grep -c "^$task  *ready " top)" = 2 ]
    done
    # in the second table, each clock is the first plus what its rate gives
    awk '/^worker:0 +ready/ && n++ == 0 { before = $4 }
        /^worker:0 +ready/ { rate = $5; more = $4 - before; waits = $7 }
        END { exit !(n == 2 && more > 2 && rate > more / 12 && rate < more / 2.9 && waits > 50)
        }' top
    awk '/^worker:1 +ready/ { if (n++) exit !($7 < 50) }' top
    grep -E '^worker:0 waits for worker:1: [0-9]+% of its time, which itself waits [0-9]+%$' top
    awk '/^ps:0/ && n++ { exit !($8 ~ /^[0-9.]+[BKM]$/) }' top
    tf-run stop --job run
}

@test "it ends with the job, and says how that ended" {
    job_runs async
    timeout 60 tf-top --job run --interval 0.2s >top 2>err &
    local top=$!
    soon 30 grep -q '^job: running' top
    tf-run stop --job run
    wait "$top"
    grep -q '^job: over (TERM), step .* exit 143' top
    [ ! -s err ]
    timeout 20 tf-top --job run | grep '^job: over (TERM)'
}

# The figures of one name in FILE: the labels except for the job's, and the value.
figures() { # NAME [FILE]
    sed -n "s/^$1{job_dir=\"run\",*\(.*\)} \([0-9.e+]*\)$/\1 \2/p" "${2-job.prom}"
}

@test "--prometheus: each figure has its type, counters go on, and the end is told" {
    job_runs sync
    timeout 60 tf-top --job run --prometheus one.prom --count 1 >out
    [ ! -s out ]
    [ -z "$(find . -name '*.new')" ]
    # each line is a figure, and its name's type comes before it
    awk '/^# TYPE/ { type[$3] = $4; next } /^# HELP/ { next }
        !match($0, /^[a-z_]+/) || !(substr($0, 1, RLENGTH) in type) || !/} [0-9.e+]+$/ { exit 1 }
        /_total/ != (type[substr($0, 1, RLENGTH)] == "counter") { exit 1 }' one.prom
    [ "$(figures tf_job_running one.prom)" = " 1" ]
    [ "$(figures tf_task_ready one.prom | xargs)" = \
        "task=ps:0 1 task=worker:0 1 task=worker:1 1" ]
    [ "$(figures tf_worker_clock one.prom | wc -l)" = 2 ]
    timeout 20 tf-top --job run --interval 0.2s --prometheus job.prom 2>err &
    local top=$!
    went_on() {
        awk -v a="$(figures tf_job_step one.prom)" -v b="$(figures tf_job_step)" \
            -v c="$(figures tf_task_in_bytes_total one.prom | awk '/ps:0/ { print $2 }')" \
            -v d="$(figures tf_task_in_bytes_total | awk '/ps:0/ { print $2 }')" \
            'BEGIN { exit !(b + 0 > a + 0 && d > c && c > 0) }'
    }
    soon 15 went_on
    tf-run stop --job run
    wait "$top"
    [ ! -s err ]
    [ "$(figures tf_job_running)" = " 0" ]
    run --separate-stderr tf-top --job run --prometheus none/job.prom --count 1
    [[ $status -eq 74 && $stderr == 'tf-top: none/job.prom: '* && ! $stderr == *$'\n'* ]]
    [ "$(echo job.prom*)" = job.prom ]
}

# scraped ADDRESS: the response to an HTTP client
scraped() {
    /usr/bin/python3 - "$1" <<'END'
import http.client, socket, sys
name = sys.argv[1]
link = http.client.HTTPConnection(name if ":" in name else "localhost", timeout=5)
if ":" not in name:
    link.sock = socket.socket(socket.AF_UNIX)
    link.sock.connect(name)
link.request("GET", "/metrics")
reply = link.getresponse()
assert reply.status == 200 and reply.getheader("Content-Type").startswith("text/plain; version=0.")
sys.stdout.write(reply.read().decode())
END
}

@test "--listen: who scrapes gets the figures of now, by TCP and by a socket, until it ends" {
    job_runs sync
    timeout 60 tf-top --job run --interval 0.2s --listen 127.0.0.1:0 2>tcp.err 3>&- &
    local tcp=$! at before
    timeout 60 tf-top -q --job run --interval 0.2s --listen unix:figures.sock 2>unix.err 3>&- &
    local unix=$!
    soon 20 grep 'tf-top: listens at 127.0.0.1:' tcp.err
    soon 20 test -S figures.sock
    at=$(sed -n 's/.*listens at //p' tcp.err)
    scraped "$at" >job.prom
    [ "$(figures tf_job_running)" = " 1" ]
    before=$(figures tf_job_step)
    more() {
        scraped figures.sock >again.prom && [ "$(figures tf_job_step again.prom)" -gt "$before" ]
    }
    soon 20 more
    [ "$(stat -c %a figures.sock)" = 700 ]
    # a client that sends nothing, or half a request, blocks others only briefly
    (exec 7<>"/dev/tcp/${at%:*}/${at##*:}" && printf 'GET' >&7 && sleep 1) &
    local half=$!
    sleep 0.1
    scraped "$at" | finds tf_job_running
    wait "$half"
    run --separate-stderr -69 tf-top --job run --listen "$at"
    [[ $stderr = *"--listen $at: Address already in use" && $stderr != *$'\n'* ]]
    # when killed, it leaves no process, and its socket is no hindrance
    kill_pids "$(pgrep -P "$unix")"
    gone() { ! scraped figures.sock; }
    soon 20 gone
    timeout 60 tf-top -q --job run --interval 0.2s --listen unix:figures.sock 2>unix.err 3>&- &
    unix=$!
    soon 20 scraped figures.sock
    tf-run stop --job run
    wait_each "$tcp" "$unix"
    [ ! -e figures.sock ]
    [ ! -s unix.err ]
    run -1 scraped "$at"
}

@test "tf-run logs: all tasks by time, one alone, and as they come until the job ends" {
    job_runs async
    timeout 120 tf-run logs --job run --follow >followed 2>&1 &
    local follower=$!
    soon 10 grep -q '^ps:0  *[0-9T:.-]*Z tf-ps: ps:0: ready on ' followed
    printf 'a feed said this\n\nand this\n' >>run/worker-1.err
    soon 10 grep -qx 'worker:1   and this' followed
    tf-run stop --job run
    wait "$follower"
    # shellcheck disable=SC2094  # the word logs is a verb there
    tf-run logs --job run >logs
    sort followed | sed 's/ *$//' >a
    sort logs | sed 's/ *$//' | diff a -
    grep -c '^worker:' logs
    grep '^ps:0 ' logs | cut -c 12- | diff run/ps-0.err -
    awk '/^[^ ]+ +20/ { if ($2 < time) exit 1; time = $2 }' logs
    tf-run logs --job run worker:1 | cut -c 12- | diff run/worker-1.err -
    run --separate-stderr tf-run logs --job run worker:7
    [[ $status -eq 66 &&
        $stderr == 'tf-run: worker:7: no task of run; it has ps:0, worker:0, worker:1' ]]
    run --separate-stderr tf-run logs --job none
    [[ $status -eq 66 && $stderr == 'tf-run: job directory none: No such file or directory' ]]
    run --separate-stderr tf-run logs
    [[ $status -eq 64 && $stderr == 'tf-run: logs: which job? --job DIR'* ]]
    run --separate-stderr tf-run status worker:1 --job run
    [[ $status -eq 64 && $stderr == "tf-run: extra operand 'worker:1'"* ]]
}

@test "tf-run says by its own name that no job was ever there" {
    local verb
    mkdir empty
    : >empty/worker-0.err
    for verb in status 'status --json' stop 'logs --follow'; do
        # shellcheck disable=SC2086  # words
        run --separate-stderr tf-run $verb --job empty
        [[ $status -eq 66 && $stderr == 'tf-run: job directory empty: no tf-run was ever there' ]]
    done
    TF_LOG_TIMES=1 run --separate-stderr tf-top --job empty
    [[ $stderr == 2*'Z tf-top: job directory empty: no tf-run was ever there' ]]
}

@test "wrong use, and a job that is not there" {
    run --separate-stderr tf-top
    [[ $status -eq 64 && $stderr == 'tf-top: which job? --job DIR'* ]]
    run --separate-stderr tf-top --job run --interval 0s
    [[ $status -eq 64 && $stderr == 'tf-top: --interval 0s: '* ]]
    run --separate-stderr tf-top --job run --count 0
    [[ $status -eq 64 && $stderr == 'tf-top: --count 0: '* ]]
    run --separate-stderr tf-top --job none
    [[ $status -eq 66 && $stderr == 'tf-top: job directory none: '* ]]
}

# Programs of our own stand in for those that it asks.
@test "what a shard says while a peer of its is stuck, and why shards do not answer" {
    mkdir "it's" own
    cat >own/tf-supervise <<'END'
#!/bin/sh
printf %s '{"pid":1,"state":"running","why":"","step":3,"restarts":0,"max_restarts":"5",' \
    '"result":0,"tasks":[{"task":"ps:0","pid":2,"state":"ready","starts":1,"restarts":0,' \
    '"ended":""}]}'
END
    cat >own/tf-ps <<'END'
#!/bin/sh
[ ! -e fails ] || { echo 'tf-ps: ps:0: no answer in 2 s' >&2; exit 75; }
printf %s '{"task":"ps:0","links":1,"in":5,"out":6,"peers":{},"values":[],' \
    '"stuck":{"worker:0":2.5},"seconds":4,"still":1.5,"saves_failed":1,' \
    '"failed_why":"disk full","workers":[]}'
END
    chmod +x own/*
    # as installed: programs beside the script, its parts in lib
    cp -a "$(dirname "$(command -v tf-top)")/tf-top" own
    ln -s "$root/${BUILD:-build}/lib" lib
    TMPDIR=$PWD/it\'s own/tf-top --job run --count 1 >top
    grep -E '^ps:0 .* 1.5s$' top
    grep -qx 'ps:0 could not save: disk full' top
    : >fails
    own/tf-top --job run --count 1 | grep -x 'tf-ps: ps:0: no answer in 2 s'
    run --separate-stderr bash -c 'own/tf-top --job run --count 1 >/dev/full'
    [[ $status -eq 74 && $stderr == 'tf-top: stdout: No space left on device' ]]
    TMPDIR=$PWD/it\'s own/tf-top --job run --interval 60s >top &
    local top=$! code=0
    soon 30 grep -q '^ps:0' top
    kill -TERM "$top"
    wait "$top" || code=$?
    [ "$code" = 143 ]
    [ -z "$(ls "it's")" ]
}
