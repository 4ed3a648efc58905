# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # emulated, work are of gpu-check
# Pieces of gpu-check: the examples, trained on the GPU and beside it on the CPU.

# Places a script. Nodes for which the device has no kernel are on the CPU, and are counted.
graphs() { # NAME [OPTION...]: makes NAME.cpu and NAME.gpu of the script on stdin
    name=$1
    shift
    mkdir -p "$work/scripts"
    cp examples/lion.lua "$work/scripts" # what a script may require
    cat >"$work/scripts/$name.lua"
    tf-graph "$@" "$work/scripts/$name.lua" | tf-opt >"$work/$name.opt" &&
        tf-place -q "$work/$name.opt" >"$work/$name.cpu" &&
        tf-place -q --soft --devices GPU:0,CPU:0 "$work/$name.opt" >"$work/$name.placed" &&
        tf-part "$work/$name.placed" >"$work/$name.gpu"
}

where_nodes_are() { # NAME: adds a figure
    figure "$1: $(tf-show --text "$work/$1.placed" | awk '
        / @\/job/ {
            all++
            if (/ @[^?][^ ]*device:CPU:0/) { there++; op = $3; sub(/\(.*/, "", op); ops[op] = 1 }
        }
        END {
            for (op in ops) names = names " " op
            printf "%d nodes, %d of them on the CPU%s", all, there, names ? ":" names : ""
        }')"
}

digits() { # OPTION...: feed records, 64 rows each
    (cd examples && ./feed --batch 64 "$@")
}

losses_of() { # NAME: prints the losses of a run, one a line, exact
    sed 's/.*"\(loss\|C\)":\([^,}]*\).*/\2/' "$work/$1.json"
}

# train GRAPH NAME FEED [OPTION...]: writes losses to NAME.json, variables to NAME.ckpt
train() {
    graph=$work/$1 run=$work/$2 feed=$work/$3 cost=$(cost_of "${1%%.*}")
    shift 3
    tf-exec -g "$graph" --run train --feed "$feed" --fetch "$cost" --save "$run.ckpt" "$@" \
        >"$run.rec" && tf-show --json "$run.rec" >"$run.json" &&
        tf-show --json "$run.ckpt" | sort >"$run.variables"
}

# agree NAME NAME TOLERANCE [N]: compares the first N losses of two runs, relative to those over 1
agree() {
    losses_of "$1" >"$work/agree.a"
    losses_of "$2" >"$work/agree.b"
    paste -d ' ' "$work/agree.a" "$work/agree.b" | head -n "${4:-1000000}" |
        awk -v tolerance="$3" -v what="$1, $2" '
            function size(x) { return x < 0 ? -x : x }
            NF != 2 { print "line " NR ": " $0; bad = 1; next }
            {
                off = size($1 - $2) / (size($1) > 1 ? size($1) : 1)
                if (off > worst) worst = off
                if (!(off <= tolerance)) {
                    print what ": step " NR ": " $0
                    bad = 1
                }
            }
            END {
                printf "figure: %s: %d losses, %g apart at most\n", what, NR, worst
                exit bad || !NR
            }' >"$work/agree.out"
    status=$?
    grep -v '^figure' "$work/agree.out"
    grep '^figure' "$work/agree.out" >>"$work/figures"
    return $status
}

same() { # NAME NAME: compares bits
    [ -s "$work/$1.variables" ] && [ -s "$work/$1.json" ] &&
        cmp "$work/$1.json" "$work/$2.json" && cmp "$work/$1.variables" "$work/$2.variables"
}

figures() { # prints the figures gathered within checks
    [ ! -f "$work/figures" ] || cat "$work/figures"
}

accuracy_of() { # GRAPH CHECKPOINT: of the images that it was not trained on
    tf-exec -g "$work/$1" --run eval --restore "$work/$2.ckpt" --feed "$work/test" |
        tf-show | sed -n 's/^step 1  accuracy //p'
}

learns() { # NAME LEAST LESS: at least so much, and no more than so much less than the CPU
    train "$1.cpu" "$1.on-cpu" feed && train "$1.gpu" "$1.on-gpu" feed || return 1
    cpu=$(accuracy_of "$1.cpu" "$1.on-cpu")
    gpu=$(accuracy_of "$1.gpu" "$1.on-gpu")
    echo "figure: $1: test accuracy $gpu, on the CPU $cpu" | tee -a "$work/figures"
    awk -v a="$gpu" -v b="$cpu" -v least="$2" -v less="$3" \
        'BEGIN { exit !(a != "" && a >= least && a >= b - less) }'
}

piece_accuracy() {
    epochs=20 less=0.015
    [ -z "$emulated" ] || epochs=1 less=0.05
    digits --rows 1-1437 --shuffle --epochs $epochs >"$work/feed"
    (cd examples && ./feed --rows 1438- --batch 360) >"$work/test"
    for entry in digits:0.95 digits_cnn:0.97 digits_rnn:0.9 lion-digits:0.94; do
        name=${entry%:*} least=${entry#*:}
        [ -z "$emulated" ] || least=0.3
        graphs "$name" <"examples/$name.lua"
        where_nodes_are "$name"
        check "$name learns" learns "$name" "$least" "$less"
    done
    figures
    [ -n "$emulated" ] || regression
}

# Checks that ridge regression by gradient descent reaches the closed form, as on the CPU.
regression() {
    graphs ridge <examples/ridge.lua
    where_nodes_are ridge
    (cd examples && ./feed-diabetes --epochs 4000) >"$work/feed"
    (cd examples && ./feed-diabetes) >"$work/test"
    check "ridge learns" comes_near
}

comes_near() {
    train ridge.gpu ridge feed || return 1
    difference=$(tf-exec -g "$work/ridge.gpu" --fetch difference --restore "$work/ridge.ckpt" \
        --feed "$work/test" | tf-show --json | sed 's/.*"difference":\([^,}]*\).*/\1/')
    echo "difference $difference"
    awk -v d="$difference" 'BEGIN { exit !(d != "" && d < 1e-4) }'
}

# Places without --soft, so that an op for which a GPU has no kernel is an error.
is_on_the_gpu() { # NAME
    tf-place -q --devices GPU:0 "$work/$1.opt" | tf-show --text >"$work/$1.text" &&
        sed '/^entry /d' "$work/$1.text" | grep ' = ' >"$work/$1.nodes" &&
        ! grep -v ' @[^? ][^ ]*/device:CUDA:0' "$work/$1.nodes"
}

# on_both NAME EXAMPLE TYPE STEPS: computes the losses of the script on stdin on CPU and GPU
on_both() {
    graphs "$1" && records "$2" "$3" "$4" >"$work/feed" &&
        train "$1.cpu" "$1.on-cpu" feed && train "$1.gpu" "$1.on-gpu" feed
}

# In float32, rounding makes losses differ, more with each step; in float64 the difference is tiny.
piece_losses() {
    steps=100
    [ -z "$emulated" ] || steps=50
    for name in $examples; do
        on_both "$name" "$name" float32 $steps <"$(script_of "$name")"
        check "$name: all of it is on the GPU" is_on_the_gpu "$name"
        check "$name: the first 10 losses in float32 to 1e-4" \
            agree "$name.on-cpu" "$name.on-gpu" 1e-4 10
        in_float64 "$name" | on_both "$name.64" "$name" float64 $steps
        check "$name: $steps losses in float64 to 1e-8" \
            agree "$name.64.on-cpu" "$name.64.on-gpu" 1e-8
    done
    figures
}

# Also runs with another number of threads on the host, which must not matter on the device. Ops on
# the CPU for lack of a kernel have the same bits with --deterministic. The seed sets the order of
# the emulated device's work and threads.
piece_bits() {
    steps=60
    [ -z "$emulated" ] || steps=50
    for name in $examples; do
        graphs "$name" <"$(script_of "$name")"
        records "$name" float32 $steps >"$work/feed"
        train "$name.gpu" "$name.one" feed --deterministic
        (export TF_TEST_DEVICE_SEED=2 && train "$name.gpu" "$name.two" feed --deterministic)
        train "$name.gpu" "$name.threads" feed --deterministic --threads 1
        check "$name: two runs have the same bits" same "$name.one" "$name.two"
        check "$name: whatever the number of threads" same "$name.one" "$name.threads"
    done
}

moved() { # DEVICE PATTERN: moves the ops that match, of digits as placed on the GPU, to DEVICE
    tf-show --text "$work/digits.placed" |
        sed -E "/ = ($2)\\(/s/ @([^? ][^ ]*)device:CUDA:0/ @\\1device:$1/" |
        tf-graph --text | tf-part
}

has_two_gpus() {
    tf-graph -e 'y = Neg(Const(1.0), {device = "/device:GPU:1"})' |
        tf-place -q --devices GPU:1,CPU:0 | tf-part | tf-exec --fetch y >/dev/null 2>&1
}

# Moves products to the other GPU, with the ops that lie between two of them.
two_gpus() {
    moved CUDA:1 'MatMul|Relu|ReluGrad|BiasAdd' >"$work/digits.pair" &&
        train digits.pair pair feed && same on-gpu pair
}

# Element-wise ops have the CPU's bits, so it does not matter where they run.
piece_split() {
    steps=60
    [ -z "$emulated" ] || steps=10
    digits --rows 1-1437 --shuffle --epochs 4 --steps $steps >"$work/feed"
    graphs digits <examples/digits.lua
    moved CPU:0 'Relu|ReluGrad|BiasAdd' >"$work/digits.mixed"
    moved CPU:0 'MatMul|Softmax|SparseSoftmaxCrossEntropyWithLogits' >"$work/digits.products"
    train digits.cpu on-cpu feed
    train digits.gpu on-gpu feed
    train digits.mixed mixed feed
    train digits.products products feed
    check "activations on the CPU: the bits of the GPU alone" same on-gpu mixed
    check "products on the CPU: the first 10 losses to 1e-4" agree on-cpu products 1e-4 10
    if has_two_gpus; then
        check "products on a second GPU: the bits of one alone" two_gpus
    else
        skip "products on a second GPU: the bits of one alone" "this machine has one GPU"
    fi
    figures
}

# Requests the GPU for the layers of each worker; variables are on the shards.
job_graph() {
    tf-graph examples/digits.lua | tf-opt | tf-show --text | sed -E \
        '/ = (MatMul|BiasAdd|BiasAddGrad|Relu|ReluGrad|SparseSoftmaxCrossEntropyWithLogits)\(/{
            s/ : ([a-z0-9]+\[[^]]*\].* at )/ @?\/device:GPU:0 : \1/
        }' | tf-graph --text
}

