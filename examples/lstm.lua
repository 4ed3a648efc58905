-- LSTM units over the words of sentences (Hochreiter and Schmidhuber 1997), one step after the
-- other as benchmarks have it: one product computes the words' part of the gates for all steps.
-- words: numbers, the first word of each sentence, then the second ones; `length` of them.
-- Returns [length * sentences, units] in the same order.
return function(words, n_words, units, length)
  local h = nn.embedding(words, n_words, units)
  local gates = {Split(0, nn.dense(h, 4 * units, {name = "input"}), {num_split = length})}
  local w = variable{name = "recurrent/W", shape = {units, 4 * units}, init = init.glorot_uniform()}
  local state, cell, outputs = nil, nil, {}
  for t = 1, length do
    local z = state and gates[t] + MatMul(state, w) or gates[t]
    local i, f, g, o = Split(1, z, {num_split = 4})
    local new = Sigmoid(i) * Tanh(g)
    cell = cell and Sigmoid(f) * cell + new or new
    state = Sigmoid(o) * Tanh(cell)
    outputs[t] = state
  end
  return Concat(0, outputs)
end
