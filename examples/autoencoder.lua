-- Digits through a bottle neck of a few numbers (Hinton and Salakhutdinov 2006): what comes out is
-- compared with what went in, so no labels are needed.
local size = D.size or 8
x = Placeholder{dtype = float32, shape = {-1, 64}}        -- pixels, 0 to 16
local pixels = x / 16
code   = nn.dense(nn.dense(pixels, 64, {activation = Relu}), size)
local logits = nn.dense(nn.dense(code, 64, {activation = Relu}), 64)
again  = 16 * Sigmoid(logits)
loss   = nn.mse(again / 16, pixels)
entry.train   = minimize(loss, optim.adam{rate = 0.005})
mse    = metric.mse(again / 16, pixels)
entry.eval    = mse
entry.predict = again
