# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# Tasks on other hosts, over ssh. There tf-run --agent TASK reads from stdin what the task needs
# (nothing secret is in a command line): how often it was started, the key, the cluster and the
# graphs, each behind the number of its bytes, then the commands. Stdin then stays open: its end is
# the task's. TF_SSH_OPTIONS are more options of ssh.

# As long as nobody answers it is tried again; 255: nobody did.
run_remote() {
    deadline=$(($(date +%s) + $(seconds_of "$opt_timeout")))
    while :; do
        agents=$(count_agents "$1")
        over_ssh "$1" "$2" 8<"$job/lifeline"
        code=$?
        [ "$code" = 255 ] || return "$code"
        # it was there: what is lost is the connection
        [ "$(count_agents "$1")" = "$agents" ] || return 69
        [ "$(date +%s)" -lt "$deadline" ] || return 255
        echo "absent $1" >&7
        sleep 1
    done
}

# What is read from the other end's stdin comes through a pipe with a name: its writer can be ended,
# which ends the task in good order and leaves ssh to bring what it still says.
over_ssh() {
    rm -f "$file.in" && mkfifo "$file.in" || return 74
    tries=$(cat "$file.tries" 2>/dev/null || echo 0)
    echo $((tries + 1)) >"$file.tries" # here: whoever sends may be ended at any moment
    send_task "$1" >"$file.in" 7>&- &
    feeder=$!
    echo "feeder $1 $feeder" >&7
    # shellcheck disable=SC2016,SC2086  # for the shell over there; several options in one variable
    setsid sh -c 'echo "started $0 $$ $1" >&7; shift; exec 7>&- ssh "$@"' "$1" "$generation" \
        ${TF_SSH_OPTIONS:-} -o BatchMode=yes "$2" "exec sh -c $(quote "$(agent_command "$1")")" \
        <"$file.in" >"$file.rec"
    code=$?
    kill "$feeder" 2>/dev/null
    rm -f "$file.in"
    return "$code"
}

agent_command() {
    printf "cd %s && PATH=\$PATH:%s && exec tf-run --agent %s" "$(quote "$PWD")" \
        "$(quote "$here")" "$1"
}

count_agents() {
    grep -c "^tf-run: $1: on " "$(file_of "$1").err"
}

# Why a task of another host is not there: what ssh said last, or what the watcher says.
ssh_failure() {
    said=$(tail -n 1 "$(file_of "$1").err" 2>/dev/null)
    case $said in
    'ssh: '*) echo "$said" | sed 's/^ssh: connect to host .* port [0-9]*: /ssh: /' | tr -d '\r' ;;
    *) echo "$2" ;;
    esac
}

send_task() {
    echo "$tries"
    send_file "$job/key"
    send_file "$job/cluster"
    send_file "$job/parts.tfg"
    # shellcheck disable=SC2016  # the directory over there
    command_of "$1" '$job' | tr '\n' ' ' | sed "s/'\$job/\"\$job\"'/g"
    echo
    case $1 in worker:*) [ -z "$feed" ] || feed_of "$1" ;; esac
    echo
    exec setsid cat <&8 # what is sent to tf-run's process group is not for this task yet
}

send_file() {
    wc -c <"$1"
    cat "$1"
}

# head -c takes what it is told and no more: the rest stays in the pipe.
receive_file() {
    read -r bytes || exit 76
    is_count "$bytes" || exit 76
    head -c "$bytes" >"$1" || exit 74
}

agent_main() {
    echo "tf-run: $agent: on $(hostname)" >&2
    job=$(mktemp -d "${TMPDIR:-/tmp}/tf-run.XXXXXX") || exit 71
    trap : INT TERM HUP # the end of stdin is what counts
    read -r starts || exit 76
    receive_file "$job/key.new"
    receive_file "$job/cluster.new"
    tf-ps init --job "$job" --cluster "$job/cluster.new" && mv "$job/key.new" "$job/key" || exit
    receive_file "$job/parts.tfg"
    read -r command
    read -r feed
    [ "$starts" = 0 ] || echo "$starts" >"$(file_of "$agent").starts"
    exec 8<&0
    end_with_stdin &
    if [ -n "$feed" ]; then
        (eval "$feed") </dev/null | eval "$command --lifeline 8"
    else
        eval "$command --lifeline 8" </dev/null
    fi
    code=$?
    kill "$!" 2>/dev/null
    rm -rf "$job"
    exit "$code"
}

# A task that is frozen does not see its lifeline end.
end_with_stdin() {
    exec >/dev/null 2>&1
    trap 'kill "$waits"; exit' TERM # nothing that waits outlives the task
    cat <&8 &
    waits=$!
    wait "$waits"
    sleep 15 &
    waits=$!
    wait "$waits"
    rm -rf "$job"
    kill -KILL 0
}
