#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Layers, activations, losses and their gradients compared with PyTorch's (tests/data/layers, made
# by make.py there); initializers by their properties.
# shellcheck disable=SC2154  # root is of use_tools, stderr of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    data=$root/tests/data/layers
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

agrees() { # GRAPH
    tf-exec -q -g "$1" --run eval | tf-show --json | jq -r 'del(.step) | to_entries[] |
        "\(.key) \([.value] | flatten | map(tostring) | join(" "))"' >got
    awk 'NR == FNR { got[$1] = $0; next }
         { n = split(got[$1], value)
           if (n != NF) { print "missing: " $1; bad = 1 }
           for (i = 2; i <= NF; i++) {
               d = value[i] - $i; size = $i < 0 ? -$i : $i
               if (!(d <= 1e-6 * (size + 1e-3) && -d <= 1e-6 * (size + 1e-3))) {
                   print $1, "element", i - 2 ":", value[i], "not", $i; bad = 1
               }
           } }
         END { exit bad }' got "$data/expected.txt"
}

@test "layers and their gradients are PyTorch's, also of the graph that was optimized" {
    tf-graph "$data/layers.lua" >g
    agrees g
    tf-opt g | tf-place >o
    agrees o
}

@test "recurrent layers are the same as loops, of times that are known or not" {
    tf-graph -D loop=true "$data/layers.lua" >g
    agrees g
    tf-opt g | tf-place >o
    agrees o
    finds ' = Enter(' <(tf-show --text g)
    # two stacked layers
    cat >two.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1, D.times or -1, 2}}
local o = {loop = not D.times}
y = nn.sequential(x, {{nn.lstm, 3, {loop = o.loop, bidirectional = true}}, {nn.gru, 4, o}})
END
    local times
    for times in 1 7; do
        seq $((2 * times)) | paste -sd, |
            tf-data csv - "x=1-$((2 * times)):shape=${times}x2:scale=0.1" -q >x.rec
        tf-graph two.lua | tf-exec -q --fetch y --feed x.rec | tf-show --json >loop
        tf-graph -D times=$times two.lua | tf-exec -q --fetch y --feed x.rec | tf-show --json |
            jq -es --slurpfile loop loop '[.[0].y, $loop[0].y] | map(flatten) | transpose |
                length == 4 * '"$times"' and all((.[0] - .[1]) | fabs < 1e-6)'
    done
}

