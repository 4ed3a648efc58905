# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
#
# What happens to the tasks, and what is done about it.

open_pipes() {
    rm -f "$job/events" "$job/lifeline"
    mkfifo "$job/events" "$job/lifeline" || { end_job && exit 74; }
    # Both ends in one descriptor: opening waits for nobody, and reading never ends.
    exec 7<>"$job/events" 9<>"$job/lifeline"
    [ -z "$job_is_temporary" ] || remove_when_gone
}

# Also after kill -9 nothing of a temporary directory is left.
remove_when_gone() {
    (
        trap '' INT TERM HUP
        exec 7>&- 9>&- 8<"$job/lifeline"
        cat <&8 >/dev/null
        sleep 1
        rm -rf "$job"
    ) >/dev/null 2>&1 &
}

start_all() {
    running=0 restarts=0 saved='' stopped_at='' started_at=$(date +%s)
    n_tasks=$(printf '%s\n' "$tasks" | wc -l)
    result=0 stopping='' step=0
    # As events: a shell may begin the trap of a second signal within that of the first.
    trap 'echo "signal INT 130 $(date +%s)" >&7' INT
    trap 'echo "signal TERM 143 $(date +%s)" >&7' TERM
    trap 'echo "signal HUP 129 $(date +%s)" >&7' HUP
    start_tasks
}

start_tasks() {
    workers_left=$n_workers workers_running=0
    for task in $tasks; do
        start_task "$task"
    done
    start_watch
}

# Watches the living ones, and draws the progress line.
start_watch() {
    set -- --job "$job" --lease "$opt_lease"
    [ -z "$quiet" ] || set -- "$@" -q
    [ -z "$opt_no_key" ] || set -- "$@" --no-key
    (exec 9>&- && exec setsid tf-ps watch "$@" >&7 7>&-) &
    watch=$!
}

# Every event is a line: what, which task, and more. A signal ends `read`, and its trap has run.
hear() {
    read -r what task value rest <&7 || return
    case $what in
    started) on_started "$task" "$value" ;;
    absent) remember alive "$task" '' ;; # its host did not answer; it is called again
    feeder) remember feeder "$task" "$value" ;;
    ended) on_ended "$task" "$value" "$rest" ;;
    ready) remember ready "$task" 1 ;;
    waiting) on_waiting "$task" "${value#why=}${rest:+ $rest}" ;;
    unheard) [ -n "$(recall ready "$task" '')" ] || on_silent "$task" "$value" "$rest" ;;
    again) ! may_start "$value" || "$rest" "$task" ;;
    silent) on_silent "$task" "${value%s}" "$rest" ;;
    step) take_step "step=$task" ;;
    signal) on_signal "$task" "$value" "$rest" ;;
    esac
}

# Until all workers have ended well, or all have ended and none is to be started again.
supervise() {
    while [ "$workers_left" -gt 0 ]; do
        [ -z "$stopping" ] || [ "$workers_running" -gt 0 ] || break
        hear
    done
}

# The newest step that anybody told of, among words like step=211.
take_step() {
    for word in "$@"; do
        case $word in step=*) word=${word#step=} ;; *) continue ;; esac
        [ "$word" -le "$step" ] || step=$word
    done
}

# How far training was when a task died: the watcher is about to say it. A tick ends the wait, and
# what others say meanwhile goes back into the pipe.
await_step() {
    kept=''
    (sleep 0.3 && echo tick >&7) 9>&- &
    while read -r what task value rest <&7 || continue; do
        # shellcheck disable=SC2086
        case "$what $task" in
        "died $1" | "left $1") take_step $value $rest && break ;;
        "step "*) take_step "step=$task" ;;
        "tick "*) break ;;
        *) kept="$kept$what $task $value $rest
" ;;
        esac
    done
    [ -z "$kept" ] || printf '%s' "$kept" >&7
}

# "5 of 6 ready; waiting for worker:3 on node4: ssh: connection timed out, 22 s left", when it is
# news: another reason, or that it is the last one. A worker of others without shards is ready when
# it runs: nobody else can tell.
on_waiting() {
    why=$2
    [ -n "$shards" ] || [ "$why" != 'no answer yet' ] || return
    [ -z "$(recall alive "$1" '')" ] || kill_overdue "$1" "$why"
    [ -z "$stopping" ] || return
    [ -z "$(recall ready "$1" '')" ] || return
    host_of "$1"
    [ -z "$host" ] || why=$(ssh_failure "$1" "$why")
    left=$(($(recall asked "$1" "$started_at") + $(seconds_of "$opt_timeout") - $(date +%s)))
    n_ready=$(count_ready) news=$why
    [ "$n_ready" -lt $((n_tasks - 1)) ] || news="$why, the last"
    text="$n_ready of $n_tasks ready; waiting for $1${host:+ on $host}: $why"
    [ "$news" = "$(recall told "$1" '')" ] || say "$text, $left s left"
    remember told "$1" "$news"
    [ "$left" -gt 0 ] || [ "$why" != 'not started' ] || [ -n "$(recall alive "$1" '')" ] ||
        give_up_waiting "$1"
}

