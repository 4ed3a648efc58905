#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that one parameter process gathers gradients from (Caffe-MPI) train as one process does on
# their batches joined: to the bits of as many towers of one graph, and to rounding of the batch as
# a whole. Of four, as the mean then divides without rounding.
load ../lib/tools
load ../lib/shards

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    printf 'task ps:0 unix:p\n' >c
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 2 2 3 3 >>c
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 32}}
y = Placeholder{dtype = int32, shape = {-1}}
local h = x
if D.conv then h = nn.conv2d(Reshape(x, {-1, 8, 4, 1}), 6, 3, {name = "c", activation = Relu}) end
h = nn.dense(Reshape(h, {-1, D.conv and 192 or 32}), 24, {name = "h", activation = Tanh})
loss = nn.cross_entropy(nn.dense(h, 5, {name = "out"}), y)
entry.train = minimize(loss, optim[D.opt]{rate = 0.05}, {clip = D.clip})
LUA
    # 30 batches of 4 times 8 rows
    awk 'BEGIN { srand(3); for (r = 0; r < 960; r++) {
        line = int(5 * rand()); for (i = 0; i < 32; i++) line = line "," 2 * rand() - 1
        print line >"all.csv"; print line >(int(r / 8) % 4 ".csv") } }'
    tf-data csv all.csv y=1:int32 x=2-33 --batch 32 -o all.rec
    for k in 0 1 2 3; do tf-data csv $k.csv y=1:int32 x=2-33 --batch 8 -o $k.rec; done
}

teardown() {
    kill_pids "${pids[@]}"
}

# train OPTION...: the graph by four workers and a shard, by four towers, and by one process
train() {
    local k each=()
    tf-graph m.lua "$@" | tf-opt >m.tfg
    tf-replicate --mode sync -c c m.tfg | tf-place -c c | tf-part >p.tfg
    serve ps:0
    for k in 0 1 2 3; do
        work $k --run train --feed $k.rec -q 2>w$k.err >/dev/null 3>&- &
        each+=($!)
    done
    for k in 0 1 2 3; do wait "${each[k]}" || { cat w$k.err; return 1; }; done
    tf-ps save workers.ckpt -c c
    stop
    tf-replicate --in-graph 4 --towers '/device:CPU:*' m.tfg |
        tf-place --devices CPU:0,CPU:1,CPU:2,CPU:3 | tf-part |
        tf-exec --run train --feed all.rec -q --save towers.ckpt >/dev/null
    tf-place --devices CPU:0 m.tfg |
        tf-exec --run train --feed all.rec -q --save one.ckpt >/dev/null
}

# close SAME FAR: workers and towers have the same bits (1), or are FAR apart at most (0), as all
# are from one process
close() {
    local name
    for name in workers towers one; do tf-ckpt export $name.ckpt $name.npz; done
    /usr/bin/python3 - "$@" <<'END'
import sys
import numpy as np
workers, towers, one = (np.load(name + ".npz") for name in ("workers", "towers", "one"))
same, far = int(sys.argv[1]), float(sys.argv[2])
names = [n for n in one.files if one[n].dtype == np.float32]
assert len(names) >= 4, names
for name in names:
    a, b, c = workers[name], towers[name], one[name]
    assert not same or a.tobytes() == b.tobytes(), (name, np.abs(a - b).max())
    for other in (a, b):
        off = np.abs(other - c).max() / np.abs(c).max()
        assert off < far, (name, off)
END
}

@test "four workers of one shard have the bits of four towers, and the joined batch's to 1e-6" {
    train -D opt=sgd
    close 1 1e-6
    rm -r workers.ckpt*
    train -D opt=momentum -D clip=0.5
    close 1 1e-6
}

@test "convolutions, of which a tower may take another algorithm: all to 1e-6" {
    train -D opt=sgd -D conv=1
    close 0 1e-6
}
