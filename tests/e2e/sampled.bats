#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sampled losses: an output layer that is partitioned over shards trains with a few of its rows.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools
load ../lib/shards

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    # A language model that looks one word back.
    cat >m.lua <<'LUA'
local V, N, S = D.classes or 200, D.units or 16, D.sampled or 20
x = Placeholder{dtype = int32, shape = {D.batch or -1}}
y = Placeholder{dtype = int32, shape = {D.batch or -1}}
local h = Tanh(nn.dense(nn.embedding(x, V, N, {name = "in", partitions = D.n}), N, {name = "h"}))
local w = variable{name = "out/W", shape = {V, N}, init = init.glorot_uniform(), partitions = D.n}
local b = variable{name = "out/b", shape = {V}, partitions = D.n}
local o = {weights = w, biases = b, inputs = h, labels = y, num_sampled = S, num_classes = V}
if D.by == "learned" then
  local counts = variable{name = "counts", shape = {V}, dtype = int64, init = 1, trainable = false}
  local labels = Reshape(Cast(y, {DstT = int64}), {-1, 1})
  o.sampled_values = {LearnedUnigramCandidateSampler(
      counts, labels, {num_true = 1, num_sampled = S, unique = true, range_max = V})}
end
if D.by == "all" then
  o.sampled_values = {nn.learned_samples(y, {num_sampled = S, num_classes = V, name = "seen"})}
end
loss = nn[D.loss or "sampled_softmax"](o)
entry.train = minimize(loss, optim[D.opt or "sgd"]{rate = D.rate or 0.5})
entry.whole = {w, b}
if D.full ~= 0 then
  full = nn.cross_entropy(MatMul(h, w, {transpose_b = true}) + b, y)
  entry.full = full
end
LUA
    awk 'BEGIN { srand(7); for (i = 0; i < 2000; i++) { x = int(20 * rand());
        print x "," (3 * x + 1) % 20 } }' >x.csv
    tf-data csv x.csv x=1:int32 y=2:int32 --batch 10 -o f.rec
}

teardown() {
    kill_pids "${pids[@]}"
}

graph() { # OPTION...
    tf-graph m.lua "$@" | tf-opt
}

cluster() { # WORKERS
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 >c
    for ((i = 0; i < $1; i++)); do echo "task worker:$i unix:w$i" >>c; done
}

