-- The perceptron of examples/digits.lua with initial weights that any program can compute:
-- w[i] = 0.1 sin(i + 1), row by row.
-- tf-graph -D optimizer=sgd|momentum|adam -D clip=1 perceptron.lua
local function waves(shape)
  local n, w = 1, {}
  for _, d in ipairs(shape) do n = n * d end
  for i = 1, n do w[i] = 0.1 * math.sin(i) end
  return Reshape(Cast(w, {DstT = float32}), shape)
end

local optimizers = {
  sgd = optim.sgd{rate = 0.05},
  momentum = optim.momentum{rate = 0.02, momentum = 0.9},
  adam = optim.adam{rate = 0.003},
}

x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
h = nn.dense(x / 16, 128, {name = "hidden", activation = Relu, init = waves})
logits = nn.dense(h, 10, {name = "output", init = waves})
loss = nn.cross_entropy(logits, y)
entry.train = minimize(loss, optimizers[D.optimizer or "sgd"], {clip = D.clip})
