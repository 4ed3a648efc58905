# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
#
# What is done about a task that died.

# Something that can be started again.
on_death() {
    case $1 in
    ps:*) restart_all "$1" "$2" ;;
    worker:*)
        # a worker that lost a shard is not what is wrong: the shard's end is on its way
        if [ "$2" -lt 128 ] && shard_is_dead; then
            return
        fi
        if [ -z "$shards" ]; then
            # one that lost another is not what is wrong, either
            [ "$2" -ge 128 ] || ! other_is_dead "$1" || return
            restart_all "$1" "$2"
            return
        fi
        if [ "$2" -lt 128 ] && update_has_failed; then
            restart_all "$1" "$2"
            return
        fi
        may_restart "$1" "$2" || return
        lost=$(loss "$1" "$2") next=$(($(incarnation "$1") + 1))
        start_again "$1" start_alone
        say "$lost started again as incarnation $next (restart $restarts of $opt_max_restarts)"
        ;;
    esac
}

shard_is_dead() {
    sleep 0.3
    for shard in $shards; do
        ! has_vanished "$shard" || return 0
    done
    return 1
}

# Another worker whose end nobody has heard of yet.
other_is_dead() {
    sleep 0.3
    for worker in $workers; do
        [ "$worker" = "$1" ] || ! has_vanished "$worker" || return 0
    done
    return 1
}

# Shards that lost each other within an update have half of it in their variables: the workers' next
# incarnations would fail, too.
update_has_failed() {
    tf-ps status --json --job "$job" --timeout 1s 2>/dev/null | grep -q '"failed":"[^"]'
}

has_vanished() {
    [ -n "$(recall alive "$1" '')" ] && ! kill -0 "$(pid_of "$1")" 2>/dev/null
}

old_pid() {
    pid=$(pid_of "$1")
    echo "${pid:-?}"
}

incarnation() {
    cat "$(file_of "$1").starts" 2>/dev/null || cat "$(file_of "$1").tries" 2>/dev/null || echo 0
}

# "worker:1 (pid 4123) killed by signal 9 at step 211;"
loss() {
    echo "$1 (pid $(old_pid "$1")) $(cause "$1" "$2") at step $step;$(was_killed "$1")"
}

was_killed() {
    [ -z "$(get_silent "$1")" ] || echo " killed,"
}

# "killed by signal 9", or the last thing that it said.
cause() {
    why=$(get_silent "$1")
    if [ -n "$why" ]; then
        echo "silent for $why s"
    elif [ "$2" -gt 128 ]; then
        ending "$2"
    else
        echo "ended with exit $2 ($(last_words "$1"))"
    fi
}

# Not what a shell says of those that ended with it.
last_words() {
    grep -E '^(tf-[a-z]+|ssh): ' "$(file_of "$1").err" | tail -n 1 | grep . ||
        tail -n 1 "$(file_of "$1").err"
}

may_restart() {
    await_step "$1"
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
    lost=$(loss "$1" "$2")
    stop_generation
    [ -z "$stopping" ] || return
    newest=$(newest_step)
    if [ -n "$newest" ]; then
        repeat=$((step - newest))
        [ "$repeat" -ge 0 ] || repeat=0
        say "$lost restored from ${opt_save%/}@$newest, $repeat steps to repeat" \
            "(restart $restarts of $opt_max_restarts)"
    else
        say "$lost nothing was saved: all $step steps to repeat" \
            "(restart $restarts of $opt_max_restarts)"
    fi
    [ -z "$newest" ] || step=$newest
    [ -n "$newest" ] || step=0
    restarted=1
    start_again "$1" start_anew
}

# One that ended as soon as it was there lacks something that may come back, such as the address of
# a network that is down: after the second time in turn it is started a second later, then 2, 4, 8.
count_brief() {
    lived=$(($(date +%s) - $(recall since "$1" 0)))
    if [ "$lived" -lt 3 ]; then
        remember brief "$1" $(($(recall brief "$1" 0) + 1))
    else
        remember brief "$1" 0
    fi
}

# start_again TASK HOW: start_alone or start_anew
start_again() {
    brief=$(recall brief "$1" 0)
    [ "$brief" -lt 5 ] || brief=5
    if [ "$brief" -lt 2 ]; then
        "$2" "$1"
    else
        (sleep $((1 << (brief - 2))) && echo "again $1 $generation $2" >&7) 9>&- &
    fi
}

# Not if the job ends by now, or a shard's end has meanwhile taken everything back.
may_start() {
    [ -z "$stopping" ] && [ "$1" = "$generation" ]
}

start_alone() {
    forget_ports "$1"
    start_task "$1"
}

start_anew() {
    # shellcheck disable=SC2086
    forget_ports $tasks
    start_tasks
}

newest_step() {
    [ -n "$opt_save" ] || return
    tf-ckpt list --json "$opt_save" 2>/dev/null | sed -n '$s/^{"step":\([0-9]*\).*/\1/p'
}

# Ends what runs and forgets what it still says.
stop_generation() {
    kill "$watch" 2>/dev/null
    # shellcheck disable=SC2086
    signal_tasks KILL $tasks
    generation=$((generation + 1)) workers_running=0 caught=''
    while [ "$running" -gt 0 ]; do
        read -r what task value rest <&7 || continue
        case $what in
        started) on_started "$task" "$value" && signal_tasks KILL "$task" ;;
        ended) running=$((running - 1)) && remember alive "$task" '' ;;
        signal) caught="$task $value $rest" ;;
        esac
    done
    # shellcheck disable=SC2086
    [ -z "$caught" ] || on_signal $caught
}
