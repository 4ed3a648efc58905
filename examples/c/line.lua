-- A straight line through points, w * x + b, fitted by gradient descent.
x = Placeholder{dtype = float32, shape = {-1}}
y = Placeholder{dtype = float32, shape = {-1}}
w = variable{name = "w", shape = {}}
b = variable{name = "b", shape = {}}
loss = Mean(Square(w * x + b - y), 0)
entry.train = minimize(loss, optim.sgd{rate = 0.1})
