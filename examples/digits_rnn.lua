-- Handwritten digits, read row by row: a recurrent net over a loop that runs in the graph.
x = Placeholder{dtype = float32, shape = {-1, 64}}        -- pixels, 0 to 16, row by row
y = Placeholder{dtype = int32, shape = {-1}}
local units = 32
local image = Reshape(x / 16, {-1, 8, 8})                 -- images, rows, pixels of a row
local w = variable{name = "W", shape = {8 + units, units}, init = init.glorot_uniform()}
local b = variable{name = "b", shape = {units}}
local n = StridedSlice(Shape(x), {0}, {1}, {1}, {shrink_axis_mask = 1})

local function more(i) return Less(i, 8) end
local function step(i, h)                                 -- one row: h' = tanh([row, h] W + b)
  local row = Reshape(Slice(image, Pack{0, i, 0}, {-1, 1, -1}), {-1, 8})
  return i + 1, Tanh(BiasAdd(MatMul(Concat(1, {row, h}), w), b))
end
local start = Fill(Pack{n, units}, Const(0, {dtype = float32}))
local _, h = while_loop(more, step, {Const(0, {dtype = int32}), start})

logits   = nn.dense(Reshape(h, {-1, units}), 10, {name = "output"})
class    = ArgMax(logits, 1)
loss     = nn.cross_entropy(logits, y)
accuracy = nn.accuracy(logits, y)
entry.train   = minimize(loss, optim.adam{rate = 0.005})
entry.eval    = accuracy
entry.predict = class
