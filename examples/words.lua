-- Words by those that stand beside them (Mikolov et al. 2013), with a few classes drawn for all:
-- words that are used alike get vectors that point the same way.
local words, size = D.words or 200, D.size or 16
word = Placeholder{dtype = int32, shape = {-1}}
near = Placeholder{dtype = int32, shape = {-1}}           -- a word beside it
vectors = variable{name = "vectors", shape = {words, size},
                   init = init.uniform{min = -0.5, max = 0.5}}
loss = nn.sampled_softmax{inputs = Gather(vectors, word), labels = near, num_sampled = 20,
                          num_classes = words}
entry.train = minimize(loss, optim.adam{rate = 0.01})
local unit = vectors / Sqrt(Sum(vectors * vectors, 1, {keep_dims = true}))
local _, like = TopKV2(MatMul(unit, unit, {transpose_b = true}), 6)
nearest = like                                            -- of each word: itself, and five others
entry.nearest = nearest
