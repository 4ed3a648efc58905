-- Convolution, normalization, pooling and filters for each position, over images of odd sizes.
local batch = 4
x = Placeholder{dtype = float32, shape = {batch, 18, 15, 3}}
y = Placeholder{dtype = int32, shape = {batch}}
local c = nn.conv2d(x, 4, 3, {name = "c1", activation = Relu})
c = nn.lrn(c, {radius = 2})
c = nn.max_pool(c, 3, {stride = 2, padding = "SAME"})
c = nn.conv2d(c, 6, 5, {name = "c2", activation = Tanh})
c = nn.avg_pool(c, 2, {stride = 1})
c = nn.locally_connected2d(c, 4, 3, {name = "l1", activation = Tanh})
logits = nn.dense(nn.flatten(c), 10, {name = "output"})
loss   = nn.cross_entropy(logits, y)
entry.train = minimize(loss, optim.momentum{rate = 0.01})