@test "what has the wrong shape is an error that names it" {
    local call expected
    while IFS='|' read -r call expected; do
        run --separate-stderr -65 tf-graph -e "
            x = Placeholder{dtype = float32, shape = {-1, 6}}
            s = Placeholder{dtype = float32, shape = {-1, 4, 6}}
            long = Placeholder{dtype = float32, shape = {-1, -1, 6}}
            image = Placeholder{dtype = float32, shape = {-1, 8, 9, 6}}
            ids = Placeholder{dtype = int32, shape = {-1, 3}}
            y = $call"
        [[ $stderr = *"$expected"* ]] || { echo "$stderr" && false; }
    done <<'END'
nn.lstm(x, 5)|nn.lstm: tensor 'x' float32[?,6] must have rank 3
nn.gru(long, 5)|nn.gru: dimension 2 of
nn.gru(s, 0)|nn.gru: units must be a whole number of at least 1, not 0
nn.attention(s, s, s, {heads = 4})|nn.attention: 4 heads do not divide a size of 6
nn.attention(x, s, s)|nn.attention: q: tensor 'x' float32[?,6] must have rank 3
nn.layer_norm(Placeholder{dtype = float32, shape = {2, -1}})|nn.layer_norm: dimension 2 of
nn.attention(s, s, Placeholder{dtype = float32, shape = {-1, 4, 3}}, {heads = 2})|a size of 3
nn.attention(s, Placeholder{dtype = float32, shape = {-1, 5, 7}}, s)|7] differ in dimension 3
nn.attention(s, Placeholder{dtype = float32, shape = {-1, 5, 6}}, s)|6] differ in dimension 2
nn.transformer(s, {heads = 4})|nn.attention: 4 heads do not divide a size of 6
nn.transformer(x)|nn.transformer: tensor 'x' float32[?,6] must have rank 3
nn.positions(long, {learned = true})|nn.positions: dimension 2 of tensor 'long' float32[?,?,6] must
nn.group_norm(image, 4)|nn.group_norm: 4 groups do not divide 6 channels
nn.instance_norm(Placeholder{dtype = float32, shape = {-1}})|nn.instance_norm: the rank of
nn.conv1d(image, 4, 3)|nn.conv1d: tensor 'image' float32[?,8,9,6] must have rank 3
nn.conv1d(s, 4, {3})|nn.conv1d: size must be a whole number of at least 1, not a table
nn.conv2d_transpose(s, 4, 3)|nn.conv2d_transpose: tensor 's' float32[?,4,6] must have rank 4
nn.conv2d(image, 4, 3, {groups = 4})|nn.conv2d: 4 groups do not divide 6 channels and 4 filters
nn.conv1d(s, 4, 3, {groups = 3})|nn.conv2d: 3 groups do not divide 6 channels and 4 filters
nn.conv2d(image, 4, 3, {groups = 0})|nn.conv2d: groups must be a whole number of at least 1, not 0
nn.locally_connected2d(image, 4, 9, {padding = 'VALID'})|2d: a window of 9 does not fit into 8
nn.depthwise_conv2d(image, 10, {padding = 'VALID'})|window of height 10 does not fit into 8
nn.depthwise_conv2d(image, 3, {padding = 'valid'})|padding must be SAME or VALID, not 'valid'
nn.separable_conv2d(s, 4, 3)|nn.depthwise_conv2d: tensor 's' float32[?,4,6] must have rank 4
nn.max_pool1d(image, 2)|nn.max_pool1d: tensor 'image' float32[?,8,9,6] must have rank 3
nn.global_avg_pool(x)|nn.global_avg_pool: tensor 'x' float32[?,6] must have axes between
nn.embedding_bag(ids, 5, 2, {mode = 'max'})|nn.embedding_bag: mode must be sum or mean, not 'max'
nn.embedding_bag(ids, 5, 2, {lengths = ids})|nn.embedding_bag: lengths: tensor 'ids' int32[?,3] must
nn.residual(x, function(h) return nn.dense(h, 5) end)|nn.residual: tensor 'x' float32[?,6] and
nn.sequential(x, {{nn.dense, 5}, 'Relu'})|nn.sequential: layer 2 is a string, not a function
nn.focal(x, Placeholder{dtype = float32, shape = {-1, 5}})|nn.focal: tensor 'x' float32[?,6] and
nn.triplet(x, x, s)|nn.triplet: tensor 'x' float32[?,6] and tensor 's' float32[?,4,6] differ in
nn.l2(0.1, '/w$')|nn.l2: there is no variable to take the norm of
variable{shape = {4}, init = init.orthogonal()}|init.orthogonal: {4} is no matrix
variable{shape = {4, 4}, init = init.orthogonal}|an initializer when it is called: init.orthogonal
END
}

