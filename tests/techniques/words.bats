#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Words a second of a language model whose output layer lies on another host, behind a link of 100
# Mbit/s, by all 20,000 classes and by 512 that are sampled (Abadi et al., OSDI 2016, Figure 9):
# each is as fast as the bytes that it sends, which are so many rows.
# shellcheck disable=SC2154  # root is of use_tools, hosts_net of hosts
load ../lib/tools
load ../lib/slow_link

words=64

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    slow_link 100
    printf 'task worker:0 10.9.1.1:7000\ntask ps:0 10.9.1.2:7000\n' >c
    export OMP_NUM_THREADS=1
    cat >m.lua <<'LUA'
x = Placeholder{dtype = int32, shape = {D.batch}}
y = Placeholder{dtype = int32, shape = {D.batch}}
local h = Tanh(nn.embedding(x, 20000, 256, {name = "in"}))
local w = variable{name = "out/W", shape = {20000, 256}, init = init.glorot_uniform()}
local b = variable{name = "out/b", shape = {20000}}
if D.sampled then
  loss = nn.sampled_softmax{weights = w, biases = b, inputs = h, labels = y,
                            num_sampled = D.sampled, num_classes = 20000}
else
  loss = nn.cross_entropy(MatMul(h, w, {transpose_b = true}) + b, y)
end
entry.train = minimize(loss, optim.sgd{rate = 0.5})
LUA
    # every word is another one, so that nothing is there twice
    awk -v n=$words 'BEGIN { for (i = 0; i < 10 * n; i++) print 31 * i "," 19999 - 31 * i }' >x.csv
    tf-data csv x.csv x=1:int32 y=2:int32 --batch $words -o f.rec
}

teardown() {
    kill_pids "${pids[@]}"
    slow_link_close
}

# train NAME STEPS OPTION...: words a second are in NAME.words, bytes of a step, the larger of what
# goes out and what comes in, in NAME.bytes
train() {
    tf-graph m.lua -D batch=$words "${@:3}" | tf-opt | tf-place -c c | tf-part >parts.tfg
    # exec: what is told to end is the shard
    (exec ip netns exec "$hosts_net-1" nice -n -20 tf-ps serve -c c --task ps:0 --key-file key \
        2>ps.err 3>&-) &
    pids+=($!)
    soon 10 grep -q 'ps:0: ready on' ps.err || { cat ps.err; return 1; }
    inside 0 nice -n -20 tf-exec -c c --task worker:0 -g parts.tfg --key-file key --run train \
        --feed f.rec -n "$2" -q --trace t >/dev/null
    kill "${pids[-1]}"
    wait "${pids[-1]}"
    seconds t | awk -v n=$words '{ print n / $1 }' >"$1.words"
    tf-show --json t | jq -s --argjson last "$2" 'map(select(.peer)) |
        [[.[] | select(.step == $last)] | add | .sent, .got] as $all |
        [[.[] | select(.step == 1)] | add | .sent, .got] as $first |
        [($all[0] - $first[0]), ($all[1] - $first[1])] | add / ($last - 1)' >"$1.bytes"
}

@test "words a second by all classes and by sampled ones are as their bytes" {
    train full 3
    train sampled 9 -D sampled=512
    paste full.bytes full.words sampled.bytes sampled.words
    # out and in each: all rows, or those that are sampled and the true ones; and those of the words
    local row=$((256 * 4)) all=20000 some=$((512 + words))
    while read -r name rows; do
        awk -v bytes=$((2 * (rows + words) * row)) '
            { exit !($1 > 0.98 * bytes && $1 < 1.05 * bytes) }' "$name.bytes"
    done <<<"full $all
sampled $some"
    # the link is what binds: 100 Mbit/s, one way after the other
    paste full.words full.bytes sampled.words sampled.bytes | awk -v n=$words '
        function of(bytes) { return n / (bytes * 8 / 100e6) }
        { a = $1 / of($2); b = $3 / of($4)
          print "of what the link allows:", a, b, "; times as many words:", $3 / $1
          exit !(a > 0.8 && a < 1.1 && b > 0.5 && b < 1.1 && $3 > 15 * $1) }'
}
