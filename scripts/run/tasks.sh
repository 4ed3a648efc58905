# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# The processes: the command line of each, and its entry for the supervisor. Files of a task are
# named after it: worker-0.err.

# Sets worker_hosts, for threads_words: the hosts of all workers, a line each, behind "=".
know_worker_hosts() {
    worker_hosts=$(for task in $workers; do
        host_of "$task"
        echo "=$host"
    done)
    cores_here=$(tf-supervise --cores) || exit
}

# Prints the option for threads: a worker's share of its host's cores, counted there by a shell.
threads_words() { # TASK
    host_of "$1"
    n=$(printf '%s\n' "$worker_hosts" | grep -cxF "=$host")
    if [ -n "$opt_threads" ]; then
        quote --threads "$opt_threads"
    elif [ -z "$host" ]; then
        quote --threads "$((cores_here / n ? cores_here / n : 1))"
    else
        # shellcheck disable=SC2016
        printf '%s "$(c=$(tf-supervise --cores) && echo $((c / %s ? c / %s : 1)))" ' \
            --threads "$n" "$n"
    fi
}

common_words() {
    quote --job "$1" --task "$2" --lease "$opt_lease" --timeout "$opt_timeout"
    [ -z "$opt_no_key" ] || quote --no-key
    [ -z "$opt_deterministic" ] || quote --deterministic
    [ -z "$opt_exact" ] || quote --exact
    [ -z "$opt_ops" ] || quote --ops "$opt_ops"
}

# given OPTION...: prints those that have a value, for tf-exec, which has the same names.
given() {
    for option in "$@"; do
        eval "value=\$opt_$(printf %s "$option" | tr - _)"
        [ -z "$value" ] || quote "--$option" "$value"
    done
}

# Prints --restore for worker 0, which gives variables their first values, unless it resumes.
first_worker_words() {
    [ -n "$opt_restore" ] || return 0
    case $1 in again | resumed) return ;; esac
    newest=
    [ -z "$opt_resume" ] || newest=$(newest_step "$opt_save") || exit
    [ -n "$newest" ] || quote --restore "$opt_restore"
}

# Returns whether a worker evaluates: one that saves; worker 0; with --eval-split, all.
evaluates() {
    [ -n "$opt_eval" ] && { [ "$1" = worker:0 ] || [ -n "$opt_eval_split" ] || worker_saves "$1"; }
}

evaluating_words() {
    given eval eval-feed eval-every stop-when reduce
    [ -z "$opt_eval_split" ] || [ "$n_workers" = "$replica_tasks" ] || quote --eval-split
}

saving_words() {
    quote --save "$opt_save"
    given save-every save-best keep run-name
    case $opt_resume$1 in 1* | anew | resumed) quote --resume ;; esac
}

# Returns whether a worker saves. If workers have the variables, worker 0 does and, once its data
# has ended, the next that has all variables and the same host: a store cannot lie on a network.
worker_saves() {
    [ -z "$keepers" ] && [ -n "$opt_save" ] || return
    [ "$holders" = each-worker ] || [ "$1" = worker:0 ] || return
    host_of worker:0
    first_host=$host
    host_of "$1"
    [ "$host" = "$first_host" ]
}

# command_of TASK JOB START: prints the command of a task, with the job's directory on its host.
# START is first, again, or, for a start with all others, resumed (from a checkpoint) or anew.
command_of() {
    if serves "$1"; then
        quote tf-exec serve
        threads_words "$1"
        common_words "$2" "$1"
        return
    fi
    case $1 in
    ps:*)
        quote tf-ps serve
        common_words "$2" "$1"
        [ -z "$opt_save" ] || [ -z "$keepers" ] || saving_words "$3"
        ;;
    worker:*)
        quote tf-exec -g "$2/parts.tfg"
        common_words "$2" "$1"
        quote --run "$opt_run"
        threads_words "$1"
        given fetch fetch-every fetch-limit steps seed
        [ -z "$opt_check" ] || quote --check
        [ -z "$opt_trace" ] || quote --trace "${opt_trace%/}/"
        ! worker_saves "$1" || saving_words "$3"
        [ "$1" != worker:0 ] || first_worker_words "$3"
        ! evaluates "$1" || evaluating_words
        ;;
    esac
}

# Ends tf-run if a subshell was killed, whose output is then incomplete.
lost() {
    die 71 'a part of tf-run was killed'
}