@test "orthogonal columns or rows are orthonormal; lecun's initializers have a variance of 1 / n" {
    tf-graph -e '
        local function look(name, shape, o)
          local w = variable{name = name, shape = shape, init = init.orthogonal(o)}
          local m = Reshape(w, {-1, shape[#shape]})
          local tall = m.shape[1] >= m.shape[2]
          local n = tall and m.shape[2] or m.shape[1]
          local one = MatrixBandPart(Fill({n, n}, (o or {gain = 1}).gain ^ 2.0), 0, 0)
          local product = MatMul(m, m, {transpose_a = tall, transpose_b = not tall})
          _ENV[name .. "_off"] = Max(Abs(product - one), {0, 1})
        end
        look("square", {300, 300})
        look("tall", {3, 3, 8, 20}, {gain = 2, seed = 4})
        look("flat", {20, 150})
        for _, name in ipairs{"uniform", "normal"} do
          local w = variable{name = name, shape = {500, 400}, init = init["lecun_" .. name]()}
          _ENV["v_" .. name] = Mean(Square(w), {0, 1}) * 500
        end' >g
    tf-exec -q -g g --fetch square_off,tall_off,flat_off,v_uniform,v_normal | tf-show --json >got
    jq -e '.square_off < 2e-6 and .tall_off < 4e-6 and .flat_off < 2e-6 and
           (.v_uniform - 1 | fabs) < 0.015 and (.v_normal - 1 | fabs) < 0.015' got
}

@test "nn.l2 by a pattern is of the variables that it finds" {
    tf-graph -e 'local a = variable{name = "a/W", init = {1.0, 2.0}}
        local b = variable{name = "a/b", init = {4.0}}
        local kept = variable{name = "c/W", init = {8.0}, trainable = false}
        w, all = nn.l2(0.5, "/W$"), nn.l2(0.5, "^a/")' >g
    [ "$(tf-exec -q -g g --fetch w,all | tf-show)" = "step 1  w 1.25  all 5.25" ]
}

# Computed by NumPy from the same numbers.
@test "of a sequence each time is a row: a layer, losses, scores, their weights and gradients" {
    cat >rows.lua <<'EOF'
x = Const{{{0, 0.25}, {0.5, 0.75}, {1, 1.25}}, {{1.5, 1.75}, {2, 2.25}, {2.5, 2.75}}}
y = Const{{0, 1, 2}, {1, 1, 0}}
local each = Const{{1.0, 0, 2}, {0, 1, 1}}
logits = nn.dense(x, 3, {init = {{1, -1, 0.5}, {0.5, 2, -1}}, bias_init = {0.1, 0, -0.1}})
loss = nn.cross_entropy(logits, y)
of_rows = nn.cross_entropy(logits, y, {weights = {1, 3}})
of_each = nn.cross_entropy(logits, y, {weights = each})
focal = nn.focal(logits, y, {gamma = 0})
smooth = nn.cross_entropy(logits, y, {smoothing = 0})
accuracy = nn.accuracy(logits, y)
top = nn.in_top_k(logits, y, 2)
dw, dx = table.unpack(gradients(loss, {trainable()[1], x}))
entry.step = {loss, of_rows, of_each, focal, smooth, accuracy, top, dw, dx}
m_loss = metric.log_loss(logits, y)
m_each = metric.log_loss(logits, y, {weights = each})
m_rows = metric.log_loss(logits, y, {weights = Const{1.0, 3}})
m_perplexity = metric.perplexity(logits, y)
m_accuracy = metric.accuracy(logits, y, {weights = each})
m_top = metric.top_k(logits, y, 2)
m_confusion = metric.confusion(logits, y)
entry.eval = {m_loss, m_each, m_rows, m_perplexity, m_accuracy, m_top, m_confusion}
EOF
    tf-graph rows.lua >g
    tf-exec -q -g g --run step | tf-show --json >step.json
    tf-exec -q -g g --run eval | tf-show --json >eval.json
    jq -es '(.[0] + .[1]) as $got | {
        loss: 1.244065082, m_loss: 1.244065082, focal: 1.244065082, smooth: 1.244065082,
        of_rows: 1.026264275, m_rows: 1.026264275, of_each: 1.782813117, m_each: 1.782813117,
        m_perplexity: 3.469689408, accuracy: 0.333333333, m_accuracy: 0.2, top: 0.833333333,
        m_top: 0.833333333, m_confusion: [1, 1, 0, 2, 1, 0, 1, 0, 0],
        dw: [0.38583026, -0.24134916, -0.1444811, 0.44116299, -0.26982402, -0.17133897],
        dx: [-0.16870298, 0.06545364, 0.17250428, -0.15835693, -0.0620353, 0.34633194,
             0.2062774, -0.16001433, 0.22474439, -0.17071315, -0.09127315, 0.0675969]
    } | to_entries | all(
        ([.value] | flatten) as $a | ([$got[.key]] | flatten) as $b |
        ($a | length) == ($b | length) and
        all(range($a | length); ($a[.] - $b[.]) | fabs < 2e-6) or
            error(.key + "\($b)"))' step.json eval.json
}
