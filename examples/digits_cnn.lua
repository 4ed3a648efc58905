-- Handwritten digits, 8x8 pixels: two convolutions and a classifier.
x = Placeholder{dtype = float32, shape = {-1, 64}}        -- pixels, 0 to 16, row by row
y = Placeholder{dtype = int32, shape = {-1}}
local image = Reshape(x / 16, {-1, 8, 8, 1})              -- images, height, width, channels
local c1 = nn.conv2d(image, 16, 3, {name = "conv1", activation = Relu})
local c2 = nn.conv2d(c1, 32, 3, {name = "conv2", activation = Relu})
features = nn.flatten(nn.max_pool(c2, 2))                 -- 4x4 windows of 32 features
logits   = nn.dense(features, 10, {name = "output"})
class    = ArgMax(logits, 1)
loss     = nn.cross_entropy(logits, y)
accuracy = nn.accuracy(logits, y)
entry.train   = minimize(loss, optim.adam{rate = D.rate or 0.005})
entry.eval    = accuracy
entry.predict = class
