-- Layers with weights that are sines, to be compared with expected.txt (make.py).
local count = 0
local function sines(shape, dtype) -- of the place, and of how many there were before
  count = count + 1
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  local place = Range(0, n, 1)
  return Reshape(Sin(Cast(place, {DstT = dtype}) * 1.7 + count), Const(shape, {dtype = int32}))
end
local x, q = sines({3, 4, 6}, float64), sines({3, 4, 8}, float64)
local k, v = sines({3, 5, 8}, float64), sines({3, 5, 4}, float64)
local all = {}
local function put(name, y, of)
  all[#all + 1] = Identity(y, {name = name})
  all[#all + 1] = Identity(gradients(Sum(Square(y), {0, 1, 2}), of or x), {name = name .. "_dx"})
end
local o = {init = sines, bias_init = sines}
put("rnn", (nn.rnn(x, 5, o)))
local y, h, c = nn.lstm(x, 5, o)
put("lstm", y)
all[#all + 1], all[#all + 2] = Identity(h, {name = "lstm_h"}), Identity(c, {name = "lstm_c"})
put("gru", (nn.gru(x, 5, o)))
o.bidirectional, o.lengths = true, Const{4, 1, 3}
local y, h = nn.lstm(x, 5, o)
put("lstm_both", y)
all[#all + 1] = Identity(h, {name = "lstm_both_h"})
put("layer_norm", nn.layer_norm(x))
put("gelu", nn.gelu(x))
put("silu", nn.silu(x))
put("attention", nn.attention(q, k, v, {heads = 2}), q)
put("causal", nn.attention(q, q, q, {heads = 4, causal = true}), q)
entry.eval = all
