#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # stderr is set by run
# The prelude's optimizers, schedules, losses and layers compared with formulas and PyTorch.
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    expected=$root/tests/data/prelude/expected.txt
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

names() {
    cut -d' ' -f1 "$expected" | sort -u | paste -sd,
}

# Compares with expected.txt, whose lines are: name, step, elements. float32 shows nine digits.
compare() { # GRAPH
    tf-exec -g "$1" --run step --fetch "$(names)" --steps 4 | tf-show --json |
        jq -r 'def flat: if type == "array" then map(flat) | add else [.] end;
               .step as $step | del(.step) | to_entries[] |
               "\(.key) \($step) \(.value | flat | map(tostring) | join(" "))"' >got
    awk 'NR == FNR { got[$1 " " $2] = $0; next }
         { n = split(got[$1 " " $2], value)
           limit = $1 ~ /^(s_|b_image|l_top|l_accuracy)/ ? 1e-5 : 1e-6
           if (n != NF) { print "missing: " $1 " " $2; bad = 1 }
           for (i = 3; i <= NF; i++) {
               d = value[i] - $i; size = $i < 0 ? -$i : $i
               if (d < 0) d = -d
               if (!(d <= limit * (size + 1e-3))) {
                   print $1, "step", $2, "element", i - 3 ":", value[i], "not", $i; bad = 1
               }
           } }
         END { exit bad }' got "$expected"
}

@test "optimizers, schedules, averages, clipping, losses and batch normalization, four steps" {
    tf-graph "$root/tests/data/prelude/prelude.lua" >g
    compare g
}

@test "the same when the graph was optimized" {
    tf-graph "$root/tests/data/prelude/prelude.lua" | tf-opt --keep "$(names)" | tf-place >g
    compare g
}

@test "initializers have the deviation that their names say, cut or not" {
    tf-graph -o g -e '
        local function look(name, f, shape)
          local w = variable{name = name, shape = shape, init = f}
          entry[name .. "_v"] = Identity(Mean(Square(w), {0, 1}), {name = name .. "_v"})
          entry[name .. "_m"] = Identity(Max(Abs(w), {0, 1}), {name = name .. "_m"})
        end
        look("he", init.he_normal(), {500, 400})
        look("glorot", init.glorot_normal(), {500, 300})
        look("scaled", init.variance_scaling{scale = 3, fan = "out"}, {500, 300})
        look("uniform", init.he_uniform(), {500, 400})
        look("cut", init.truncated_normal{stddev = 1}, {500, 400})'
    tf-exec -g g --fetch he_v,glorot_v,scaled_v,uniform_v,cut_v,he_m,cut_m -q | tf-show --json > got
    # With 200,000 values the variance is known to 0.3 %; TensorFlow cuts at 2 / 0.8796 deviations.
    jq -e 'def near(a; b): ((a - b) / b | fabs) < 0.015;
           near(.he_v; 2 / 500) and near(.glorot_v; 1 / 400) and near(.scaled_v; 3 / 300) and
           near(.uniform_v; 2 / 500) and near(.cut_v; 0.87962566103423978 * 0.87962566103423978) and
           near(.he_m; 2 / 0.87962566103423978 * (2 / 500 | sqrt)) and near(.cut_m; 2)' got
}

