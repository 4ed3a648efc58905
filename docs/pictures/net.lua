-- Two layers: what the pictures of docs/techniques.md are of.
x = Placeholder{dtype = float32, shape = {-1, 1024}}
y = Placeholder{dtype = int32, shape = {-1}}
h = nn.dense(x, 1024, {name = "hidden", activation = Relu})
loss = nn.cross_entropy(nn.dense(h, 10, {name = "output"}), y)
entry.train = minimize(loss, optim.sgd{rate = 0.1})
