# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# Tasks on other hosts, over ssh. There tf-run --agent TASK reads from stdin what the task needs
# (nothing secret is in a command line): the key, the cluster and the graphs, each behind the number
# of its bytes, then the command. Stdin then stays open: its end is the task's.

run_remote() {
    # shellcheck disable=SC2086  # several options in one variable
    {
        send_file "$job/key"
        send_file "$job/cluster"
        send_file "$job/parts.tfg"
        command_of "$1" '$job' | tr '\n' ' ' | sed "s/'\$job/\"\$job\"'/g"
        echo
        case $1 in worker:*) [ -z "$feed" ] || feed_of "$1" ;; esac
        echo
        cat <"$job/lifeline"
    } 7>&- | ssh ${TF_SSH_OPTIONS:-} -o BatchMode=yes "$2" \
        "cd $(quote "$PWD") && $(quote "${TF_REMOTE_RUN:-tf-run}")--agent $1" \
        >"$(file_of "$1").rec" 7>&-
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
    job=$(mktemp -d "${TMPDIR:-/tmp}/tf-run.XXXXXX") || exit 71
    receive_file "$job/key.new"
    receive_file "$job/cluster.new"
    tf-ps init --job "$job" --cluster "$job/cluster.new" && mv "$job/key.new" "$job/key"
    receive_file "$job/parts.tfg"
    read -r command
    read -r feed
    if [ -n "$feed" ]; then
        (eval "$feed") </dev/null | eval "$command --lifeline 8" 8<&0
    else
        eval "$command --lifeline 8" 8<&0 </dev/null
    fi
    code=$?
    rm -rf "$job"
    exit "$code"
}