# Names in "nn", "clip" and so on, and global functions, as the sources define them.
functions() {
    (cd "$root/ops/prelude" && sed -n \
        -e 's/^function \([a-z_0-9]*\.*[a-z_0-9]*\)(.*/\1/p' \
        -e 's/^\([a-z]*\.[a-z_0-9]*\) = .*/\1/p' -e 's/^define("\([a-z_]*\)".*/schedule.\1/p' \
        -e 's/^of_pairs("\([a-z_]*\)".*/nn.\1/p' \
        -e 's/^scaled("\([a-z_]*\)".*/init.\1/p' \
        ./*.lua | grep -v '^tf\.' | grep -v '^self\.')
}

@test "every function of the prelude is in docs/language.md" {
    [ "$(functions | wc -l)" -gt 50 ]
    functions >names
    while read -r name; do
        grep -q "[^a-z_]${name##*.}[^a-z_]" "$root/docs/language.md" || echo "$name"
    done <names >missing
    cat missing
    [ ! -s missing ]
}

# The options of every function, as tf.options has them.
@test "every option of a function of the prelude is in docs/language.md" {
    grep -hoE 'tf\.options\("[a-zA-Z_.]+", o, "[^"]*"' "$root"/ops/prelude/*.lua |
        sed 's/.*, "\(.*\)"/\1/' | tr ' ' '\n' | tr -d '?' | sort -u | grep . >options
    [ "$(wc -l <options)" -gt 20 ]
    while read -r option; do
        grep -q "[^a-z_]${option}[^a-z_]" "$root/docs/language.md" || echo "$option"
    done <options >missing
    cat missing
    [ ! -s missing ]
}

@test "clipping by a norm that is not finite stops the step before anything is changed" {
    tf-graph -e 'x = Placeholder{dtype = float32, shape = {}}
        local w = variable{name = "w", shape = {}, init = 4.0}
        loss = Sqrt(w * x) * 0
        entry.train = minimize(loss, optim.sgd{rate = 1}, {clip = 1})' >g
    run --separate-stderr tf-exec -g g --run train --feed x=0.0 --save state
    [ "$status" = 65 ]
    [[ $stderr == *"global norm of the gradients"* ]]
    for bad in '1.0 / 0' '0.0 / 0'; do
        tf-graph -e "local a = clip.by_global_norm({Const{1.0, 2}, Const{$bad}}, 5)
            entry.clipped = a" >g
        tf-opt <g >g.opt
        for graph in g g.opt; do
            [ "$(tf-exec -g $graph --run clipped | tf-show | grep -o nan | wc -l)" = 3 ]
        done
    done
}

@test "losses refuse a prediction and a target that would broadcast to a matrix" {
    for loss in mse mae huber hinge r2 sigmoid_cross_entropy; do
        run --separate-stderr tf-graph -e "local x = Placeholder{dtype = float32, shape = {-1, 1}}
            local y = Placeholder{dtype = float32, shape = {-1}}
            l = nn.$loss(x, y)"
        [ "$status" = 65 ]
        [[ $stderr == *"nn.$loss: "*"differ in rank"* ]]
    done
}

@test "dropout keeps the share it should, scales it, and is another in each step" {
    tf-graph -e 'x = Fill({100000}, 1.0)
        local y = nn.dropout(x, 0.8)
        local kept = Cast(Greater(y, 0), {DstT = float32})
        share_kept, mean = Mean(kept, {0}), Mean(y, {0})
        largest = Max(y, {0})
        same = nn.dropout(x, 0.8, {training = false})
        one = Mean(same, {0})' >g
    tf-exec -g g --fetch share_kept,mean,largest,one --steps 3 | tf-show --json >out
    # Four standard deviations of a mean of 1e5 draws: 4 sqrt(0.8 0.2 / 1e5) = 0.005
    jq -es 'length == 3 and all(.[]; (.share_kept - 0.8 | fabs) < 0.005 and
        (.mean - 1 | fabs) < 0.0064 and .largest == 1.25 and .one == 1) and
        ([.[].share_kept] | unique | length) == 3' out
}

# w is 1, and 5 after train; the averages begin at 1 and go half of the way.
@test "within control a variable is read again, after what the scope waits for" {
    cat >m.lua <<'LUA'
local w = variable{shape = {}, init = 1, name = "w"}
local train = Assign(w, 5)
local late, early = ema(0.5), ema(0.5)
entry.train = group{train, control({train}, function() return late.apply{w} end),
                    early.apply{w}}
before, after, op = w + 0, control({train}, function() return w + 0 end),
                    Identity(w, {control = {train}})
local branch = cond(Greater(train, 0), function()
  return control({Identity(train)}, function() return w + 0 end)
end, function() return w - 100 end)
inside = branch
slope = gradients(control({train}, function() return w * w end) + 3 * w, w)
late_average, early_average = late.average(w), early.average(w)
LUA
    tf-graph m.lua >g
    tf-opt --keep before,after,op,inside,slope,late_average,early_average g >g.opt
    for graph in g g.opt; do
        tf-exec -g $graph --run train --fetch before,after,op,inside,slope --save c | tf-show >out
        grep -q '^step 1  before 1  after 5  op 5  inside 5  slope 13$' out
        tf-exec -g $graph --restore c --fetch late_average,early_average | tf-show >out
        grep -q '^step 1  late_average 3  early_average 1$' out
    done
}
