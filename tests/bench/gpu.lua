-- SPDX-License-Identifier: Apache-2.0
-- Training steps of the nets of gpu.sh, with SGD, on data that were generated once.
-- tf-graph -D model=NAME -D batch=N [-D length=WORDS] [-D ops=N] gpu.lua
--   softmax mlp alexnet overfeat vgg googlenet inception lstm: peer_gpu.py has the same
--   chain: ops of a few elements each, which nothing makes one kernel of; fed: mlp, fed
local batch, model, length, ops = D.batch or 8, D.model or "mlp", D.length or 20, D.ops or 200
local convnets = require "convnets"

local function data(name, shape)
  return variable{name = name, shape = shape, init = init.normal{stddev = 1}, trainable = false}
end

local function labels(n, classes) -- fixed, and those of the peer
  local numbers = {}
  for i = 1, n do numbers[i] = i * 7919 % classes end
  return Cast(numbers, {DstT = int32})
end

local function classify(h, classes)
  return nn.cross_entropy(nn.dense(h, classes), labels(batch, classes))
end

local function perceptron(x)
  return nn.dense(nn.dense(x, 512, {activation = Relu}), 512, {activation = Relu})
end

local models = {}

function models.softmax() return classify(data("x", {batch, 784}), 10) end

function models.mlp() return classify(perceptron(data("x", {batch, 784})), 10) end

function models.fed()
  x = Placeholder{dtype = float32, shape = {batch, 784}}
  return classify(perceptron(x), 10)
end

-- A language model: words of 512 numbers, an LSTM of 512 units over `length` words, and the next
-- word of 10000.
function models.lstm()
  local units, words = 512, 10000
  local numbers = {}
  for i = 1, length * batch do numbers[i] = i * 104729 % words end
  local h = require("lstm")(Cast(numbers, {DstT = int32}), words, units, length)
  return nn.cross_entropy(nn.dense(h, words), labels(length * batch, words))
end

-- Useless, except that each op needs the one before it and does little work.
function models.chain()
  local w = variable{name = "w", shape = {256}, init = 0.5}
  local h = w
  for _ = 1, ops // 2 do h = Reverse(Tanh(h), {true}) end
  return Sum(h, 0)
end

for name, convnet in pairs(convnets) do
  models[name] = function()
    return classify(convnet.net(data("x", {batch, convnet.size, convnet.size, 3})), 1000)
  end
end

loss = models[model]()
if model == "chain" then
  entry.train = loss
else
  entry.train = minimize(loss, optim.sgd{rate = 1e-4})
end
