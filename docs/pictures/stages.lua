-- The same with a layer on each of two tasks.
x = Placeholder{dtype = float32, shape = {-1, 1024}}
y = Placeholder{dtype = int32, shape = {-1}}
device("/job:worker/task:0", function()
    h = nn.dense(x, 1024, {name = "hidden", activation = Relu})
end)
device("/job:worker/task:1", function()
    loss = nn.cross_entropy(nn.dense(h, 10, {name = "output"}), y)
end)
entry.train = minimize(loss, optim.sgd{rate = 0.1})
