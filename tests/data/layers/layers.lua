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
  local sum = Sum(Square(y), Range(0, Rank(y), 1))
  all[#all + 1] = Identity(gradients(sum, of or x), {name = name .. "_dx"})
end
local o = {init = sines, bias_init = sines, loop = D.loop}
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
put("masked", nn.attention(q, k, v, {heads = 2, mask = Const{
    {{{true, false, true, true, false}}}, {{{false, true, false, false, false}}},
    {{{true, true, true, true, true}}}}}), q)
put("masked_causal", nn.attention(q, q, q, {heads = 2, causal = true, mask = Const{
    {{true, true, true, true}, {true, true, true, true}, {true, false, true, true},
     {false, true, false, true}}}}), q)

o = {init = sines, bias_init = sines, heads = 2, units = 10}
put("transformer", nn.transformer(q, o), q)
o.norm_first, o.causal, o.activation = true, true, nn.gelu
put("norm_first", nn.transformer(q, o), q)
put("positions", nn.positions(x))
put("learned", nn.positions(x, {learned = true, init = sines}))

o = {init = sines, bias_init = sines}
local image = sines({2, 5, 6, 4}, float64)
put("elu", nn.elu(x, {alpha = 0.7}))
put("elu_1", nn.elu(x))
put("softplus", nn.softplus(x, {beta = 1.5}))
put("softplus_1", nn.softplus(x))
put("prelu", nn.prelu(x, {init = sines}))
put("group_norm", nn.group_norm(image, 2), image)
put("instance_norm", nn.instance_norm(x))
put("conv1d", nn.conv1d(x, 5, 3, {init = sines, bias_init = sines, dilation = 2, padding = "SAME"}))
put("conv1d_stride", nn.conv1d(x, 5, 2, {init = sines, bias_init = sines, stride = 2,
                                         padding = "VALID", activation = Tanh}))
put("transpose", nn.conv2d_transpose(image, 3, {3, 2}, {init = sines, bias_init = sines,
                                                        stride = 2, padding = "VALID"}), image)
put("transpose_same", nn.conv2d_transpose(image, 3, 3, {init = sines, stride = 2, bias = false}),
    image)
local nchw = Transpose(image, {0, 3, 1, 2})
put("transpose_nchw", nn.conv2d_transpose(nchw, 3, 3, {init = sines, bias_init = sines,
                                                       layout = "NCHW"}), nchw)
put("depthwise", nn.depthwise_conv2d(image, 3, {init = sines, bias_init = sines, multiplier = 2}),
    image)
put("depthwise_stride", nn.depthwise_conv2d(image, {2, 3}, {
    init = sines, bias_init = sines, stride = 2, padding = "VALID"}), image)
put("depthwise_dilation", nn.depthwise_conv2d(image, {2, 3}, {
    init = sines, bias = false, dilation = {3, 2}, padding = "VALID"}), image)
put("separable", nn.separable_conv2d(image, 7, 3, {init = sines, bias_init = sines, stride = 2}),
    image)
put("pool_max", nn.max_pool1d(x, 2))
put("pool_avg", nn.avg_pool1d(x, 3, {stride = 1, padding = "SAME"}))
put("global_max", nn.global_max_pool(image), image)
put("global_avg", nn.global_avg_pool(nchw, {layout = "NCHW"}), nchw)
put("residual", nn.residual(x, function(h) return nn.conv1d(h, 6, 1, o) end,
                            {activation = Relu}))
put("sequential", nn.sequential(x, {{nn.conv1d, 5, 1, o}, Tanh, {nn.global_avg_pool},
                                    {nn.dense, 2, o}}))

local ids = Const{{4, 0, 4}, {1, 2, 0}, {3, 3, 3}, {0, 0, 0}}
local lengths = Const{3, 1, 2, 0}
for name, more in pairs{bag = {}, bag_sum = {mode = "sum"}, bag_mean = {lengths = lengths},
                        bag_part = {mode = "sum", lengths = lengths}} do
  more.dtype = float64
  more.init = function(shape, dtype)
    return Reshape(Sin(Cast(Range(0, 10, 1), {DstT = dtype}) * 1.7 + 1), {5, 2})
  end
  all[#all + 1] = Identity(nn.embedding_bag(ids, 5, 2, more), {name = name})
end

local logits, row = sines({4, 3}, float64), {0.5, 2.0, 1.0, 0.0}
local answers = Const({{1.0, 0.0, 1.0}, {0.0, 0.0, 1.0}, {1.0, 1.0, 0.0}, {0.0, 1.0, 0.0}},
                      {dtype = float64})
put("focal", nn.focal(logits, answers, {alpha = 0.25}), logits)
put("focal_plain", nn.focal(logits, answers, {gamma = 1.5}), logits)
put("focal_classes", nn.focal(logits, Const{2, 0, 1, 1}, {alpha = 0.25}), logits)
put("focal_weighted", nn.focal(logits, Const{2, 0, 1, 1}, {weights = row}), logits)
put("smooth", nn.cross_entropy(logits, Const{2, 0, 1, 1}, {smoothing = 0.2}), logits)
put("triplet", nn.triplet(logits, sines({4, 3}, float64), sines({4, 3}, float64),
                          {margin = 0.8}), logits)
put("depthwise_nchw", nn.depthwise_conv2d(nchw, 3, {
    init = sines, bias_init = sines, multiplier = 2, layout = "NCHW"}), nchw)
put("grouped", nn.conv2d(image, 6, 3, {init = sines, bias_init = sines, groups = 2}), image)
put("grouped_nchw", nn.conv2d(nchw, 6, {2, 3}, {
    init = sines, bias_init = sines, groups = 2, stride = 2, padding = "VALID", layout = "NCHW"}),
    nchw)
put("grouped1d", nn.conv1d(x, 9, 3, {init = sines, bias = false, groups = 3, dilation = 2}), x)
entry.eval = all
