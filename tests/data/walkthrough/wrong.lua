-- Two layers that do not fit: h has 128 columns, W wants 64.
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
h = nn.dense(x / 16, 128, {name = "hidden", activation = Relu})
scope("output", function()
  local W = variable{name = "W", shape = {64, 10}}
  logits = MatMul(h, W)
end)
entry.predict = ArgMax(logits, 1)
