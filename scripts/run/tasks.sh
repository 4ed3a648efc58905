# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# The processes: what each is called with, how one is started and ended. Files of a task are named
# after it: worker-0.err.

file_of() {
    printf '%s/%s' "$job" "$(printf '%s' "$1" | tr : -)"
}

cores() {
    getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1
}

# As many threads for each as there are cores for one, if all of them are here.
worker_threads() {
    share=$(($(cores) / n_workers))
    [ "$share" -gt 0 ] || share=1
    echo "${opt_threads:-$share}"
}

common_words() {
    quote --job "$1" --task "$2" --lease "$opt_lease" --timeout "$opt_timeout"
    [ -z "$opt_no_key" ] || quote --no-key
    [ -z "$opt_deterministic" ] || quote --deterministic
}

# It is worker 0 that gives all variables their first values. Later there are better ones.
first_worker_words() {
    [ -z "$opt_restore" ] || [ "$(incarnation worker:0)" != 0 ] || is_resumed ||
        quote --restore "$opt_restore"
}

saving_words() {
    quote --save "$opt_save"
    [ -z "$opt_save_every" ] || quote --save-every "$opt_save_every"
    [ -z "$opt_run_name" ] || quote --run-name "$opt_run_name"
    [ -z "$opt_resume$restarted" ] || quote --resume
}

# Without shards the first worker saves and, when its data has ended, the next that reaches the
# store, which cannot lie on a network file system.
worker_saves() {
    [ -z "$shards" ] && [ -n "$opt_save" ] || return
    host_of worker:0
    first_host=$host
    host_of "$1"
    [ "$host" = "$first_host" ]
}

is_resumed() {
    [ -n "$opt_resume$restarted" ] && [ -n "$(newest_step)" ]
}

# The command of a task, given the job's directory there.
command_of() {
    case $1 in
    ps:*)
        quote tf-ps serve
        common_words "$2" "$1"
        [ -z "$opt_save" ] || saving_words
        [ -z "$opt_keep" ] || quote --keep "$opt_keep"
        ;;
    worker:*)
        quote tf-exec -g "$2/parts.tfg"
        common_words "$2" "$1"
        quote --run "$opt_run" --threads "$(worker_threads)"
        [ -z "$opt_fetch" ] || quote --fetch "$opt_fetch"
        [ -z "$opt_steps" ] || quote --steps "$opt_steps"
        [ -z "$opt_seed" ] || quote --seed "$opt_seed"
        ! worker_saves "$1" || saving_words
        [ "$1" != worker:0 ] || first_worker_words
        ;;
    esac
}

# A worker is fed by a command of its own, which knows its part of the data.
feed_of() {
    printf 'TF_SHARD=%s/%s; export TF_SHARD; %s' "${1#worker:}" "$n_workers" "$feed"
}

print_commands() {
    echo "# each in a terminal of its own; the job's directory is $job"
    for task in $tasks; do
        host_of "$task"
        printf '%s' "${host:+ssh $host }"
        case $task in worker:*) [ -z "$feed" ] || printf '(%s) | ' "$(feed_of "$task")" ;; esac
        command_of "$task" "$job"
        echo
    done
}

# Becomes the command, out of reach of the terminal's signals, and says under which pid.
become() {
    tell="echo started $1 \$\$ $generation >&7; exec 7>&- \"\$@\""
    echo "exec setsid sh -c '$tell' sh $(command_of "$1" "$job") --lifeline 8"
}

# What feeds a worker ends with it, even what only waits for more, as tail -f does, and with tf-run,
# however that ends: then the lifeline does. Descriptor 6 says who that is, and whether it has
# ended; it can be read when the directory is gone.
run_fed() {
    : >"$file.feeder"
    # shellcheck disable=SC2016,SC2094  # for the shell in there; both ends of one file
    setsid -w sh -c 'echo $$ >&6
        (cat <&8; kill -- "-$$") 6>&- >/dev/null &
        eval "$1" 6>&- 8<&-
        code=$?
        echo over >&6
        trap "" TERM
        kill -- "-$$"
        exit "$code"' sh \
        "$(feed_of "$1")" 6>"$file.feeder" 7>&- 8<"$job/lifeline" 2>>"$file.err" </dev/null |
        {
            trap : INT TERM HUP
            exec 6<"$file.feeder"
            (eval "$(become "$1")") 6<&- 8<"$job/lifeline" >"$file.rec" 2>>"$file.err"
            code=$?
            if read -r feeder && ! read -r _; then kill -- "-$feeder"; fi <&6 2>/dev/null
            exit "$code"
        }
}

# Runs in a background process of its own, which outlives the task only to tell how it ended.
run_task() {
    exec 9>&- # not a redirection of the call: a shell keeps a copy of what that closes
    trap : INT TERM HUP # what a terminal sends to all of its processes is for tf-run to hand on
    file=$(file_of "$1")
    [ ! -s "$file.rec" ] || mv "$file.rec" "$file.$(cat "$file.starts" 2>/dev/null).rec"
    host_of "$1"
    if [ -n "$host" ]; then
        run_remote "$1" "$host" 2>>"$file.err"
    elif [ "${1%:*}" = worker ] && [ -n "$feed" ]; then
        run_fed "$1"
    else
        (eval "$(become "$1")") 8<"$job/lifeline" >"$file.rec" 2>>"$file.err" </dev/null
    fi
    echo "ended $1 $? $generation" >&7
}

start_task() {
    set_silent "$1" ''
    remember asked "$1" "$(date +%s)" # from when it is waited for
    remember feeder "$1" ''
    run_task "$1" 2>>"$(file_of "$1").err" &
    running=$((running + 1))
    [ "${1%:*}" = ps ] || workers_running=$((workers_running + 1))
}

# One that was started has ended.
count_out() {
    running=$((running - 1))
    [ "${1%:*}" = ps ] || workers_running=$((workers_running - 1))
}

# Empty before it was started; of another host's task, its ssh.
pid_of() {
    recall pid "$1" ''
}

# On another host it is the end of its stdin that ends a task in good order.
signal_tasks() {
    signal=$1
    shift
    for task in "$@"; do
        [ -n "$(recall alive "$task" '')" ] || continue
        pid=$(pid_of "$task")
        [ "$signal" = KILL ] || pid=$(recall feeder "$task" "$pid")
        kill -s "$signal" "$pid" 2>/dev/null
    done
}
