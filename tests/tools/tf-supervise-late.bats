#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-supervise: processes that should end, and do not. One that is frozen, in each phase of a job,
# and one that ignores its signal: the job still ends, and names it. FROZEN=1: also the effect of a
# frozen supervisor or reaper on others, which takes a minute.
# shellcheck disable=SC2154  # of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -m 700 job
}

teardown() {
    [ -z "${supervisor-}" ] || kill_pids "$supervisor"
}

tasks() { # the lines of FILE, from stdin; the job's folder is there
    { printf 'job job\ntimeout 1.5s\ngrace 3s\n' && cat; } >tasks
}

supervised() {
    setsid tf-supervise tasks >out 2>err 3>&- &
    supervisor=$!
}

# ends CODE: by itself
ends() {
    local code=0
    timeout 60 tail --pid="$supervisor" -f /dev/null
    wait "$supervisor" || code=$?
    cat err
    [ "$code" -eq "$1" ]
}

says() { # PATTERN
    finds -- "^tf-supervise: $1\$" err
}

killed='has not ended in . s: killed'
frozen='stands still, stopped by a signal:'

@test "a service that ignores that it is told to end is killed" {
    tasks <<'END'
task s
service
command trap '' TERM; touch ready; while :; do sleep 0.1; done
task a
command until [ -e ready ]; do sleep 0.05; done
END
    supervised
    ends 0
    says "s (pid [0-9]*) $killed"
}

@test "a task that ignores that it is told to end is killed, later" {
    tasks <<'END'
task a
command trap '' TERM; touch ready; while :; do sleep 0.1; done
END
    supervised
    soon 20 test -e ready
    tf-supervise --stop --job job
    ends 143
    says "a (pid [0-9]*) $killed"
}

@test "a task that is frozen when it is told to end goes on, and ends" {
    tasks <<'END'
task a
command trap 'echo ended >said; exit 0' TERM; touch ready; kill -STOP $$
 while :; do sleep 0.1; done
END
    supervised
    soon 20 test -e ready
    tf-supervise --stop --job job
    ends 143
    says "a (pid [0-9]*) $frozen continued"
    [ "$(cat said)" = ended ]
}

@test "a hook that is frozen is killed and run again, in each phase" {
    local which
    for which in stop end; do
        rm -f hooks frozen ready
        cat >hook <<END
#!/bin/sh
echo \$1 >>hooks
[ $which != \$1 ] || [ -e frozen ] || { touch frozen; kill -STOP \$\$; }
END
        chmod +x hook
        tasks <<END
stop ./hook stop
end ./hook end
task a
command trap 'exit 0' TERM; touch ready; while :; do sleep 0.1; done
END
        supervised
        soon 20 test -e ready
        tf-supervise --stop --job job
        ends 143
        says "the hook '$which' (pid [0-9]*) $frozen killed"
        [ "$(grep -c $which hooks)" -eq 2 ]
    done
}

@test "what a hook waits for and is frozen is found; the last hook is waited for no longer" {
    tasks <<'END'
end [ -e frozen ] && exit; touch frozen; sh -c 'kill -STOP $$'; echo went on
over kill -STOP $$
task a
command true
END
    supervised
    ends 0
    says "the hook 'end' (pid [0-9]*) $frozen killed"
    says "the hook 'over' (pid [0-9]*) $frozen killed"
    [ ! -s out ]
}

@test "a hook that does not end is killed, and not run again" {
    tasks <<'END'
end echo end >>hooks; trap '' TERM; while :; do sleep 0.1; done
task a
command true
END
    supervised
    ends 137
    says "the hook 'end' (pid [0-9]*) $killed"
    [ "$(cat hooks)" = end ]
}

@test "a task that is frozen while all is started again is in nobody's way" {
    tasks <<'END'
restart [ -e frozen ] || { touch frozen; kill -STOP $$; }
task a
command echo a >>starts; trap '' TERM; [ -e again ] || kill -STOP $$
task b
command [ -e again ] || { touch again; sleep 0.3; exit 1; }
END
    supervised
    ends 0
    [ "$(cat starts)" = "a
a" ]
}

@test "who is waited for is named before it is killed" {
    tasks <<'END'
grace 8s
task a
command trap '' TERM; touch ready; while :; do sleep 0.1; done
END
    supervised
    soon 20 test -e ready
    tf-supervise --stop --job job 2>stop.err
    ends 143
    says "waiting for a (pid [0-9]*) to end, [0-9] s left"
    finds 'tf-supervise: waiting for the job in job to end' stop.err
}

@test "a frozen supervisor and a frozen reaper" {
    [ -n "${FROZEN-}" ] || skip "FROZEN=1"
    tasks <<'END'
task a
command exec sleep 600
END
    supervised
    soon 20 test -S job/control
    kill -STOP "$supervisor"
    run --separate-stderr -69 tf-supervise --stop --job job
    [[ ${stderr_lines[-1]} == "tf-supervise: job directory job: its tf-run (pid $supervisor) \
has not answered for "* ]]
    kill -CONT "$supervisor"
    ends 143
    supervised
    soon 20 test -S job/control
    kill -STOP "$(pgrep -f -- "--reaper $supervisor")"
    tf-supervise --stop --job job
    ends 143
    flock -n job/lock true
    [ ! -e job/control ]
}

@test "a feed command that is stopped is named, once, and the job goes on with it" {
    tasks <<'END'
timeout 600s
task a
feed echo $$ >fed; echo 1; exec sleep 600
command read -r first; read -r second; [ "$first $second" = '1 ' ]
END
    supervised
    soon 10 test -s fed
    kill -STOP "$(cat fed)"
    stopped='a waits: its feed command (pid [0-9]*) stands still, stopped by a signal'
    soon 20 says "$stopped"
    kill -CONT "$(cat fed)"
    tf-supervise --stop --job job
    ends 143
    [ "$(grep -c "^tf-supervise: $stopped\$" err)" -eq 1 ]
}