# A process that stands still before anybody heard of it is missed by no lease. One that took its
# place may still be making its variables.
kill_overdue() {
    limit=$(seconds_of "$opt_timeout")
    [ "$2" != 'no answer yet' ] || limit=$((limit * 4))
    [ "$(($(recall since "$1" "$started_at") + limit))" -gt "$(date +%s)" ] ||
        on_silent "$1" "$limit" ''
}

count_ready() {
    for task in $tasks; do
        recall ready "$task" ''
    done | wc -c
}

# Whole seconds of 30s, 1500ms, 2m.
seconds_of() {
    case $1 in
    *ms) echo $((${1%ms} / 1000 + 1)) ;;
    *m) echo $((${1%m} * 60)) ;;
    *h) echo $((${1%h} * 3600)) ;;
    *) number=${1%s} && echo "${number%.*}" ;;
    esac
}

give_up_waiting() {
    say "$1 is not there after $opt_timeout; the job ends"
    stop_with FAIL 69
    # shellcheck disable=SC2086
    signal_tasks KILL $workers
}

on_started() {
    remember pid "$1" "$2"
    remember alive "$1" 1
    remember since "$1" "$(date +%s)"
    [ -z "$stopping" ] || signal_tasks TERM "$1" # it was not there when the others were told
}

on_ended() {
    [ "$3" = "$generation" ] || return
    remember alive "$1" ''
    count_out "$1"
    count_brief "$1"
    set_ended "$1" "$(ending "$2")"
    remember ready "$1" ''
    if [ "$2" = 0 ] || [ -n "$stopping" ]; then
        [ "$2" != 0 ] || [ "${1%:*}" = ps ] || workers_left=$((workers_left - 1))
        [ "$2" = 0 ] && [ "${1%:*}" = ps ] && [ -z "$stopping" ] && on_death "$1" "$2"
        return
    fi
    case $2 in
    64 | 65 | 66 | 70 | 77 | 78) give_up "$1" "$2" ;;
    255) give_up "$1" 69 ;; # ssh
    *) on_death "$1" "$2" ;;
    esac
}

ending() {
    if [ "$1" = 0 ]; then
        echo 'done'
    elif [ "$1" -gt 128 ] && [ "$1" -lt 255 ]; then # 255 is what ssh says
        echo "killed by signal $(($1 - 128))"
    else
        echo "exit $1"
    fi
}

# The watcher does not see that a task on another host was started again: what it misses may be the
# incarnation before. `ready` comes when it hears of the next one, which has --timeout for that.
may_be_starting() {
    host_of "$1"
    [ -n "$host" ] && [ -z "$(recall ready "$1" '')" ] &&
        [ $(($(recall since "$1" 0) + $(seconds_of "$opt_timeout"))) -gt "$(date +%s)" ]
}

on_silent() {
    [ -n "$(recall alive "$1" '')" ] || return
    if may_be_starting "$1"; then
        (sleep 1 && echo "unheard $*" >&7) 9>&- &
        return
    fi
    # shellcheck disable=SC2086
    take_step $3
    set_silent "$1" "$2"
    signal_tasks KILL "$1"
}

# stop_with WHY RESULT [TIME]: from now on nothing is started again.
stop_with() {
    stopping=$1 result=$2
    stopped_at=${3:-$(date +%s)}
}

# on_signal NAME RESULT TIME: when it came, which may have been long ago
on_signal() {
    if [ -n "$stopping" ]; then
        # timeout(1) sends one and the same to tf-run and to its process group
        [ $(($3 - stopped_at)) -ge 2 ] || return
        # shellcheck disable=SC2086
        signal_tasks KILL $tasks
        return
    fi
    stop_with "$1" "$2" "$3"
    # Before the first worker leaves: what the others do without it is no round of all.
    [ -z "$opt_save" ] || ! shards_live || save_now
    # shellcheck disable=SC2086
    signal_tasks TERM $workers
}

# The job has failed.
give_up() {
    [ -n "$stopping" ] && return
    say "$1 $(cause "$1" "$2"); the job ends"
    tail -n 3 "$(file_of "$1").err" >&2
    stop_with FAIL "$2"
    # shellcheck disable=SC2086
    signal_tasks TERM $workers
}
