#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-supervise alone, with tasks that are just a line of shell.
# shellcheck disable=SC2154,SC2030,SC2031  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -m 700 job
    export LONG=$((100000 + BASHPID)) # seconds that nobody else sleeps
}

teardown() {
    [ -z "${supervisor-}" ] || kill_pids "$supervisor"
}

tasks() { # the lines of FILE, from stdin; the job's folder is there
    { echo "job job" && cat; } >tasks
}

supervised() { # COMMAND...: in the background; sets supervisor
    setsid tf-supervise tasks >out 2>err 3>&- &
    supervisor=$!
}

ended() { # sets code
    code=0
    wait "$supervisor" || code=$?
    supervisor=''
}

field() { # NAME OF-TASK
    jq -r ".tasks[] | select(.task == \"$2\") | .$1" job/run.json
}

nobody_carries() { # TEXT: in a command line
    ! pgrep -f -- "$1" >/dev/null
}

@test "true ends well; what fails is started again as often as was said, and no more" {
    tasks <<<"task a
command exec true"
    timeout 10 tf-supervise tasks 3>&-
    [ "$(field state a)" = "done" ]
    local n
    for n in 0 2; do
        rm -f starts
        tasks <<END
max-restarts $n
task a
restart alone
command echo x >>starts; exit 1
END
        run --separate-stderr timeout 20 tf-supervise tasks 3>&-
        [ "$status" -eq 1 ]
        [ "$(wc -l <starts)" -eq $((n + 1)) ]
        [ "$(jq .restarts job/run.json)" -eq "$n" ]
        [ "$(field restarts a)" -eq "$n" ]
        [[ $stderr == *"a ended with exit 1 (); that was restart $n of $n"* ]]
    done
}

@test "a budget per time: what is long ago does not count" {
    tasks <<'END'
max-restarts 1/1s
task a
restart alone
command n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n; [ $n = 3 ] && exit; sleep 1.2; exit 1
END
    timeout 30 tf-supervise tasks 3>&- 2>err
    [ "$(cat n)" = 4 ]
    [ "$(jq .restarts job/run.json)" = 3 ]
    grep -q '(restart 1 of 1/1s)' err
    echo 0 >n
    sed -i 's/sleep 1.2; //' tasks
    run timeout 30 tf-supervise tasks 3>&-
    [ "$status" -eq 1 ]
}

@test "codes that end the job do, and policies say who is started again" {
    tasks <<'END'
task a
ends 65 78
command exit 78
task b
command exec sleep 60
END
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$status" -eq 78 ]
    [[ $stderr == "tf-supervise: a ended with exit 78 (); the job ends"* ]]
    # the first to die lost the other one
    tasks <<'END'
task a
ends 77
command touch lost; sleep 0.05; exit 77
task b
ends 77
command echo b >>starts; until [ -e lost ]; do sleep 0.01; done; exit 69
END
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$status" -eq 77 ]
    [[ $stderr == "tf-supervise: a ended with exit 77 (); the job ends"* ]]
    [ "$(cat starts)" = b ]
    tasks <<'END'
task a
restart never
command kill -9 $$
END
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$status" -eq 137 ]
    # a: twice, as it withdraws everything, once; b each time
    tasks <<'END'
restart echo 'from the start'; echo "$JOB_TASK" >about
task a
restart all
command echo $JOB_HOW >>a; [ $JOB_HOW = anew ] || kill -9 $$
task b
restart alone
command echo $JOB_HOW >>b; [ $JOB_HOW = anew ] || sleep 60
END
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$status" -eq 0 ]
    [ "$(cat a b | paste -sd' ')" = "first anew first anew" ]
    [ "$(cat about)" = all ]
    [[ $stderr =~ 'a (pid '[0-9]+') killed by signal 9 at step 0; from the start (restart 1 of ' ]]
}

@test "services end last, after the hook; hooks know why" {
    tasks <<'END'
stop echo stop $JOB_WHY >>log
end echo end $JOB_WHY $JOB_SAVED >>log
over cat >table; echo over >>log
task s
service
command trap 'echo s >>log; exit' TERM; while :; do sleep 0.05; done
task a
command trap 'echo a >>log; exit' TERM; touch ready; [ -e done ] || while :; do sleep 0.05; done
END
    supervised
    soon 10 test -e ready
    kill -TERM "$supervisor"
    ended
    [ "$code" -eq 143 ]
    [ "$(paste -sd' ' log)" = "stop TERM a end TERM 1 s over" ]
    grep -Eqx 's [0-9]+ 0 done' table
    rm log
    touch 'done'
    timeout 10 tf-supervise tasks 3>&-
    [ "$(paste -sd' ' log)" = "end END s over" ]
}