run_job() { # NAME DEVICES
    {
        printf 'task ps:%d unix:p%d device=CPU:0\n' 0 0 1 1
        printf "task worker:%d unix:w%d device=$2\\n" 0 0 1 1
    } >"$work/cluster"
    (cd examples && timeout -k 5 240 tf-run -c "$work/cluster" --mode sync --fetch loss \
        --threads 1 --job "$work/$1.job" --save "$work/$1/" "$work/$1.tfg" -- \
        ./feed --rows 1-1437 --shuffle --batch 32 --steps "$steps" --epochs 20) || return 1
    tf-show --json "$work/$1.job/worker-0.rec" >"$work/$1.json" &&
        tf-ckpt export "$work/$1/" "$work/$1.ckpt" &&
        tf-show --json "$work/$1.ckpt" | grep -v '^{"clock:' | sort >"$work/$1.variables"
}

on_the_gpu() { # NAME: prints how many nodes of a job are on the GPU
    tf-show --text "$work/$1.job/parts.tfg" | grep -c ' @/job:worker/task:[*]/device:CUDA:0'
}

piece_job() {
    steps=100
    [ -z "$emulated" ] || steps=15
    job_graph >"$work/job.one.tfg"
    cp "$work/job.one.tfg" "$work/job.two.tfg"
    tf-graph examples/digits.lua | tf-opt >"$work/job.cpu.tfg"
    check "two workers on the GPU end" run_job job.one GPU:0,CPU:0
    figure "job: $(on_the_gpu job.one) nodes of each worker on the GPU"
    check "they have nodes there" test "$(on_the_gpu job.one)" -gt 10
    check "again" run_job job.two GPU:0,CPU:0
    check "a second job has the same bits" same job.one job.two
    check "two workers on the CPU end" run_job job.cpu CPU:0
    check "the first 10 losses to 1e-4" agree job.cpu job.one 1e-4 10
    figures
}
