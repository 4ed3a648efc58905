#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Loops in texts: forms that scripts never make are refused when the text is read.
bats_require_minimum_version 1.5.0

setup() {
    bin=$(realpath -m "$BATS_TEST_DIRNAME/../../${BUILD:-build}/bin")
    PATH=$bin:$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
    # shellcheck source=tests/lib/refused.bash
    . "$BATS_TEST_DIRNAME/../lib/refused.bash"
    cat >nest.lua <<'END'
x = Placeholder{dtype = float32, name = "x", shape = {}}
v = variable{shape = {}, init = init.ones, name = "v"}
_, a, n = while_loop(function(i) return Less(i, 3) end, function(i, a, n)
  local _, b = while_loop(function(k) return Less(k, 2.0) end,
                          function(k, b) return k + 1, b * x + a end, {Const(0.0), a})
  return i + 1, cond(Less(a, x), function() return b + v end, function() return b - n end), a
end, {Const(0), Const(1.5), Const(0.5)})
entry.r = {a + n, n}
END
    tf-graph nest.lua | tf-show --text | sed 's/ : [a-z0-9]*\[.*//; s/ at [^ ]*$//' >nest.txt
}

edited() { # PATTERN SED: edits the lines of the pattern, which must change one
    sed "\\|$1|$2" nest.txt >edited.txt
    run -1 cmp -s nest.txt edited.txt
}

# Any other consumer than its Merge would wait in the second round for a value that only the first
# one has, or the other way round.
@test "what a loop begins with and what comes round are for its Merge" {
    edited '^while/Enter_2 = ' 's/is_constant=false/is_constant=true/'
    refused 65 "*'while/Merge_2': Merge: takes 'while/Enter_2', * is_constant=false here*" \
        tf-graph --text edited.txt
    edited '^while/while/Enter_3 = ' 's/is_constant=true/is_constant=false/'
    refused 65 "*takes 'while/while/Enter_3', * is_constant=true here*" tf-graph --text edited.txt
    edited '^while/Merge_2 = ' 's/(.*)/(while\/NextIteration_2, while\/Enter_2)/'
    refused 65 '*which only Merge(Enter, NextIteration) may*' tf-graph --text edited.txt
    edited '^a = ' 's/)/, ^while\/NextIteration)/'
    refused 65 "*'a': Exit: takes 'while/NextIteration', which only*" tf-graph --text edited.txt
    edited '^while/Less = ' 's/)/, ^while\/Enter)/'
    refused 65 "*'while/Less': Less: takes 'while/Enter', * is_constant=true*" \
        tf-graph --text edited.txt
}

@test "a loop does not begin with what its own end gives" {
    edited '^while/Enter_2 = ' 's/)/, ^a)/'
    refused 65 '*depends on the Exit of a loop that depends on it*' tf-graph --text edited.txt
    edited '^while/while/Enter_3 = ' 's/)/, ^while\/cond\/pred_id)/'
    tf-graph --text edited.txt >fine.tfg
    edited '^while/while/Enter_3 = ' 's/)/, ^while\/while\/Exit)/'
    refused 65 '*depends on the Exit of a loop that depends on it*' tf-graph --text edited.txt
}

# A value that is in no round, or in every round, where exactly one has been promised, used to crash
# the loop.
@test "each round gives what the next one needs, and the last what comes out" {
    edited '^a = ' 's/while.Switch_1/while\/while\/Identity_1/'
    refused 65 "*'a': Exit: must take output 0 of a Switch*" tf-graph --text edited.txt
    edited '^a = ' 's/Switch_1/Switch_1:1/'
    refused 65 "*'a': Exit: must take output 0 of a Switch*" tf-graph --text edited.txt
    edited '^while/cond/Add = ' 's/(.*)/(while\/cond\/Sub, while\/cond\/Switch_2:1)/'
    refused 65 '*NextIteration: has no value in rounds that do not take*' tf-graph --text edited.txt
    edited '^while/NextIteration = ' 's/)/, ^while\/cond\/switch_t)/'
    refused 65 "*'while/NextIteration': NextIteration: has no value in rounds*" \
        tf-graph --text edited.txt
    # Each branch now needs the other one's value: the Merge never gets any.
    sed -e '/^while.cond.Add = /s/Switch_2:1/Switch_4/' \
        -e '/^while.cond.Sub = /s/Switch_4/Switch_2:1/' nest.txt >edited.txt
    refused 65 '*NextIteration: has no value in rounds that do not take*' tf-graph --text edited.txt
}

# Such a loop was run as one item, in which only one of the variables went on.
@test "what comes round may be that of two variables" {
    cat >two.lua <<'END'
_, a, b = while_loop(function(i) return Less(i, 3) end, function(i, a, b)
  return i + 1, a * 2.0, b + 1.0
end, {Const(0), Const(1.5), Const(5.0)})
entry.r = {a, b}
END
    tf-graph two.lua | tf-show --text | sed 's/ : [a-z0-9]*\[.*//; s/ at [^ ]*$//' >two.txt
    sed '/^while.Merge_2 = /s/NextIteration_2/NextIteration_1/' two.txt >edited.txt
    run -1 cmp -s two.txt edited.txt
    tf-graph --text edited.txt | tf-exec --run r | tf-show >seen
    [[ $(<seen) == 'step 1  '*' 12  '*' 12' ]]
}

# A gradient's count comes back through branches of which one is not taken.
@test "gradients of loops with branches are no malformed loops" {
    cat >slope.lua <<'END'
x = Placeholder{dtype = float32, name = "x", shape = {}}
_, a = while_loop(function(i) return Less(i, 3) end, function(i, a)
  return i + 1, cond(Less(a, 2.0), function() return a * x end, function() return a + x end)
end, {Const(0), Const(1.5)})
entry.r = gradients(a, x)
END
    tf-graph slope.lua | tf-show --text >slope.txt # at x = 2: 1.5 x + x + x
    tf-graph --text slope.txt | tf-exec --run r --feed x=2 | tf-show >seen
    [[ $(<seen) == 'step 1  '*' 3.5' ]]
    sed 's/ : [a-z0-9]*\[.*//; s/ at [^ ]*$//' slope.txt >plain.txt
    run "$BATS_TEST_DIRNAME/loop_mutants.py" plain.txt "${LOOP_SEED:-1}" "${LOOP_MUTANTS:-100}" \
        r x=1.25
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "a damaged loop is refused, or it runs to an end" {
    tf-graph --text nest.txt | tf-exec -q --run r --feed x=1.25 >whole.out
    run -0 "$BATS_TEST_DIRNAME/loop_mutants.py" nest.txt "${LOOP_SEED:-1}" "${LOOP_MUTANTS:-400}" \
        r x=1.25
    echo "$output"
    [[ $output =~ ^[0-9]+' refused, '[1-9] ]]
}
