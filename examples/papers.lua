-- Digits by the nets of papers: -D net=alexnet, overfeat, vgg, googlenet or inception, with
-- -D narrow=8 an eighth as wide as for photographs, on images as large as the net needs at least.
local net = require("convnets")[D.net or "alexnet"]
local times = math.ceil(net.least / 8)                    -- a pixel becomes as many squared
x = Placeholder{dtype = float32, shape = {-1, 64}}        -- pixels, 0 to 16, row by row
y = Placeholder{dtype = int32, shape = {-1}}
local squares = Tile(Reshape(x / 16, {-1, 8, 1, 8, 1}), {1, 1, times, 1, times})
local image = Reshape(squares, {-1, 8 * times, 8 * times, 1})
local classify = share(function(training)
  return nn.dense(net.net(image, training), 10, {name = "output"})
end)
loss   = nn.cross_entropy(classify(true), y)
logits = classify(false)
class  = ArgMax(logits, 1)
accuracy = metric.accuracy(logits, y)
entry.train   = minimize(loss, optim.adam{rate = 0.002})
entry.eval    = accuracy
entry.predict = class
