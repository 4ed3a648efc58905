-- The next byte of a text (Graves 2013), by an LSTM, with -D net=unrolled by the one of lstm.lua,
-- or with -D net=transformer by attention.
local net, units, times = D.net or "lstm", D.units or 64, 32
x = Placeholder{dtype = int32, shape = {-1, times}}       -- bytes of a plain text, below 128
y = Placeholder{dtype = int32, shape = {-1, times}}       -- the byte behind each
local h
if net == "unrolled" then
  h = require("lstm")(Reshape(Transpose(x, {1, 0}), {-1}), 128, units, times)
  h = Transpose(Reshape(h, {times, -1, units}), {1, 0, 2})
elseif net == "lstm" then
  h = nn.lstm(nn.embedding(x, 128, units), units)
else
  h = nn.positions(nn.embedding(x, 128, units), {learned = true})
  for _ = 1, 2 do h = nn.transformer(h, {heads = 4, causal = true, norm_first = true}) end
  h = nn.layer_norm(h)
end
local logits = nn.dense(h, 128)
loss       = nn.cross_entropy(logits, y)
perplexity = metric.perplexity(logits, y)
accuracy   = metric.accuracy(logits, y)
next       = Slice(ArgMax(logits, 2), {0, times - 1}, {-1, 1})
entry.train   = minimize(loss, optim.adamw{rate = 0.004, decayed = "/W$"})
entry.eval    = {perplexity, accuracy}
entry.predict = next                                      -- what follows the last byte
