-- Digits with the logarithm of a softmax spelled out, and a rate far too large for it.
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
local h      = nn.dense(x / 16, 128, {name = "hidden", activation = Relu})
local logits = nn.dense(h, 10, {name = "output"})
local p      = Softmax(logits)
-- As soon as a probability underflows to 0, this is 0 times minus infinity.
loss         = -Mean(Sum(OneHot(y, 10, 1.0, 0.0) * Log(p), 1), 0)
entry.train  = minimize(loss, optim.sgd{rate = D.rate or 5})
