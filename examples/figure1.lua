-- Figure 1 of the TensorFlow white paper (2015): relu(W x + b) and a cost. There x is a column;
-- here each row is an input, so that a batch goes through at once.
x = Placeholder{dtype = float32, shape = {-1, 784}}
b = variable{name = "b", shape = {100}}                                 -- 100 zeros
W = variable{name = "W", shape = {784, 100}, init = init.uniform{min = -1, max = 1}}
relu = Relu(MatMul(x, W) + b)
C = L2Loss(relu) / 100                                                  -- the cost
entry.cost  = C
entry.train = minimize(C, optim.sgd{rate = 1e-4})
