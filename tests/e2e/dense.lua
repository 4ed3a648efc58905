-- A convolution and three dense layers of sizes that no number of workers divides, in float64.
-- tf-graph -D optimizer=sgd -D dropout=true -D decay=0.001 -D clip=0.5 dense.lua
local function waves(shape)
  local n, w = 1, {}
  for _, d in ipairs(shape) do n = n * d end
  for i = 1, n do w[i] = 0.1 * math.sin(i) end
  return Reshape(Cast(w, {DstT = float64}), shape)
end

local optimizers = {
  sgd = optim.sgd{rate = 0.05},
  momentum = optim.momentum{rate = 0.02},
  adagrad = optim.adagrad{rate = 0.01},
  rmsprop = optim.rmsprop{rate = 0.003},
  adam = optim.adam{rate = 0.003},
}

local function drop(h, seed)
  return D.dropout and nn.dropout(h, 0.7, {seed = seed}) or h
end

x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
local image = Reshape(Cast(x / 16, {DstT = float64}), {-1, 8, 8, 1})
local c = nn.conv2d(image, 4, 3, {name = "conv", activation = Relu, init = waves})
local h = nn.dense(nn.flatten(c), 11, {name = "one", activation = Relu})
h = nn.dense(drop(h, 3), 7, {name = "two", activation = Tanh, init = waves})
logits = nn.dense(drop(h, 4), 10, {name = "three", init = waves})
loss = nn.cross_entropy(logits, y)
if D.decay then
  for _, w in ipairs(trainable()) do loss = loss + D.decay * L2Loss(w) end
end
accuracy = nn.accuracy(logits, y)
entry.train = minimize(loss, optimizers[D.optimizer or "sgd"], {clip = D.clip})
