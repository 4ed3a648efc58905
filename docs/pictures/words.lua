-- Words of 40,000, of which a step samples 512.
x = Placeholder{dtype = int32, shape = {-1}}
y = Placeholder{dtype = int32, shape = {-1}}
h = nn.embedding(x, 40000, 512, {name = "words"})
loss = nn.sampled_softmax{inputs = h, labels = y, num_sampled = 512, num_classes = 40000,
                          name = "classes"}
entry.train = minimize(loss, optim.sgd{rate = 0.1})
