#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Custom ops: every program that reads graphs accepts them, and names the missing ones without them.
# shellcheck disable=SC2154,SC2030,SC2031,SC2094  # root, stderr are set elsewhere
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    objects=$(realpath -m "$root/${BUILD:-build}/tests/lib")
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {}}
y = OwnSquare(x)
entry.y = y
LUA
}

teardown() {
    kill_pids "${pids[@]}"
}

# says STATUS TEXT COMMAND...: checks the status, and the only line on stderr
says() {
    local wanted=$1 text=$2
    shift 2
    run --separate-stderr -"$wanted" bash -c '"$@" >/dev/null' bash "$@"
    [ "$stderr" = "$text" ] || {
        echo "$*: '$stderr', not '$text'"
        return 1
    }
}

own() { # TOOL ARGUMENT...
    local tool=$1
    shift
    "$tool" --ops "$objects/own_ops.so" "$@"
}

@test "from a script to a step, each program is given the object" {
    own tf-graph m.lua | own tf-grad --of y --wrt x | own tf-opt | own tf-place |
        own tf-part >m.tfg
    own tf-show --text m.tfg | finds 'OwnScaledProduct(.*) {factor=2.0}'
    own tf-exec -g m.tfg --run grad --feed x=3 | tf-show | finds 'grad/x 6$'
    own tf-op OwnSquare 3.0 | tf-show | finds ' 9$'
    own tf-op list >list
    grep -q '^OwnFill  *The step.s number\.$' list
}

@test "without it each of them names the op and the option" {
    own tf-graph m.lua >m.tfg
    hint="ops of your own come with --ops FILE.so"
    unknown="unknown op 'OwnSquare' (did you mean 'Square'?)"
    says 65 "tf-opt: m.tfg: m.lua:2: node 'y': $unknown; $hint" tf-opt m.tfg
    for tool in tf-place tf-part "tf-grad --of y --wrt x" "tf-exec --run y --feed x=1 -g" \
        "tf-show --text"; do
        # shellcheck disable=SC2086
        run --separate-stderr -65 bash -c '"$@" >/dev/null' bash $tool m.tfg
        [[ $stderr == *"unknown op 'OwnSquare'"*"$hint" ]]
    done
    says 64 "tf-op: no op 'OwnSquare'; did you mean 'Square'?" tf-op OwnSquare 3
    run --separate-stderr -65 bash -c 'tf-graph m.lua >/dev/null'
    [[ $stderr == "tf-graph: m.lua:2: "*"OwnSquare"* ]]
}

@test "TF_OPS_PATH names files and folders; what is named twice is loaded once" {
    mkdir ops
    cp "$objects/own_ops.so" ops/
    for path in ops "$objects/own_ops.so" ":ops:ops/own_ops.so:"; do
        TF_OPS_PATH=$path tf-op OwnSquare 3.0 | tf-show | finds ' 9$'
    done
    TF_OPS_PATH=ops tf-op --ops ops/own_ops.so OwnSquare 3.0 >/dev/null
    TF_OPS=ops/own_ops.so tf-op OwnSquare 3.0 >/dev/null
    says 66 "tf-op: TF_OPS_PATH: none: cannot be read: No such file or directory" \
        env TF_OPS_PATH=ops:none tf-op OwnSquare 3.0
    echo 'no object' >ops/zzz.so
    run --separate-stderr -65 bash -c 'TF_OPS_PATH=ops tf-op list >/dev/null'
    [[ $stderr == "tf-op: TF_OPS_PATH: ops/zzz.so: not an object with ops: "* ]]
}

@test "what is no object, or of another version, is refused with a line" {
    refused() { # STATUS WHAT WHY TOOL [OPERAND]...
        local status_wanted=$1 object=$objects/refused-$2.so why=$3 tool=$4
        shift 4
        says "$status_wanted" "$tool: --ops $object: $why" "$tool" --ops "$object" "$@"
    }
    refused 78 abi "made for version 999 of the interface for ops, not 1: compile it again" \
        tf-op list
    refused 78 later "made for a later tf-tools: compile it again" tf-graph m.lua
    refused 65 nothing "not an object with ops: it exports no tf_ops" tf-opt m.tfg
    refused 65 taken "op Neg exists already" tf-op list
    says 65 "tf-op: --ops m.lua: not an object with ops: invalid ELF header" tf-op --ops m.lua list
    says 66 "tf-show: --ops none.so: cannot be read: No such file or directory" \
        tf-show --ops none.so m.tfg
    mkfifo pipe
    says 65 "tf-op: --ops pipe: not an object with ops: it is no file" \
        timeout 20 tf-op --ops pipe list
    says 65 "tf-op: --ops .: not an object with ops: it is no file" tf-op --ops . list
}

@test "an error of a kernel names the node, the op and the script's line" {
    echo 'y = OwnWrong(Const({1.0, 2.0}), {what = 5})' >m.lua
    own tf-graph m.lua >m.tfg
    says 65 "tf-exec: m.tfg: step 1: node 'y' (m.lua:1): OwnWrong: 5 is too much" \
        tf-exec --ops "$objects/own_ops.so" -g m.tfg --fetch y
}

# shard [OPTION]...: starts a shard
shard() {
    tf-ps serve --task ps:0 "$@" 2>ps.err 3>&- &
    pids+=($!)
    soon 20 grep -q 'ready on' ps.err
}

@test "a shard runs such an op if it was started with it, and else names it and the option" {
    export TF_CLUSTER=c OMP_NUM_THREADS=1
    printf 'task ps:0 unix:p\ntask worker:0 unix:w\n' >c
    cat >m.lua <<'LUA'
device("/job:worker/task:0", function() x = Placeholder{dtype = float32, shape = {}} end)
device("/job:ps/task:0", function() y = OwnSquare(x) end)
entry.y = y
LUA
    own tf-graph m.lua | own tf-place -c c | own tf-part >m.tfg
    shard
    worker=(timeout 60 tf-exec --ops "$objects/own_ops.so" -g m.tfg --task worker:0
        --run y --feed x=3)
    run --separate-stderr -65 "${worker[@]}"
    [[ $stderr == *"ps:0"*"unknown op 'OwnSquare'"*"--ops FILE.so" ]]
    end_pids "${pids[@]}"
    wait "${pids[0]}"
    shard --ops "$objects/own_ops.so"
    "${worker[@]}" | tf-show | finds 'y 9$'
}

@test "tf-run gives the object to all tasks of its job, and to the commands that it prints" {
    export OMP_NUM_THREADS=1
    printf '%s\n' x 1 1 1 1 >x.csv
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1}}
w = variable{name = "w", shape = {}, init = init.constant(3)}
loss = Mean(OwnSquare(w - x), 0)
entry.train = minimize(loss, optim.sgd{rate = 0.25})
LUA
    own tf-graph m.lua | own tf-opt >m.tfg
    timeout -k 5 60 tf-run --ops "$objects/own_ops.so" --fetch loss --job "$PWD/job" m.tfg -- \
        tf-data csv x.csv --batch 1 x=1:float32
    tf-show job/worker-0.rec | finds '^step 4  loss 0.0625$'
    tf-run --dry-run --ops "$objects/own_ops.so" --job "$PWD/dry" m.tfg -- false >commands
    [ "$(grep -c "ops.* .*own_ops.so" commands)" = 2 ]
    run --separate-stderr -65 timeout -k 5 60 tf-run --job "$PWD/none" m.tfg
    [[ $stderr == "tf-replicate: m.tfg: "*"unknown op 'OwnSquare'"*"--ops FILE.so"* ]]
}
