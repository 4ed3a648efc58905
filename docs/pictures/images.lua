-- A layer whose windows are 3 by 3, and one that sees all of the image.
x = Placeholder{dtype = float32, shape = {8, 32, 32, 3}}
y = Placeholder{dtype = int32, shape = {8}}
h = nn.conv2d(x, 16, 3, {name = "windows", activation = Relu})
loss = nn.cross_entropy(nn.dense(nn.flatten(h), 10, {name = "output"}), y)
entry.train = minimize(loss, optim.sgd{rate = 0.1})
