-- Ridge regression on the diabetes data, twice: in closed form, w = (X'X + lambda I)^-1 X'y, and by
-- gradient descent on the same cost. The columns of x come standardized (./feed-diabetes), so that
-- y less its mean needs no bias.
local n, lambda = 10, D.lambda or 1.0
x = Placeholder{dtype = float64, shape = {-1, n}}
y = Placeholder{dtype = float64, shape = {-1}}
local target = ExpandDims(y - Mean(y, 0), 1)

local identity = {}
for i = 1, n do
  identity[i] = {}
  for j = 1, n do identity[i][j] = i == j and 1 or 0 end
end
local gram = MatMul(x, x, {transpose_a = true}) + lambda * Const(identity, {dtype = float64})
closed = MatMul(MatrixInverse(gram), MatMul(x, target, {transpose_a = true}))

w = variable{name = "w", shape = {n, 1}, dtype = float64}
local rows = Squeeze(Cast(Shape(y), {DstT = float64}))
local squares = L2Loss(MatMul(x, w) - target) + lambda * L2Loss(w)
loss = squares / rows                                     -- a row's share: the rate fits any number
difference = Max(Abs(w - closed), {0, 1}) / Max(Abs(closed), {0, 1})
entry.train  = minimize(loss, optim.sgd{rate = D.rate or 0.4})
entry.closed = closed
entry.eval   = difference