@test "the hook says whether one alone will do; what it says is told" {
    tasks <<'END'
restart echo "$JOB_TASK $JOB_ENDED" >>about; echo 'so be it'; [ ! -e all ]
task a
restart alone
command echo a$JOB_HOW$JOB_START >>log; [ $JOB_START = 1 ] || exit 3
task b
command echo b$JOB_HOW >>log; until grep -q 1 log; do sleep 0.05; done
END
    run --separate-stderr timeout 20 tf-supervise tasks 3>&-
    [ "$status" -eq 0 ]
    [ "$(sort log | paste -sd' ')" = "aagain1 afirst0 bfirst" ]
    [ "$(cat about)" = "a exit 3" ]
    [[ $stderr == *"ended with exit 3 () at step 0; so be it, started again as incarnation 2"* ]]
    rm log about
    touch all
    timeout 20 tf-supervise tasks 3>&-
    [ "$(sort log | paste -sd' ')" = "aanew1 afirst0 banew bfirst" ]
    [ "$(paste -sd, about)" = "a exit 3,all " ]
}

@test "a service that dies as the last of the others ends is there again for the hook" {
    tasks <<'END'
end kill -0 $(cat s.pid) && touch good
task s
service
restart alone
command echo $$ >s.pid; exec sleep 60
task a
command until [ -s s.pid ]; do sleep 0.05; done; kill -9 $(cat s.pid); sleep 0.1
END
    timeout -k 1 20 tf-supervise tasks 3>&-
    [ -e good ]
    [ "$(field starts s)" -eq 2 ]
}

@test "services alone run until they are told; a signal in the end changes no result" {
    tasks <<'END'
end touch ending; sleep 0.5
task s
service
command touch ready; exec sleep 60
END
    supervised
    soon 10 test -e ready
    sleep 0.3
    kill -INT "$supervisor"
    ended
    [ "$code" -eq 130 ]
    rm ready ending
    printf 'task a\ncommand exec true\n' >>tasks
    supervised
    soon 10 test -e ending
    kill -TERM "$supervisor"
    ended
    [ "$code" -eq 0 ]
    [ "$(jq -r .why job/run.json)" = TERM ]
}

@test "a host that is not there is tried again, and counts only when it was" {
    tasks <<'END'
timeout 2.5s
max-restarts 0
task a
absent 7
command [ -e there ] || { touch there; exit 7; }
END
    timeout 10 tf-supervise tasks 3>&-
    [ "$(field starts a) $(field restarts a)" = "2 0" ]
    sed -i 's/^command .*/command echo "tf-x: not there" >\&2; exit 7/' tasks
    echo 'errors a.err' >>tasks
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$status" -eq 69 ]
    [[ $stderr == "tf-supervise: a ended with exit 69 (tf-x: not there); the job ends"* ]]
}

@test "a task whose stdin is held is asked to end by the end of it" {
    tasks <<'END'
task a
hold
feed echo 1
command trap '' TERM; cat >got; echo ended >>got
END
    supervised
    soon 10 grep -q 1 got
    sleep 0.3
    [ "$(cat got)" = 1 ]
    tf-supervise --stop --job job
    ended
    [ "$(paste -sd' ' got)" = "1 ended" ]
}

@test "a folder has one supervisor; --stop waits for the reaper; a lost reaper hides nothing" {
    tasks <<'END'
cleanup sleep 0.3; touch "$1/cleaned"
task a
command trap 'exit 0' TERM; while :; do sleep 0.05; done
END
    supervised
    soon 10 grep -q "\"pid\":$supervisor," job/run.json
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$status" -eq 75 ]
    [ "$stderr" = "tf-supervise: job directory job: another tf-run (pid $supervisor) has it" ]
    pkill -9 -f -- "--reaper $supervisor"
    [ "$(tf-supervise --status --job job | jq -r .state)" = running ]
    tf-supervise --stop --job job
    [ -e job/cleaned ]
    ended
    [ "$code" -eq 143 ]
}

@test "one signal asks, a second one ends everything, whatever holds it up" {
    tasks <<'END'
stop touch saving; exec sleep $LONG
task a
command trap '' TERM INT; touch ready; while :; do sleep 0.05; done
END
    local first second
    for first in INT TERM; do
        for second in INT TERM; do
            rm -f ready saving
            supervised
            soon 10 test -e ready
            kill -$first "$supervisor"
            soon 10 test -e saving
            bash -c "kill -$second $supervisor" # another sender: timeout(1) sends one signal twice
            ended
            [ "$code" -eq $((first == INT ? 130 : 143)) ] || [ "$code" -ge 130 ]
            nobody_carries "sleep $LONG"
        done
    done
}

