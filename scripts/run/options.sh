# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
#
# The options of tf-run: one table, from which parsing, --help and the manual page come.
# name|argument|text; without an argument it is a switch.

option_table() {
    cat <<'TABLE'
ps|K|parameter shards to start on this machine (1; 0 with --mode allreduce)
workers|N|workers to start on this machine (1)
cluster|FILE|the cluster, instead: its tasks and their addresses; other hosts by ssh
mode|MODE|how workers work together: see below (sync)
accumulate|N|a worker's gradients are summed over N steps before they are pushed
compress|TYPE|bf16 or fp16: gradients cross in 16 bits
run|ENTRY|what a worker runs in each step (train)
fetch|A,B|tensors that workers write in each step, to JOB/worker-N.rec
fetch-every|N|write them after every N steps only: worker-N.rec of a long job grows
fetch-limit|BYTES|begin worker-N.rec anew when it has as many, as 100M; one older is kept
steps|N|steps of each worker (until its feed ends)
seed|N|seed of the random ops (0)
save|DIR/|a store for checkpoints, see tf-ckpt
save-every|N|rounds, or steps, between two checkpoints
keep|N|checkpoints to keep (5; with allreduce: all)
run-name|NAME|of this run, by which a store tells it from others
resume||go on from the newest checkpoint in --save, if there is one
restore|CKPT|begin with these values
job|DIR|the directory of the job (a temporary one)
key-file|FILE|the key of the cluster, for TCP (one is made for the job)
no-key||TCP without a key, on loopback only
ops|FILE.so|ops of your own, for all tasks; on other hosts, too, by this name
threads|N|threads of each worker (cores over workers)
deterministic||the same bits whatever the number of threads
max-restarts|N[/TIME]|how often what died is started again, or how often in a time (5)
lease|TIME|how long a task may be silent (3s)
timeout|TIME|how long to wait for tasks, and for what others have to send (30s)
dry-run||print the commands instead of running them
json||with --version: as JSON
quiet||say nothing but errors
help||print this
version||print the version
man||print the manual page
TABLE
}

modes() {
    cat <<'MODES'
sync                    every worker counts in every step: same seed, same bits
sync,backup=1           the first n-1 of n workers count in a step; the last is late
async                   a push is applied when it comes
downpour,fetch=5,push=5 every 5 steps
ssp,bound=3             nobody reads a value staler than 3 clocks
allreduce               the workers sum among themselves, without shards
MODES
}

examples() {
    cat <<'EXAMPLES'
tf-graph m.lua | tf-opt | tf-run --ps 2 --workers 2 --save ckpt/ -- ./feed --batch 32
tf-run -c lab.cluster --key-file lab.key --mode async --resume --save ckpt/ m.tfg -- ./feed
EXAMPLES
}

description() {
    echo 'Trains a graph (a file, or stdin) on parameter shards and workers. The feed command runs'
    echo 'for each worker, with TF_SHARD=0/2 and so on, and writes what the worker is fed.'
}

print_help() {
    echo 'tf-run: run a distributed training job'
    echo
    examples | sed 's/^/  /'
    echo
    echo 'usage: tf-run [OPTION]... [GRAPH] [-- FEED COMMAND...]'
    echo '       tf-run status|stop --job DIR'
    echo
    description
    echo
    option_table | while IFS='|' read -r name argument text; do
        printf '  --%-18s %s\n' "$name${argument:+ $argument}" "$text"
        [ "$name" != mode ] || modes | sed 's/^/                         /'
    done
    echo
    echo 'INT, TERM and stop end the job, after a checkpoint if --save; two signals kill it.'
}

print_man() {
    printf '.TH TF-RUN 1 "" "tf-tools" "User Commands"\n'
    printf '.SH NAME\ntf-run \\- runs a distributed training job\n'
    printf '.SH SYNOPSIS\n.B tf-run\n[OPTION]... [GRAPH] [\\-\\- FEED COMMAND...]\n'
    printf '.br\n.B tf-run\nstatus|stop \\-\\-job DIR\n'
    printf '.SH DESCRIPTION\n'
    description
    printf '.SH OPTIONS\n'
    option_table | while IFS='|' read -r name argument text; do
        printf '.TP\n\\fB\\-\\-%s\\fR %s\n%s\n' "$(printf '%s' "$name" | sed 's/-/\\-/g')" \
            "$argument" "$text"
    done
    printf '.SH MODES\n.nf\n'
    modes
    printf '.fi\n.SH EXAMPLES\n.nf\n'
    examples
    printf '.fi\n.SH EXIT STATUS\n'
    printf '0, or that of the first task that failed for good, as of tf\\-exec(1);\n'
    printf '128+n when signal n ended the job.\n'
    printf '.SH SEE ALSO\ntf\\-ps(1), tf\\-exec(1), tf\\-replicate(1)\n'
}

# Writes what a function prints, and says when that cannot be.
emit() {
    (exec 3>&1) 2>/dev/null || die 74 'stdout: Bad file descriptor'
    text=$("$1")
    exec 3>&1
    why=$(printf '%s\n' "$text" | cat 2>&1 >&3) && exit 0
    [ -n "$why" ] || exit 141 # the reader has gone
    die 74 "stdout: ${why##*: }"
}

