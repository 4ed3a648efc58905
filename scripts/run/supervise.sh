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
    running=0 restarts=0
    workers_left=$n_workers result=0 stopping='' step=0
    trap 'on_signal INT 130' INT
    trap 'on_signal TERM 143' TERM
    trap 'on_signal HUP 129' HUP
    start_tasks
}

start_tasks() {
    workers_left=$n_workers
    for task in $tasks; do
        start_task "$task"
    done
    start_watch
}

# Watches the living ones, and draws the progress line.
start_watch() {
    set -- --job "$job" --lease "$opt_lease"
    [ -z "$quiet" ] || set -- "$@" -q
    (exec 9>&- && exec setsid tf-ps watch "$@" >&7 7>&-) &
    watch=$!
}

# Every event is a line: what, which task, and more. A signal ends `read`, and its trap has run.
supervise() {
    while [ "$workers_left" -gt 0 ]; do
        read -r what task value rest <&7 || continue
        case $what in
        started) remember pid "$task" "$value" ;;
        ended) on_ended "$task" "$value" "$rest" ;;
        silent) on_silent "$task" "$value" ;;
        step) step=$task ;;
        missing) say "$task: $value $rest" ;;
        esac
    done
}

on_ended() {
    [ "$3" = "$generation" ] || return
    running=$((running - 1))
    set_ended "$1" "$(ending "$2")"
    if [ "$2" = 0 ] || [ -n "$stopping" ]; then
        case $1 in worker:*) workers_left=$((workers_left - 1)) ;; esac
        [ "$2" = 0 ] && [ "${1%:*}" = ps ] && [ -z "$stopping" ] && on_death "$1" "$2"
        return
    fi
    case $2 in
    64 | 65 | 66 | 70 | 77 | 78) give_up "$1" "$2" ;;
    *) on_death "$1" "$2" ;;
    esac
}

ending() {
    if [ "$1" = 0 ]; then
        echo 'done'
    elif [ "$1" -gt 128 ]; then
        echo "killed by signal $(($1 - 128))"
    else
        echo "exit $1"
    fi
}

# Something that can be started again.
on_death() {
    case $1 in
    ps:*) restart_all "$1" "$2" ;;
    worker:*)
        # a worker that lost a shard is not what is wrong: the shard's end is on its way
        if [ "$2" -lt 128 ] && shard_is_dead; then
            return
        fi
        [ -n "$shards" ] || { restart_all "$1" "$2" && return; }
        may_restart "$1" "$2" || return
        start_task "$1"
        say "$1 (pid $(old_pid "$1")) $(cause "$1" "$2") at step $step; started again as" \
            "incarnation $(($(incarnation "$1") + 1)) (restart $restarts of $opt_max_restarts)"
        ;;
    esac
}

shard_is_dead() {
    sleep 0.3
    for shard in $shards; do
        pid=$(pid_of "$shard")
        if [ -z "$pid" ] || ! kill -0 "$pid" 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

old_pid() {
    pid=$(pid_of "$1")
    echo "${pid:-?}"
}

incarnation() {
    cat "$(file_of "$1").starts" 2>/dev/null || echo 0
}

# "killed by signal 9", or the last thing that it said.
cause() {
    why=$(get_silent "$1")
    if [ -n "$why" ]; then
        set_silent "$1" ''
        echo "silent for $why"
    elif [ "$2" -gt 128 ]; then
        ending "$2"
    else
        echo "ended with exit $2 ($(tail -n 1 "$(file_of "$1").err"))"
    fi
}

may_restart() {
    restarts=$((restarts + 1))
    count_restart "$1"
    [ "$restarts" -gt "$opt_max_restarts" ] || return 0
    say "$1 $(cause "$1" "$2"); that was restart $opt_max_restarts of $opt_max_restarts"
    give_up "$1" "$2"
    return 1
}

# A lost shard, or any loss without shards, takes everything back to the newest checkpoint.
restart_all() {
    may_restart "$1" "$2" || return
    lost="$1 (pid $(old_pid "$1")) $(cause "$1" "$2") at step $step"
    stop_generation
    newest=$(newest_step)
    if [ -n "$newest" ]; then
        repeat=$((step - newest))
        [ "$repeat" -ge 0 ] || repeat=0
        say "$lost; restored from ${opt_save%/}@$newest, $repeat steps to repeat" \
            "(restart $restarts of $opt_max_restarts)"
    else
        say "$lost; nothing was saved: all $step steps to repeat" \
            "(restart $restarts of $opt_max_restarts)"
    fi
    restarted=1
    start_tasks
}

newest_step() {
    [ -n "$opt_save" ] || return
    for manifest in "$opt_save"/*/manifest; do
        [ -e "$manifest" ] || continue
        manifest=${manifest%/manifest}
        echo "${manifest##*/}"
    done | sort -n | tail -n 1
}

# Ends what runs and forgets what it still says.
stop_generation() {
    kill "$watch" 2>/dev/null
    # shellcheck disable=SC2086
    signal_tasks KILL $tasks
    generation=$((generation + 1))
    while [ "$running" -gt 0 ]; do
        read -r what task value rest <&7 || continue
        [ "$what" != ended ] || running=$((running - 1))
    done
}

on_silent() {
    set_silent "$1" "$2"
    signal_tasks KILL "$1"
}

on_signal() {
    if [ -n "$stopping" ]; then
        # shellcheck disable=SC2086
        signal_tasks KILL $tasks
        return
    fi
    stopping=$1 result=$2
    # shellcheck disable=SC2086
    signal_tasks TERM $workers
}

# The job has failed.
give_up() {
    [ -n "$stopping" ] && return
    say "$1 $(cause "$1" "$2"); the job ends"
    tail -n 3 "$(file_of "$1").err" >&2
    stopping=FAIL result=$2
    # shellcheck disable=SC2086
    signal_tasks TERM $workers
    case $1 in worker:*) workers_left=$((workers_left - 1)) ;; esac
}
