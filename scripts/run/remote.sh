# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# Tasks on other hosts, over ssh. There tf-run --agent TASK reads from stdin what the task needs (so
# that no secret is in a command line): how often it was started, the key, the cluster and the
# graphs, and the commands, each after the number of its bytes. Stdin then stays open: its end ends
# the task. TF_SSH_OPTIONS has further options for ssh.

# As long as the host does not answer, for which ssh exits with 255, ssh is tried again. Once the
# agent has reported that it runs, 255 means that the connection was lost.
write_remote() {
    there="grep -c $(quote "^tf-run: $1: on ") $(quote "$file.err")"
    entry host "$host"
    echo hold
    echo 'absent 255'
    remote=$(quote "exec sh -c $(quote "$(agent_command "$1")")")
    entry command "$(fetches_to "$file")
before=\$($there)
ssh \${TF_SSH_OPTIONS:-} -o BatchMode=yes $(host_word)$remote
code=\$?
[ \$code != 255 ] || [ \"\$($there)\" = \"\$before\" ] || code=69
exit \$code"
    entry feed "echo \$JOB_START
for file in $(quote "$job/key" "$job/cluster" "$job/parts.tfg"); do
    wc -c <\"\$file\" && cat \"\$file\" || exit 66
done
$(by_start "$1" '$job' print_there)
$(! is_fed "$1" || send_text "$(feed_of "$1")")
$(is_fed "$1" || echo 'echo 0')"
}

# Prints a line of shell that writes a text after the number of its bytes.
send_text() {
    printf '%s' "text=$(quote "$1"); printf %s \"\$text\" | wc -c; printf %s \"\$text\""
}

# Prints such a line for a command, with the job's directory that the agent makes there.
print_there() {
    send_text "$(printf '%s' "$1" | sed "s/'\$job/\"\$job\"'/g")"
}

# For commands to type: the folder where they run, and how to copy the job's directory there.
folder_there() {
    # shellcheck disable=SC2016
    printf 'cd %s && PATH=$PATH:%s && ' "$(quote "$PWD")" "$(quote "$here")"
}

copy_command() {
    printf 'cd %s && mkdir -pm 700 %s && tar -C %s -xpf -' "$(quote "$PWD")" "$(quote "$job")" \
        "$(quote "$job")"
}

agent_command() {
    printf '%sexec tf-run --agent %s' "$(folder_there)" "$1"
}

is_count() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
}

# head -c reads exactly that many bytes: the rest stays in the pipe.
receive_file() {
    read -r bytes || exit 76
    is_count "$bytes" || exit 76
    head -c "$bytes" >"$1" || exit 74
}

receive_text() {
    read -r bytes && is_count "$bytes" || exit 76
    head -c "$bytes"
}

agent_main() { # TASK
    agent=$1
    echo "tf-run: $agent: on $(hostname)" >&2
    job=$(mktemp -d "${TMPDIR:-/tmp}/tf-run.XXXXXX") || exit 71
    export TF_LOG_TIMES="${TF_LOG_TIMES-1}"
    trap : INT TERM HUP # only the end of stdin counts
    read -r starts || exit 76
    receive_file "$job/key.new"
    receive_file "$job/cluster.new"
    tf-ps init --job "$job" --cluster "$job/cluster.new" && mv "$job/key.new" "$job/key" || exit
    receive_file "$job/parts.tfg"
    command=$(receive_text) && feed=$(receive_text) || exit
    [ "$starts" = 0 ] || echo "$starts" >"$job/${agent%:*}-${agent#*:}.starts"
    exec 8<&0
    end_with_stdin &
    if [ -n "$feed" ]; then
        (eval "$feed") </dev/null | eval "$command --parent-pipe 8"
    else
        eval "$command --parent-pipe 8" </dev/null
    fi
    code=$?
    kill "$!" 2>/dev/null
    rm -rf "$job"
    exit "$code"
}

# Kills the task some time after stdin has ended: a frozen task does not see the end of its
# parent-death pipe.
end_with_stdin() {
    exec >/dev/null 2>&1
    trap 'kill "$waits"; exit' TERM # no waiting process outlives the task
    cat <&8 &
    waits=$!
    wait "$waits"
    sleep 15 &
    waits=$!
    wait "$waits"
    rm -rf "$job"
    kill -KILL 0
}
