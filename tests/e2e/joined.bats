#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers whose gradients one parameter process gathers (Caffe-MPI) train as one process does on
# their joined batches: with the bits of as many towers of one graph, and up to rounding with those
# of the whole batch. They use one thread each, as towers share one process' cores and the size of
# the team may change bits; or --deterministic, where it does not.
load ../lib/tools
load ../lib/shards

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    how=(--threads 1) # all train
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 32}}
y = Placeholder{dtype = int32, shape = {-1}}
local h = x
if D.conv then -- as LeNet: images of 8x4
    local c1 = nn.conv2d(Reshape(x, {-1, 8, 4, 1}), 6, 5, {name = "c1", activation = Relu})
    local c2 = nn.conv2d(nn.max_pool(c1, 2), 16, 5, {name = "c2", activation = Relu})
    h = nn.flatten(nn.max_pool(c2, 2))
end
h = nn.dense(h, 24, {name = "h", activation = Tanh})
loss = nn.cross_entropy(nn.dense(h, 5, {name = "out"}), y)
entry.train = minimize(loss, optim[D.opt]{rate = 0.05}, {clip = D.clip})
LUA
}

teardown() {
    kill_pids "${pids[@]}"
}

# batches N: 30 batches of N times 8 rows, of which each of N workers has 8, and files of both
batches() {
    local k
    printf 'task ps:0 unix:p\n' >c
    devices=()
    awk -v n="$1" 'BEGIN { srand(3); for (r = 0; r < 240 * n; r++) {
        line = int(5 * rand()); for (i = 0; i < 32; i++) line = line "," 2 * rand() - 1
        print line >"all.csv"; print line >(int(r / 8) % n ".csv") } }'
    tf-data csv all.csv y=1:int32 x=2-33 --batch $((8 * $1)) -o all.rec
    for ((k = 0; k < $1; k++)); do
        tf-data csv $k.csv y=1:int32 x=2-33 --batch 8 -o $k.rec
        echo "task worker:$k unix:w$k" >>c
        devices+=("CPU:$k")
    done
}

# train N OPTION...: trains with N workers and a shard, with N towers (t.tfg), and in one process
train() {
    local n=$1 k each=()
    batches "$n"
    tf-graph m.lua "${@:2}" | tf-opt >m.tfg
    tf-replicate --mode sync -c c m.tfg | tf-place -c c | tf-part >p.tfg
    serve ps:0
    for ((k = 0; k < n; k++)); do
        work $k --run train --feed $k.rec "${how[@]}" -q 2>w$k.err >/dev/null 3>&- &
        each+=($!)
    done
    for ((k = 0; k < n; k++)); do wait "${each[k]}" || { cat w$k.err; return 1; }; done
    rm -rf ./*.ckpt*
    tf-ps save workers.ckpt -c c
    stop
    tf-replicate --in-graph "$n" --towers '/device:CPU:*' m.tfg |
        tf-place --devices "$(IFS=, && echo "${devices[*]}")" | tf-part >t.tfg
    tf-exec -g t.tfg --run train --feed all.rec "${how[@]}" -q --save towers.ckpt >/dev/null
    tf-place --devices CPU:0 m.tfg |
        tf-exec --run train --feed all.rec "${how[@]}" -q --save one.ckpt >/dev/null
}

# close FAR: workers and towers have the same bits, and one process differs by FAR at most
close() {
    local name
    for name in workers towers one; do tf-ckpt export $name.ckpt $name.npz; done
    /usr/bin/python3 - "$1" <<'END'
import sys
import numpy as np
workers, towers, one = (np.load(name + ".npz") for name in ("workers", "towers", "one"))
names = [n for n in one.files if one[n].dtype == np.float32]
assert len(names) >= 4, names
for name in names:
    a, b, c = workers[name], towers[name], one[name]
    assert a.tobytes() == b.tobytes(), (name, np.abs(a - b).max())
    off = np.abs(a - c).max() / np.abs(c).max()
    assert off < float(sys.argv[1]), (name, off)
END
}

@test "four workers of one shard have the bits of four towers, and the joined batch's to 1e-6" {
    train 4 -D opt=sgd
    close 1e-6
    train 4 -D opt=momentum -D clip=0.5
    close 1e-6
}

@test "three, of which the mean rounds" {
    train 3 -D opt=momentum
    close 1e-6
}

# choices GRAPH RECORDS: the choices of its plans, each once, and the kernels of convolutions
choices() {
    tf-exec -g "$1" --run train --feed "$2" "${how[@]}" --dump-plan | tf-show --json >plans
    jq -r .choice plans | sort -u
    jq -r '.items[] | select(.kernel | test("conv")) |
        (.node | sub("tower_[0-9]+/"; "")) + " " + .kernel' plans | sort -u
}

@test "convolutions: two and three workers have the bits of as many towers, by the same kernels" {
    local n
    for n in 2 3; do
        train $n -D opt=momentum -D conv=1
        close 1e-5
        tf-place --devices CPU:0 m.tfg >one.tfg
        choices one.tfg 0.rec >one
        choices t.tfg all.rec >towers
        [ "$(grep -c conv one)" = 5 ] # forward, and but for the first layer's images, both back
        diff one towers
    done
    how=(--deterministic)
    train 2 -D opt=momentum -D conv=1
    close 1e-5
}
