# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
#
# Sets up the cluster (from a file, TF_CONFIG, a Slurm allocation, or numbers of shards and workers
# on this machine), and the job's directory.

# Prints tasks on this machine: Unix sockets in the job's directory need no ports and no key.
local_tasks() { # NUMBER JOB
    seq 0 $(($1 - 1)) | sed "s/.*/task $2:& unix:$2-&.link device=CPU:0/"
}

# Prints a cluster of a Slurm allocation: its nodes get the tasks in turn, shards first.
slurm_cluster() {
    port=${TF_PORT:-7000}
    scontrol show hostnames "$SLURM_JOB_NODELIST" |
        awk -v ps="$opt_ps" -v workers=$((opt_workers * ${opt_replica_tasks:-1})) -v port="$port" '
        { node[n++] = $1 }
        END {
            for (i = 0; i < ps + workers; i++) {
                job = i < ps ? "ps:" i : "worker:" i - ps
                print "task " job " " node[i % n] ":" port + int(i / n) " device=CPU:0"
            }
        }'
}

# Refuses a key that others may read: the copy in the job's directory would be no secret.
check_key_file() {
    [ -n "$opt_key_file" ] || return 0
    [ -z "$(find -L "$opt_key_file" -maxdepth 0 -type f -perm /077)" ] ||
        die 77 "$opt_key_file: others may read this key; chmod 600 it, or make a new one"
}

# Returns whether a task only serves: in a replica of several tasks, all but the first do.
serves() {
    case $1 in
    worker:*) [ $((${1#worker:} % replica_tasks)) -ne 0 ] ;;
    *) false ;;
    esac
}

no_shards() { # WHY
    [ "$opt_ps" != 0 ] || die 64 "--ps 0: $1"
    die 78 "the cluster has no task ps:0: $1"
}

# Writes the cluster into the job's directory, and sets the lists tasks, shards and workers.
make_job() {
    if [ -n "$opt_cluster" ]; then
        tf-ps init --job "$job" --cluster "$opt_cluster" || leave $?
    elif [ -n "${TF_CONFIG:-}" ]; then
        tf-ps init --job "$job" || leave $?
    else
        if [ -n "${SLURM_JOB_NODELIST:-}" ]; then
            slurm_cluster
        else
            local_tasks "$opt_ps" ps
            local_tasks $((opt_workers * ${opt_replica_tasks:-1})) worker
        fi >"$job/cluster.new" || leave 78
        tf-ps init --job "$job" --cluster "$job/cluster.new" || leave $?
        rm -f "$job/cluster.new"
    fi
    if [ -n "$opt_key_file" ]; then
        cp "$opt_key_file" "$job/key" || leave 66
    fi
    [ -n "$opt_resume" ] || rm -f "$job"/worker-*.evaluations
    cp "$job/cluster" "$job/run.cluster" # as given: tasks write their ports into the other
    tasks=$(awk '$1 == "task" { print $2 }' "$job/cluster")
    shards=$(printf '%s\n' "$tasks" | grep '^ps:') || shards=
    workers=$(printf '%s\n' "$tasks" | grep '^worker:') ||
        die 78 "the cluster has no task worker:0"
    [ -z "$wants_shards" ] || [ -n "$shards" ] ||
        no_shards "--mode $opt_mode wants shards; --mode allreduce needs none"
    n_workers=$(printf '%s\n' "$workers" | wc -l)
    replica_tasks=${opt_replica_tasks:-1}
    [ $((n_workers % replica_tasks)) -eq 0 ] ||
        die 78 "a replica has $replica_tasks tasks, but the cluster has $n_workers workers"
}

# Makes a graph per device of the cluster, in the background, so that a signal ends the wait.
make_parts() {
    set -- --mode "$opt_mode" -c "$job/cluster"
    [ -z "$opt_accumulate" ] || set -- "$@" --accumulate "$opt_accumulate"
    [ -z "$opt_replica_tasks" ] || set -- "$@" --replica-tasks "$opt_replica_tasks"
    [ -z "$opt_grid" ] || set -- "$@" --grid "$opt_grid" --towers '/job:ps/task:*'
    [ -z "$opt_compress" ] || set -- "$@" --compress "$opt_compress"
    [ -z "$graph_file" ] || [ "$graph_file" = - ] || set -- "$@" "$graph_file"
    exec 3<&0
    {
        tf-replicate "$@" <&3 3<&- | tf-place -c "$job/cluster" 3<&- |
            tf-part -c "$job/cluster" -o "$job/parts.tfg" 3<&- &
    } 2>"$job/said"
    made=0
    wait $! || made=$?
    exec 3<&-
    sed '/^tf-p[a-z]*: stdin: stopped by tf-/d' "$job/said" >&2 # the cause is reported once
    rm -f "$job/said"
    [ "$made" = 0 ] || leave "$made"
}

# Removes shards from the cluster if they have nothing to do: none is started or waited for.
leave_out_shards() {
    for file in cluster run.cluster; do
        awk '$1 == "task" && $2 ~ /^ps:/ { next }
             ($1 == "link" || $1 == "device") && ($2 ~ /^ps:/ || $3 ~ /^ps:/) { next }
             { print }' "$job/$file" >"$job/$file.new" || leave 74
        mv "$job/$file.new" "$job/$file" || leave 74
    done
    tasks=$workers shards=
    [ -n "$opt_quiet" ] ||
        printf 'tf-run: with --mode %s shards have nothing to do: none is started\n' "$opt_mode" >&2
}

# Sets holders from the graphs, and keepers to the shards if these have the variables. JOB/holders
# tells tools that query the shards of the job.
know_holders() {
    facts=$("$lib/parts" "$job/parts.tfg" ${opt_resume:+"$opt_save"}) || leave $?
    eval "$facts"
    [ -n "$served" ] || [ -z "$shards" ] || leave_out_shards
    keepers=
    case $holders in shards | none) keepers=$shards ;; esac
    case $holders in
    none) [ -z "$opt_save" ] || die 64 "--save $opt_save: the graph has no variables" ;;
    spread) [ -z "$opt_save" ] ||
        die 78 "--save $opt_save: $stray, and others are elsewhere: nobody has all variables" ;;
    esac
    printf '%s\n' "$holders" >"$job/holders" || leave 74
}

# Prints what follows a task in the cluster file: its address.
address_of() {
    awk -v task="$1" '$1 == "task" && $2 == task { print $3 }' "$job/cluster"
}

# Sets the names and addresses of this host once: if a network goes down its address is lost, but
# its tasks are still on this host.
know_this_host() {
    this_host="$(hostname) $(hostname -f 2>/dev/null) $(hostname -I 2>/dev/null)"
}

# Sets host to the host of a task; empty: this host.
host_of() {
    host=$(address_of "$1")
    case $host in
    unix:* | 127.0.0.1:* | localhost:* | '[::1]:'*) host= ;;
    *)
        host=${host%:*} host=${host#"["} host=${host%"]"}
        for name in $this_host; do
            [ "$host" != "$name" ] || host=
        done
        ;;
    esac
}