@test "the loss of all classes falls, whatever it is that is trained by" {
    while read -r options first last; do
        # shellcheck disable=SC2086  # options
        graph ${options//,/ } | tf-exec --run train --fetch full --feed f.rec | tf-show --json >l
        jq -es --argjson first "$first" --argjson last "$last" \
            'length == 200 and .[0].full > $first and .[-1].full < $last' l
    done <<'END'
-D,loss=sampled_softmax 5.2 0.15
-D,loss=sampled_softmax,-D,by=learned 5.2 0.1
-D,loss=sampled_softmax,-D,by=all 5.2 0.1
-D,loss=sampled_softmax,-D,opt=adagrad 5.2 0.1
-D,loss=nce,-D,rate=1 5.2 1
END
}

@test "over two shards an output layer in slices trains to the bits of one process" {
    for options in "" "-D opt=adagrad -D loss=nce" "-D by=learned" "-D by=all"; do
        # shellcheck disable=SC2086
        graph $options | tf-exec --run train --fetch full,loss --feed f.rec --save one.ckpt |
            tf-show --json >one.txt
        cluster 1
        # shellcheck disable=SC2086
        graph $options -D n=2 | tf-place -c c | tf-part >p.tfg
        serve ps:0
        serve ps:1
        work 0 --run train --fetch full,loss --feed f.rec --save p.ckpt | tf-show --json |
            cmp one.txt
        [ "$(tf-show p.ckpt | grep -c '^out/[Wb]/part_[01] ')" = 4 ]
        # shellcheck disable=SC2086
        graph $options | tf-exec --run whole --restore one.ckpt | tf-show --json >one.whole
        work 0 --run whole | tf-show --json | cmp one.whole
        stop
    done
}

@test "on a GPU learned classes and their counts are the CPU's" {
    graph -D by=learned | tf-place >cpu.tfg
    tf-show --text cpu.tfg | sed 's/device:CPU:0/device:GPU:0/' | tf-graph --text >gpu.tfg
    sampled=$(tf-show --text cpu.tfg | sed -nE 's/^([^ ]+).* = LearnedUnigram.*/\1/p')
    sampled=${sampled%%,*}
    [ -n "$sampled" ]
    tf-exec -g cpu.tfg --run train --fetch "$sampled" --feed f.rec --save cpu.ckpt |
        tf-show --json >cpu.classes
    [ "$(wc -l <cpu.classes)" = 200 ]
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib
    for kernels in cpu ''; do
        TF_TEST_DEVICE_KERNELS=$kernels tf-exec -g gpu.tfg --run train --fetch "$sampled" \
            --feed f.rec --save gpu.ckpt | tf-show --json | cmp cpu.classes
        tf-show --json gpu.ckpt | grep '"counts"' |
            cmp - <(tf-show --json cpu.ckpt | grep '"counts"')
    done
}

# Two workers, each of which sums its duplicate rows before it pushes them.
@test "replicated training ends with the same bits in slices and whole, and learns" {
    cluster 2
    for n in 1 2; do
        graph -D opt=adagrad -D n=$n | tf-replicate --mode sync |
            tf-place -c c | tf-part >p.tfg
        serve ps:0
        serve ps:1
        for w in 0 1; do
            work $w --run train --fetch full --feed f.rec 2>w$w.err |
                tf-show --json >w$w.$n 3>&- &
            eval "worker$w=\$!"
        done
        # shellcheck disable=SC2154
        wait "$worker0"
        wait "$worker1"
        work 1 --run whole | tf-show --json >whole.$n
        stop
    done
    cmp whole.1 whole.2
    cmp w0.1 w0.2
    cmp w1.1 w1.2
    jq -es '.[0].full > 5 and .[-1].full < 0.2' w0.2
}

@test "a run that is resumed goes on with the same bits, and with the counts it has learned" {
    graph -D by=learned >m.tfg
    tf-exec -g m.tfg --run train --fetch loss --feed f.rec --save all.ckpt | tf-show --json >all.txt
    tf-exec -g m.tfg --run train --fetch loss --feed f.rec -n 70 --save ck/ | tf-show --json \
        >cut.txt
    tf-exec -g m.tfg --run train --fetch loss --feed f.rec --save ck/ --resume | tf-show --json \
        >>cut.txt
    cmp all.txt cut.txt
    tf-ckpt diff ck all.ckpt
    # Each class counts one, plus one for each time that it was true.
    awk -F, '{ n[$2]++ } END { for (i = 0; i < 200; i++) print n[i] + 1 }' x.csv >counts
    tf-ckpt cat ck counts | tf-show --json | jq '.counts[]' | cmp counts
}

# Steps of two workers, each of which draws by the classes that both have seen before.
@test "workers learn their counts together, and draw the same in each run" {
    cluster 2
    graph -D by=all | tf-replicate --mode sync | tf-place -c c | tf-part >p.tfg
    for n in 1 2; do
        serve ps:0
        serve ps:1
        for w in 0 1; do
            work $w --run train --fetch loss --feed f.rec 2>w$w.err |
                tf-show --json >w$w.$n 3>&- &
            eval "worker$w=\$!"
        done
        wait "$worker0"
        wait "$worker1"
        tf-ps get seen/counts -c c | tf-show --json | jq '."seen/counts"[]' >counts.$n
        stop
    done
    awk -F, '{ n[$2]++ } END { for (i = 0; i < 200; i++) print 2 * n[i] + 1 }' x.csv | cmp counts.1
    cmp counts.1 counts.2
    cmp w0.1 w0.2
    cmp w1.1 w1.2
    run -1 cmp -s w0.1 w1.1
}

output() { # NODE: its type and shape
    sed -n "s|^$1 = .* : \([^ ]*\) at .*|\1|p" p.txt
}

@test "of 40,000 classes 512 stand for all: 78 times fewer rows are looked up and multiplied" {
    cluster 1
    graph -D classes=40000 -D units=512 -D sampled=512 -D batch=1 -D full=0 | tf-place -c c |
        tf-part --report 2>report | tf-show --text >p.txt
    [ "$(output sampled_softmax/Gather)" = 'float32[513,512]' ] # the true class as well
    [ "$(output sampled_softmax/Gather_1)" = 'float32[513]' ]
    [ "$(output sampled_softmax/Slice_1)" = 'float32[512,512]' ]
    [ "$(output sampled_softmax/MatMul)" = 'float32[1,512]' ]
    # 513 * 512 * 4 = 1,050,624 bytes of rows cross, and as many of their gradient; no table does.
    grep -q '^sampled_softmax/Gather  .*:ps.* -> .*:worker.*  1.0 MiB$' report
    grep -q '^out/W/gradient/values  .*:worker.* -> .*:ps.*  1.0 MiB$' report
    run -1 grep -q '^out/./read  ' report
    [ "$(tail -n 1 report)" = \
        'tf-part: 3 graphs, 20 tensors cross, 4.0 MiB a step; 4 times order only' ]
    # With all classes 40,000 rows are looked up and multiplied, 40,000 / 512 = 78 times as many.
    graph -D classes=40000 -D units=512 -D batch=1 | tf-place -c c | tf-part --report 2>report |
        tf-show --text >p.txt
    [ "$(output out/W/read)" = 'float32[40000,512]' ]
    [ "$(output MatMul)" = 'float32[1,40000]' ]
    grep -q '^out/W/read  .*:ps.* -> .*:worker.*  78.1 MiB$' report # 81,920,000
}

@test "what crosses of a gradient is each row once: the classes drawn and the true ones" {
    cluster 1
    graph -D n=2 -D classes=40000 -D sampled=512 -D full=0 | tf-replicate --mode sync |
        tf-place -c c | tf-part >p.tfg
    serve ps:0
    serve ps:1
    local g=out/W/gradient
    awk 'BEGIN { srand(3); for (i = 0; i < 128; i++) { x = int(40 * rand()); print x "," x } }' \
        >y.csv
    tf-data csv y.csv x=1:int32 y=2:int32 --batch 128 -o y.rec
    work 0 --run train --feed y.rec --fetch sampled_softmax/LogUniformCandidateSampler \
        --fetch $g/indices,$g/values/sum/part_0,$g/values/sum/part_1 \
        --fetch in/W/gradient/indices,in/W/gradient/values/sum/part_0 | tf-show --json >got
    stop
    { jq '."sampled_softmax/LogUniformCandidateSampler"[]' got; cut -d, -f2 y.csv; } | sort -u >rows
    [ "$(jq ".\"$g/indices\" | length" got)" = 640 ]
    [ "$(jq ".\"$g/values/sum/part_0\" + .\"$g/values/sum/part_1\" | length" got)" = \
        "$(wc -l <rows)" ]
    [ "$(wc -l <rows)" -lt 552 ]
    [ "$(jq '."in/W/gradient/indices" | length' got)" = 128 ]
    [ "$(jq '."in/W/gradient/values/sum/part_0" | length' got)" = "$(cut -d, -f1 y.csv | sort -u |
        wc -l)" ]
}

@test "arguments that make no sense are refused in a line" {
    while IFS=';' read -r arguments message; do
        run --separate-stderr tf-graph -e "
            local x = Placeholder{dtype = float32, shape = {-1, 4}}
            local y = Placeholder{dtype = int32, shape = {-1}}
            local w = variable{name = 'w', shape = {9, 4}}
            loss = nn.sampled_softmax{$arguments}"
        # shellcheck disable=SC2154  # of run
        [ "$status" = 65 ]
        # shellcheck disable=SC2154
        [[ $stderr == *"$message"* ]]
        [ "$(wc -l <<<"$stderr")" = 1 ]
    done <<'END'
labels=y, num_sampled=2, num_classes=9;inputs must be a tensor
inputs=x, num_sampled=2, num_classes=9;labels must be a tensor
inputs=x, labels=y, num_classes=9;num_sampled must be a whole number
inputs=x, labels=y, num_sampled=2;num_classes must be a whole number
inputs=x, labels=y, num_sampled=10, num_classes=9;num_sampled is 10, but there are only 9 different
inputs=x, labels=y, num_sampled=2, num_classes=9, weights=w, partitions=2;weights that are made here
inputs=x, labels=y, num_sampled=2, num_classes=9, biases=w;biases go with weights
inputs=x, labels=y, num_sampled=2, num_classes=9, sampled_values=y;what a sampler returns
inputs=x, labels=y, num_sampled=2, num_classes=9, num_true=0;num_true must be a whole number
inputs=y, labels=y, num_sampled=2, num_classes=9;must have rank 2
inputs=x, labels=y, num_sampled=2, num_classes=9, samples=3;has no option 'samples'
END
}