# by_start TASK JOB FORM: prints a line of shell that runs the command for the kind of start. FORM
# is a function that turns a command into a line.
by_start() {
    first=$(command_of "$1" "$2" first) || exit 71
    again=$(command_of "$1" "$2" again) || exit 71
    anew=$(command_of "$1" "$2" anew) || exit 71
    resumed=$(command_of "$1" "$2" resumed) || exit 71
    if [ "$first$first$first" = "$again$anew$resumed" ]; then
        "$3" "$first"
        return
    fi
    after=$("$3" "$anew")
    [ "$anew" = "$resumed" ] ||
        after="list= store=$(quote "$opt_save")
[ ! -e \"\$store/data.mdb\" ] || list=\$(tf-ckpt list \"\$store\") || exit
if [ -n \"\$list\" ]; then $("$3" "$resumed")
else $after
fi"
    printf 'case $JOB_HOW in\nfirst) %s ;;\nagain) %s ;;\n*) %s ;;\nesac' \
        "$("$3" "$first")" "$("$3" "$again")" "$after"
}

# Prints the feed command of a worker, which learns its part of the data from TF_SHARD.
feed_of() {
    printf 'TF_SHARD=%s/%s; export TF_SHARD; %s' "$((${1#worker:} / replica_tasks))" \
        "$((n_workers / replica_tasks))" "$feed"
}

is_fed() {
    case $1 in
    worker:*) [ -n "$feed" ] && ! serves "$1" ;;
    *) false ;;
    esac
}

# asked_of_graph OPTION...: prints the feeds that a step needs. Errors name the graph that was
# given, as the one derived from it disappears with its directory.
asked_of_graph() {
    made=$job/parts.tfg given=${graph_file#-} status=0
    tf-exec -g "$made" --run "$opt_run" --needs "$@" </dev/null 2>"$job/refused" || status=$?
    said=$(cat "$job/refused")
    rm -f "$job/refused"
    case $said in
    *"$made"*) said=${said%%"$made"*}${given:-stdin}${said#*"$made"} ;;
    esac
    [ -z "$said" ] || printf '%s\n' "$said" | sed '1s/tf-exec: /tf-run: /' >&2
    return "$status"
}

# Checks that the graph has all that is fetched, and that there is a feed command if a step needs
# feeds. The metric must be a number that is fetched or evaluated; shards have metrics only for
# checkpoints that they make.
check_graph() {
    [ -z "$opt_save_best" ] || [ -z "$keepers" ] || [ -n "$opt_save_every" ] ||
        die 64 "--save-best $opt_save_best: shards choose among what --save-every makes"
    wants_feed=
    [ -n "$feed_program" ] || [ "$opt_steps" = 0 ] || wants_feed=1
    set --
    [ -z "$opt_fetch" ] || set -- "$@" --fetch "$opt_fetch"
    [ -z "$opt_save_best" ] || set -- "$@" --save "$opt_save" --save-best "$opt_save_best"
    [ -z "$opt_eval_split" ] || [ "$holders" = each-worker ] ||
        die 64 "--eval-split: with --mode $opt_mode workers do not have the variables of one step"
    [ -z "$opt_eval" ] || eval "set -- \"\$@\" $(evaluating_words)"
    # tf-replicate has found the entry train
    [ -n "$wants_feed" ] || [ $# -gt 0 ] || [ "$opt_run" != train ] || return 0
    needs=$(asked_of_graph "$@") || leave $?
    needs=$(printf '%s' "$needs" | tr '\n' ' ' | sed 's/ /, /g')
    [ -z "$wants_feed" ] || [ -z "$needs" ] ||
        die 64 "$opt_run is to be fed $needs; name the command that does: -- ./feed"
}

# Checks that the feed command exists, if it is to run on this host.
check_feed() {
    [ -n "$feed_program" ] || return 0
    for task in $workers; do
        host_of "$task"
        [ -z "$host" ] || continue
        case $feed_program in
        */*) [ -e "$feed_program" ] ;;
        *) command -v -- "$feed_program" >/dev/null ;;
        esac || die 127 "$feed_program: there is no such feed command"
        case $feed_program in
        */*) [ -x "$feed_program" ] && [ ! -d "$feed_program" ] ||
            die 126 "$feed_program: the feed command cannot be run" ;;
        esac
        return
    done
}

# Records from other hosts are written by ssh, which knows no limit.
check_fetch_limit() {
    [ -n "$opt_fetch_limit" ] || return 0
    for task in $workers; do
        host_of "$task"
        [ -z "$host" ] ||
            die 78 "--fetch-limit: $task is on $host, its records come by ssh; use --fetch-every"
    done
}

host_word() {
    case $host in
    *[!A-Za-z0-9._:%@-]*) quote "$host" ;;
    *) printf '%s ' "$host" ;;
    esac
}

print_copy() {
    printf "tar -C %s-cf - cluster key parts.tfg | ssh %s%s\n" "$(quote "$job")" "$(host_word)" \
        "$(quote "$(copy_command)")"
}

