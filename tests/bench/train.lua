-- Training steps of the benchmark nets, with SGD, on images that were generated once, or on other
-- words in each step.
-- tf-graph -D model=mlp|lenet|alexnet|vgg|lstm|embedding -D batch=N train.lua
local batch = D.batch or 64

local function image(shape)
  table.insert(shape, 1, batch)
  return variable{name = "images", shape = shape, init = init.normal{stddev = 1}, trainable = false}
end

local nets = {}

function nets.mlp()
  local h = nn.dense(image{784}, 512, {name = "fc1", activation = Relu})
  h = nn.dense(h, 512, {name = "fc2", activation = Relu})
  return nn.dense(h, 10, {name = "fc3"}), 10
end

function nets.lenet()
  local h = nn.conv2d(image{28, 28, 1}, 32, 5, {name = "conv1", activation = Relu})
  h = nn.max_pool(h, 2)
  h = nn.conv2d(h, 64, 5, {name = "conv2", activation = Relu})
  h = nn.flatten(nn.max_pool(h, 2))
  h = nn.dense(h, 512, {name = "fc1", activation = Relu})
  return nn.dense(h, 10, {name = "fc2"}), 10
end

function nets.alexnet()
  local function conv(x, n, size, o)
    o.activation = Relu
    return nn.conv2d(x, n, size, o)
  end
  local h = conv(image{227, 227, 3}, 64, 11, {name = "conv1", stride = 4, padding = "VALID"})
  h = nn.max_pool(h, 3, {stride = 2})
  h = nn.max_pool(conv(h, 192, 5, {name = "conv2"}), 3, {stride = 2})
  h = conv(h, 384, 3, {name = "conv3"})
  h = conv(h, 256, 3, {name = "conv4"})
  h = nn.max_pool(conv(h, 256, 3, {name = "conv5"}), 3, {stride = 2})
  h = nn.dense(nn.flatten(h), 4096, {name = "fc6", activation = Relu})
  h = nn.dense(h, 4096, {name = "fc7", activation = Relu})
  return nn.dense(h, 1000, {name = "fc8"}), 1000
end

-- Configuration A of Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale
-- Image Recognition", 2015.
function nets.vgg()
  local h = image{224, 224, 3}
  for i, layers in ipairs{{64}, {128}, {256, 256}, {512, 512}, {512, 512}} do
    for k, n in ipairs(layers) do
      h = nn.conv2d(h, n, 3, {name = "conv" .. i .. "_" .. k, activation = Relu})
    end
    h = nn.max_pool(h, 2)
  end
  h = nn.dense(nn.flatten(h), 4096, {name = "fc6", activation = Relu})
  h = nn.dense(h, 4096, {name = "fc7", activation = Relu})
  return nn.dense(h, 1000, {name = "fc8"}), 1000
end

-- Over 20 rows, in a loop.
function nets.lstm()
  local rows, inputs, units = 20, 64, 128
  local x = image{rows, inputs}
  local w = variable{name = "lstm/W", shape = {inputs + units, 4 * units},
                     init = init.glorot_uniform()}
  local b = variable{name = "lstm/b", shape = {4 * units}}
  local zero = Fill(Const({batch, units}, {dtype = int32}), Const(0, {dtype = float32}))
  local _, h = while_loop(function(t) return Less(t, rows) end, function(t, h, c)
    local row = Reshape(Slice(x, Pack{0, t, 0}, {-1, 1, -1}), {batch, inputs})
    local i, f, o, u = Split(1, BiasAdd(MatMul(Concat(1, {row, h}), w), b), {num_split = 4})
    c = Sigmoid(f) * c + Sigmoid(i) * Tanh(u)
    return t + 1, Sigmoid(o) * Tanh(c), c
  end, {Const(0, {dtype = int32}), zero, zero})
  return nn.dense(h, 10, {name = "out"}), 10
end

-- Sixteen words each, of 100,000: almost all parameters are in a table, of which few rows have a
-- gradient.
function nets.embedding()
  local words, n, size = 100000, 16, 64
  local ids = Cast(RandomUniform({batch * n}, {dtype = float32}) * words, {DstT = int64})
  local rows = Reshape(nn.embedding(ids, words, size, {name = "words"}), {batch, n, size})
  local h = nn.dense(Mean(rows, 1), 128, {name = "fc1", activation = Relu})
  return nn.dense(h, 10, {name = "fc2"}), 10
end

local logits, classes = nets[D.model or "mlp"]()
local labels = {}
for i = 1, batch do labels[i] = (i * 7919) % classes end
loss = nn.cross_entropy(logits, Cast(labels, {DstT = int32}))
entry.train = minimize(loss, optim.sgd{rate = 1e-4})
