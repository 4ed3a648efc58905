# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# The processes: what each is called with, and what the supervisor is told about it. Files of a task
# are named after it: worker-0.err.

# The hosts of all workers, a line each, behind "=": for threads_words.
know_worker_hosts() {
    worker_hosts=$(for task in $workers; do
        host_of "$task"
        echo "=$host"
    done)
    cores_here=$(tf-supervise --cores) || exit
}

# As many threads for each worker of a host as that has cores for one; elsewhere a shell there asks.
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

# given OPTION...: those that have a value, as tf-exec has them by the same names.
given() {
    for option in "$@"; do
        eval "value=\$opt_$(printf %s "$option" | tr - _)"
        [ -z "$value" ] || quote "--$option" "$value"
    done
}

# It is worker 0 that gives all variables their first values, unless there are better ones.
first_worker_words() {
    [ -n "$opt_restore" ] || return 0
    case $1 in again | resumed) return ;; esac
    newest=
    [ -z "$opt_resume" ] || newest=$(newest_step "$opt_save") || exit
    [ -n "$newest" ] || quote --restore "$opt_restore"
}

# Who saves evaluates; of those that shards do not save for, worker 0. With --eval-split all do.
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

# Where workers have the variables the first of them saves and, when its data has ended, the next
# that has all, too, and reaches the store, which cannot lie on a network file system.
worker_saves() {
    [ -z "$keepers" ] && [ -n "$opt_save" ] || return
    [ "$holders" = each-worker ] || [ "$1" = worker:0 ] || return
    host_of worker:0
    first_host=$host
    host_of "$1"
    [ "$host" = "$first_host" ]
}

# The command of a task, given the job's directory there and how it starts: for the first time,
# again, or anew with all others, when there is a checkpoint (resumed) or none.
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

# A subshell that somebody killed has said too little.
lost() {
    die 71 'a part of tf-run was killed'
}

# by_start TASK JOB FORM: a line of the shell that runs the command as the start wants it. FORM is
# a function that makes a line of a command.
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

# A worker is fed by a command of its own, which knows its part of the data.
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

# asked_of_graph OPTION...: what a step is to be fed. What is wrong is said of the graph that was
# given, as the one that was made of it is gone with its directory.
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

# What is fetched is in the graph, and what a step is to be fed comes from a feed command. The
# metric is a number that is fetched, or evaluated; shards have none but of checkpoints that they
# make.
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
    # the entry train was there for tf-replicate
    [ -n "$wants_feed" ] || [ $# -gt 0 ] || [ "$opt_run" != train ] || return 0
    needs=$(asked_of_graph "$@") || leave $?
    needs=$(printf '%s' "$needs" | tr '\n' ' ' | sed 's/ /, /g')
    [ -z "$wants_feed" ] || [ -z "$needs" ] ||
        die 64 "$opt_run is to be fed $needs; name the command that does: -- ./feed"
}

# The feed command is there, where it is to run here.
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

# What comes over ssh is written by ssh.
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

# What a task is started with by hand.
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

# ---- what the supervisor is told, docs/supervise.md ----

# entry WORD TEXT: a text of several lines goes on behind a blank.
entry() {
    printf '%s %s\n' "$1" "$2" | sed '2,$s/^/ /'
}

hook() {
    entry "$1" "exec sh $(quote "$lib/hook.sh" "$1" "$job")"
}

# What the hooks want to know.
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
    printf '%s\n' 'name tf-run' "guard $guard" "lease $opt_lease" "timeout $opt_timeout" \
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

# Whether workers keep what the shards learn of for a checkpoint only, and do not find it in a
# journal when they are killed: their clock knows.
workers_keep() {
    tf-show --text --elide "$job/parts.tfg" | grep -c ' = ClockJoin().* keeps=true' >/dev/null
}

# Whether a worker that died can go on where it was: not if others wait for it, nor if it may have
# been in the middle of an update (of tiles), nor where what it kept was in it alone.
goes_back_alone() {
    [ -n "$keepers" ] && [ -z "$opt_grid" ] && [ -z "$keeps" ]
}

# What the user is to hear of a task at once: texts of it, and what is waited for.
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

# What an earlier process has fetched stays: worker-0.rec becomes worker-0.1.rec, if the first start
# wrote it, and worker-0.0.rec if that was another job. Where it is limited it takes the place of
# what the limit has kept, worker-0.old.rec: or there would be a file more with each restart.
fetches_to() { # worker-0
    file=$(quote "$1")
    file=${file% }
    kept='$JOB_START'
    [ -z "$opt_fetch_limit" ] || kept='$([ "$JOB_START" = 0 ] && echo 0 || echo old)'
    printf '%s\n' "[ ! -s $file.rec ] || mv -- $file.rec $file.$kept.rec || exit" \
        "exec >$file.rec"
}

run_here() {
    printf '%s\n' "exec $1'--lifeline' '8'"
}
