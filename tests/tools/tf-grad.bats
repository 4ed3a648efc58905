#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-grad: gradients and training added to an existing graph.
bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >forward.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1, 2}}
scope("layer", function() variable{name = "W", init = {{1.0}, {-2.0}}} end)
variable{name = "frozen", init = {{1.0}}, trainable = false}
y = MatMul(x, tensor "layer/W") * tensor "frozen"
loss = Sum(y * y, {0, 1})
class = ArgMax(y, 0)
cut = Sum(Cast(class, {DstT = float32}), {0})
END
    tf-graph forward.lua -o forward.tfg
}

@test "--minimize gives the entry train, which learns as the script's minimize does" {
    { cat forward.lua; echo 'entry.train = minimize(loss, optim.adam{rate = 0.5})'; } >full.lua
    tf-graph full.lua -o full.tfg
    tf-grad --minimize loss --optimizer adam,rate=0.5 forward.tfg -o added.tfg
    for graph in full added; do
        tf-exec -g $graph.tfg --run train --fetch loss --steps 3 --feed 'x=[[1.0,3],[2,5]]' |
            tf-show >$graph.txt
    done
    cmp full.txt added.txt
    [ "$(wc -l <full.txt)" = 3 ]
}

@test "only trained variables are changed, and init knows the new ones" {
    tf-grad --minimize loss --optimizer momentum,rate=0.5,nesterov=true <forward.tfg >train.tfg
    tf-exec -g train.tfg --run train --feed 'x=[[1.0,3]]' --save state >fetched
    tf-exec -g train.tfg --fetch frozen/read,layer/W/read --restore state -o after.rec
    tf-show after.rec >after
    grep -q 'frozen/read 1' after
    # W - 0.5 (g + 0.9 g) for g = [-10, -30]
    tf-show --npy after.rec layer/W/read | tail -c 8 | od -An -tf4 | xargs >w
    [ "$(cat w)" = "10.5 26.5" ]
}

@test "--of --wrt: gradients by name and by the entry grad" {
    tf-grad --of loss --wrt x,layer/W forward.tfg >g.tfg
    # y = -5 for [1,3]: d loss/dx = 2 y w = [-10, 20], d loss/dW = 2 y x = [-10, -30]
    tf-exec -g g.tfg --fetch grad/x,grad/layer/W --feed 'x=[[1.0,3]]' >out.rec
    tf-show --npy out.rec grad/x | tail -c 8 | od -An -tf4 | xargs >dx
    tf-show --npy out.rec grad/layer/W | tail -c 8 | od -An -tf4 | xargs >dw
    [ "$(cat dx)" = "-10 20" ]
    [ "$(cat dw)" = "-10 -30" ]
    tf-exec -g g.tfg --run grad --feed 'x=[[1.0,3]]' | tf-show | finds '^step 1'
}

@test "a path that is cut is an error that names the node" {
    run -65 tf-grad --of cut --wrt x forward.tfg
    [[ $output == *"tf-grad: forward.tfg: "*"node 'Cast' (forward.lua:7)"* ]]
    run -65 tf-grad --minimize cut forward.tfg
    [[ $output == *"node 'Cast' (forward.lua:7)"* ]]
    run -65 tf-grad --of loss --wrt class forward.tfg
    [[ $output == *"'class'"* ]]
}

@test "names and options that are not there" {
    run -65 tf-grad --minimize lost forward.tfg
    [[ $output == *"there is no node 'lost' (did you mean 'loss'?)"* ]]
    run -65 tf-grad --minimize loss --optimizer adma forward.tfg
    [[ $output == *"there is no optimizer 'adma' (there are: adadelta, adafactor, adagrad,"* ]]
    run -65 tf-grad --minimize loss --optimizer adam,rat=1 forward.tfg
    [[ $output == *"optim.adam has no option 'rat'"* ]]
    run -64 tf-grad --of loss forward.tfg
    run -64 tf-grad forward.tfg
    run -64 tf-grad --minimize loss --of loss --wrt x forward.tfg
    run -66 tf-grad --minimize loss absent.tfg
}
