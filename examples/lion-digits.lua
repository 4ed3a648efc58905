-- Handwritten digits, 8x8 pixels: a perceptron with one hidden layer.
local units = D.units or 128                              -- tf-graph -D units=256
x = Placeholder{dtype = float32, shape = {-1, 64}}        -- pixels, 0 to 16; -1: any number
y = Placeholder{dtype = int32, shape = {-1}}              -- classes, 0 to 9
h        = nn.dense(x / 16, units, {name = "hidden", activation = Relu})
logits   = nn.dense(h, 10, {name = "output"})
class    = ArgMax(logits, 1)
loss     = nn.cross_entropy(logits, y)
accuracy = nn.accuracy(logits, y)
entry.train   = minimize(loss, require "lion"{rate = 0.003})  -- gradients, updates, check for NaN
entry.eval    = accuracy                                  -- an entry that is a tensor is fetched
entry.predict = class