# The option nearest to a word, if one is near: by edit distance (Damerau 1964).
nearest_option() {
    option_table | awk -F'|' -v word="$1" '
        function least(a, b) { return a < b ? a : b }
        function distance(a, b,   i, j, d, swapped) {
            for (i = 0; i <= length(a); i++) d[i, 0] = i
            for (j = 0; j <= length(b); j++) d[0, j] = j
            for (i = 1; i <= length(a); i++)
                for (j = 1; j <= length(b); j++) {
                    d[i, j] = least(least(d[i - 1, j], d[i, j - 1]) + 1,
                        d[i - 1, j - 1] + (substr(a, i, 1) != substr(b, j, 1)))
                    swapped = substr(b, j, 1) substr(b, j - 1, 1)
                    if (i > 1 && j > 1 && substr(a, i - 1, 2) == swapped)
                        d[i, j] = least(d[i, j], d[i - 2, j - 2] + 1)
                }
            return d[length(a), length(b)]
        }
        { n = distance(word, $1); if (!best || n < best) { best = n; name = $1 } }
        END { if (best <= 2) print name }'
}

unknown_option() {
    near=$(nearest_option "$1")
    [ -z "$near" ] || die 64 "no such option --$1; did you mean --$near?"
    die 64 "no such option --$1; see tf-run --help"
}

print_version() {
    version=$(tf-exec --version)
    if [ -n "$opt_json" ]; then
        printf '{"tool":"tf-run","version":"%s"}\n' "${version##* }"
    else
        echo "tf-run ${version##* }"
    fi
}

# An option's value lives in opt_NAME, with '_' for '-'. The environment has TF_NAME.
option_variable() {
    printf 'opt_%s' "$1" | tr - _
}

set_option() {
    eval "$(option_variable "$1")=\$2"
}

defaults_from_environment() {
    for name in $(option_table | cut -d'|' -f1); do
        from=TF_$(printf '%s' "$name" | tr 'a-z-' 'A-Z_')
        eval "$(option_variable "$name")=\${$from:-}"
        check_switch "$name" "$from"
    done
    unset TF_JOB TF_CLUSTER # what is started is told by its command line
}

# A switch in the environment says yes or no.
check_switch() {
    eval "value=\$$(option_variable "$1")"
    [ -z "$(option_table | sed -n "s/^$1|\([^|]*\)|.*/\1/p")" ] || return
    case $value in
    '' | 1 | true | yes) ;;
    0 | false | no) set_option "$1" '' ;;
    *) die 64 "$2=$value: it is a switch: 1 or 0" ;;
    esac
}

parse_options() {
    agent='' verb='' graph_file='' feed='' feed_program=''
    defaults_from_environment
    while [ $# -gt 0 ]; do
        case $1 in
        --) shift && feed=$(quote "$@") && feed_program=${1-} && break ;;
        -c) shift && set -- --cluster "$@" ;;
        -q) opt_quiet=1 && shift && continue ;;
        -h) opt_help=1 && shift && continue ;;
        --agent) agent=$2 && shift 2 && continue ;;
        --*) ;;
        -?*) die 64 "no such option $1; see tf-run --help" ;;
        status | stop) verb=$1 && shift && continue ;;
        *)
            [ -z "$graph_file" ] || die 64 "one graph at a time: $graph_file, $1"
            graph_file=$1 && shift && continue
            ;;
        esac
        parse_long "$@"
        shift "$taken"
    done
    quiet=$opt_quiet
    [ -z "$opt_help" ] || emit print_help
    [ -z "$opt_man" ] || emit print_man
    [ -z "$opt_version" ] || emit print_version
}

# Sets taken to how many words the option was.
parse_long() {
    name=${1#--} taken=1
    value=
    case $name in *=*) value=${name#*=} && name=${name%%=*} && taken=0 ;; esac
    row=$(option_table | grep "^$name|") || unknown_option "$name"
    argument=$(printf '%s' "$row" | cut -d'|' -f2)
    if [ -z "$argument" ]; then
        [ "$taken" = 1 ] || die 64 "--$name takes no value"
        value=1
    elif [ "$taken" = 0 ]; then
        taken=1
    elif [ $# -lt 2 ]; then
        die 64 "--$name wants a value: $argument"
    else
        value=$2 taken=2
    fi
    set_option "$name" "$value"
}

# The words as one text that eval makes into the same words.
quote() {
    for word in "$@"; do
        case $word in
        *\'*) printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")" ;;
        *) printf "'%s' " "$word" ;;
        esac
    done
}

is_count() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
}

check_options() {
    : "${opt_mode:=sync}" "${opt_run:=train}" "${opt_max_restarts:=5}"
    : "${opt_lease:=3s}" "${opt_timeout:=30s}"
    : "${opt_workers:=1}"
    case $opt_mode in allreduce*) : "${opt_ps:=0}" ;; *) : "${opt_ps:=1}" ;; esac
    is_count "$opt_ps" || die 64 "--ps $opt_ps: a number is wanted"
    is_count "$opt_workers" || die 64 "--workers $opt_workers: a number is wanted"
    is_count "${opt_max_restarts%%/*}" ||
        die 64 "--max-restarts $opt_max_restarts: a number is wanted, or one a time, as in 5/1h"
    [ "$opt_workers" -gt 0 ] || die 64 "--workers 0: nobody would work"
    if [ -z "$graph_file" ] && [ -t 0 ]; then
        die 64 "no graph: name a file, or pipe one in: tf-graph m.lua | tf-opt | tf-run ..."
    fi
    case $opt_save in
    '' | */) ;;
    *) die 64 "--save $opt_save: a folder is wanted, as in $opt_save/" ;;
    esac
    [ -z "$opt_resume" ] || [ -n "$opt_save" ] ||
        die 64 "--resume goes on from what --save DIR/ holds"
    [ -z "$graph_file" ] || [ "$graph_file" = - ] || [ -r "$graph_file" ] ||
        die 66 "$graph_file: cannot be read"
    [ ! -d "$graph_file" ] || die 65 "$graph_file: is a directory"
    [ -z "$opt_ops" ] || export TF_OPS="$opt_ops" # of all that is run here
}