@test "what a task leaves behind ends with it, also in a session of its own; -9 leaves nothing" {
    tasks <<'END'
task a
command setsid sleep $LONG & setsid sh -c 'setsid sleep $LONG & exec sleep $LONG' & sleep 0.2
task b
command until [ -e go ]; do sleep 0.05; done
END
    supervised
    soon 10 jq -e '.tasks[] | select(.task == "a" and .state == "done")' job/run.json
    soon 2 nobody_carries "sleep $LONG"
    touch go
    ended
    [ "$code" -eq 0 ]
    tasks <<'END'
task a
feed setsid sleep $LONG & exec sleep $LONG
command setsid sleep $LONG & touch ready2; exec sleep $LONG
END
    supervised
    soon 10 test -e ready2
    kill -9 "$supervisor"
    soon 10 nobody_carries "sleep $LONG"
    # a killed reaper has a successor, which does its work
    sed -i '1i cleanup touch "$1/cleaned"' tasks
    supervised
    soon 10 grep -q "\"pid\":$supervisor," job/run.json
    sleep 1.2
    pkill -9 -f -- "--reaper $supervisor"
    soon 5 pgrep -f -- "--reaper $supervisor"
    kill -9 "$supervisor"
    soon 10 nobody_carries "sleep $LONG"
    soon 5 test -e job/cleaned
}

@test "a feed command that is killed is started again with its task, which sees no end before" {
    tasks <<'END'
task a

restart alone
feed echo 1; until [ -s a.rec ]; do sleep 0.02; done
 [ -e again ] || { touch again; kill -9 $$; }; echo 2
command [ ! -s a.rec ] || mv a.rec a.$JOB_START.rec; exec cat >a.rec
END
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$status" -eq 0 ]
    [ "$(paste -sd' ' a.rec)" = "1 2" ]
    [ "$(cat a.1.rec)" = 1 ]
    [[ $stderr == *"lost its feed command (killed by signal 9) at step 0; killed, started aga"* ]]
}

@test "a feed command that fails by itself is the task's to judge, and named where that fails" {
    tasks <<'END'
task a
feed echo 1; exit 3
command [ "$(cat)" = 1 ]
END
    timeout 10 tf-supervise tasks 3>&-
    tasks <<'END'
task a
ends 65
feed exit 3
command cat; echo "tf-exec: stdin: empty" >&2; exit 65
errors a.err
END
    run --separate-stderr -65 timeout 10 tf-supervise tasks 3>&-
    [[ $stderr == *"a ended with exit 65 (tf-exec: stdin: empty), fed by a command that ended with \
exit 3; the job ends"* ]]
}

@test "the state is asked for, and the end, from another shell" {
    tasks <<'END'
task a
command trap 'exit 0' TERM; while :; do sleep 0.05; done
END
    supervised
    soon 10 grep -q "\"pid\":$supervisor," job/run.json
    [ "$(tf-supervise --status --job job | jq -r '.state, .pid' | paste -sd' ')" = \
        "running $supervisor" ]
    tf-supervise --stop --job job
    ended
    [ "$code" -eq 143 ]
    [ "$(tf-supervise --status --job job | jq -r .state)" = over ]
    run --separate-stderr tf-supervise --stop --job nowhere
    [ "$status" -eq 66 ]
    supervised
    soon 10 grep -q "\"pid\":$supervisor," job/run.json
    kill -9 "$supervisor"
    wait "$supervisor" || [ $? -eq 137 ]
    run --separate-stderr tf-supervise --status --job job
    [ "$status" -eq 69 ]
    [ "$stderr" = "tf-supervise: job directory job: its tf-run has died" ]
}

@test "what a task says that others are to hear is repeated" {
    tasks <<'END'
task a
errors a.err
repeats no luck:
command echo 'x: no luck: 7' >&2; echo fine >&2; sleep 0.5
END
    echo 'no luck: of old' >a.err
    run --separate-stderr timeout 10 tf-supervise tasks 3>&-
    [ "$stderr" = "tf-supervise: a: no luck: 7" ]
}

@test "a file that is none is 65, with its line" {
    fails() { # TEXT LINES
        printf '%s\n' "$2" >bad
        run --separate-stderr timeout 10 tf-supervise bad
        [ "$status" -eq 65 ] && [[ $stderr == "tf-supervise: bad"*"$1"* ]]
    }
    fails "there is no task" "name x"
    fails "'a' has no command" "task a"
    fails ":2: 'colour' is no word of a task" $'task a\ncolour red'
    fails ":1: 'colour' is no word of a job" $'colour red'
    fails ":1: '5/x' is not what" $'max-restarts 5/x\ntask a\ncommand true'
    fails "'a' is there twice" $'task a\ncommand true\ntask a\ncommand true'
    fails ":2: 'some' is not" $'task a\nrestart some\ncommand true'
}
