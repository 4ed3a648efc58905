-- Papers that cite each other, of three fields (Kipf and Welling 2017): each learns of those it is
-- tied to. All are in one batch; only the few that are told count in the loss.
local n, words, fields = D.papers or 300, 30, 3
x    = Placeholder{dtype = float32, shape = {n, words}}   -- words of each
tied = Placeholder{dtype = float32, shape = {n, n}}       -- 1: one cites the other
y    = Placeholder{dtype = int32, shape = {n}}            -- its field
told = Placeholder{dtype = float32, shape = {n}}          -- 1: known in training
local ties = D.ties or 1                                  -- 0: each on its own, to compare
local a = ties * tied + MatrixBandPart(Fill({n, n}, Const(1, {dtype = float32})), 0, 0)
local root = Rsqrt(Sum(a, 1))
local mean = a * ExpandDims(root, 1) * ExpandDims(root, 0)
local function convolve(h, units) return MatMul(mean, nn.dense(h, units)) end
local logits = convolve(Relu(convolve(x, 16)), fields)
field    = ArgMax(logits, 1)
loss     = nn.cross_entropy(logits, y, {weights = told}) + 0.002 * nn.l2(1, "/W$")
accuracy = metric.accuracy(logits, y, {weights = 1 - told})
entry.train   = minimize(loss, optim.adam{rate = 0.02})
entry.eval    = accuracy
entry.predict = field