# Prints the command that starts a task by hand.
typed_command() { # TASK
    ! is_fed "$1" || printf '(%s) | ' "$(feed_of "$1")"
    command_of "$1" "$job" first
}

print_commands() {
    printf "# each in a terminal of its own; the job's directory is %s\n" "$job"
    know_worker_hosts
    copied=
    for task in $tasks; do
        host_of "$task"
        line=$(typed_command "$task") || exit
        if [ -n "$host" ]; then
            case $copied in *"=$host="*) ;; *) print_copy ;; esac
            copied="$copied=$host="
            line="ssh $(host_word)$(quote "$(folder_there)$line")"
        fi
        printf '%s\n' "$line"
    done
}

# ---- the supervisor's file, docs/supervise.md ----

# entry WORD TEXT: prints an entry; further lines of the text begin with a blank.
entry() {
    printf '%s %s\n' "$1" "$2" | sed '2,$s/^/ /'
}

hook() {
    entry "$1" "exec sh $(quote "$lib/hook.sh" "$1" "$job")"
}

# Prints what the hooks need to know.
write_options() {
    printf '%s\n' "save=$(quote "$opt_save")" "save_best=$(quote "$opt_save_best")" \
        "timeout=$(quote "$opt_timeout")" \
        "keepers=$(quote "$keepers")" "tasks=$(quote "$tasks")" \
        "replica_tasks=$replica_tasks" "quiet=$(quote "$opt_quiet")"
}

write_tasks() {
    keeps=
    [ -z "$keepers" ] || ! workers_keep || keeps=1
    know_worker_hosts
    entry job "$job"
    entry cleanup "$cleanup"
    printf '%s\n' 'name tf-run' "reaper $reaper" "lease $opt_lease" "timeout $opt_timeout" \
        "max-restarts $opt_max_restarts"
    [ -z "$opt_no_key" ] || echo no-key
    [ -z "$opt_quiet" ] || echo quiet
    hook restart
    [ -z "$keepers" ] || [ -z "$opt_save" ] || hook stop
    [ -z "$keepers" ] || hook end
    hook over
    for task in $tasks; do
        write_task "$task"
    done
}

# Returns whether workers keep values that reach the shards only for a checkpoint, and which no
# journal gives back after a kill: the attribute is at their clock.
workers_keep() {
    tf-show --text --elide "$job/parts.tfg" | grep -c ' = ClockJoin().* keeps=true' >/dev/null
}

# Returns whether a worker that died can restart alone: not if others wait for it, nor if it may
# have been within an update (of tiles), nor if it alone had values of its own.
goes_back_alone() {
    [ -n "$keepers" ] && [ -z "$opt_grid" ] && [ -z "$keeps" ]
}

# Prints which messages of a task the user sees at once: these texts, and waits for a lock.
repeat() { # TEXT...
    entry repeats "$(printf '%s\n' "$@" 'waiting for the lock of ')"
}

write_task() {
    file=$job/${1%:*}-${1#*:}
    printf '%s\n' '' "task $1" 'ends 64 65 66 70 77 78'
    entry errors "$file.err"
    case $1 in
    ps:*)
        printf '%s\n' service 'restart all'
        repeat 'no checkpoint: '
        ;;
    *)
        ! serves "$1" || echo service
        [ "$1" != worker:0 ] || [ -z "$opt_stop_when" ] || echo leads
        repeat 'not saved: ' 'not pushed: ' 'stopped, as '
        goes_back_alone && echo 'restart alone' || echo 'restart all'
        ;;
    esac
    host_of "$1"
    if [ -n "$host" ]; then
        write_remote "$1"
    else
        line=$(by_start "$1" "$job" run_here) || lost
        entry command "$(fetches_to "$file")
$line" || lost
        ! is_fed "$1" || entry feed "$(feed_of "$1")" || lost
    fi
}

# Prints a line of shell that keeps the fetches of an earlier process: worker-0.rec becomes
# worker-0.1.rec if the first start wrote it, worker-0.0.rec if another job did. With --fetch-limit
# it replaces worker-0.old.rec, which the limit kept: else each restart would add a file.
fetches_to() { # worker-0
    file=$(quote "$1")
    file=${file% }
    kept='$JOB_START'
    [ -z "$opt_fetch_limit" ] || kept='$([ "$JOB_START" = 0 ] && echo 0 || echo old)'
    printf '%s\n' "[ ! -s $file.rec ] || mv -- $file.rec $file.$kept.rec || exit" \
        "exec >$file.rec"
}

run_here() {
    printf '%s\n' "exec $1'--parent-pipe' '8'"
}
