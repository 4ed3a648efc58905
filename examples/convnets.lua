-- SPDX-License-Identifier: Apache-2.0
-- The convolutional nets of papers: from an image to the layer before the classes. AlexNet
-- (Krizhevsky 2014), Overfeat (fast), VGG-A and GoogLeNet (without its side classifiers) as in
-- convnet-benchmarks; Inception-v3 with batch normalization, without its side classifier. With
-- -D narrow=8 they have an eighth of the units and channels. size: of the paper's images; least: of
-- the smallest ones of which something is left at the end.
local nets, narrow = {}, D.narrow or 1

local function conv(x, n, size, o)
  o = o or {}
  o.activation = o.activation or Relu
  return nn.conv2d(x, n // narrow, size, o)
end

local function dense(h, ...)
  h = nn.flatten(h)
  for _, n in ipairs{...} do h = nn.dense(h, n // narrow, {activation = Relu}) end
  return h
end

nets.alexnet = {size = 227, least = 67, net = function(x)
  local h = nn.max_pool(conv(x, 64, 11, {stride = 4, padding = "VALID"}), 3, {stride = 2})
  h = nn.max_pool(conv(h, 192, 5), 3, {stride = 2})
  h = conv(conv(h, 384, 3), 256, 3)
  return dense(nn.max_pool(conv(h, 256, 3), 3, {stride = 2}), 4096, 4096)
end}

nets.overfeat = {size = 231, least = 71, net = function(x)
  local h = nn.max_pool(conv(x, 96, 11, {stride = 4, padding = "VALID"}), 2)
  h = nn.max_pool(conv(h, 256, 5, {padding = "VALID"}), 2)
  h = nn.max_pool(conv(conv(conv(h, 512, 3), 1024, 3), 1024, 3), 2)
  return dense(h, 3072, 4096)
end}

nets.vgg = {size = 224, least = 32, net = function(x)
  local h = x
  for _, stage in ipairs{{64}, {128}, {256, 256}, {512, 512}, {512, 512}} do
    for _, n in ipairs(stage) do h = conv(h, n, 3) end
    h = nn.max_pool(h, 2)
  end
  return dense(h, 4096, 4096)
end}

-- 1x1; 1x1, 3x3; 1x1, 5x5; pool, 1x1
local function module(x, a, b1, b2, c1, c2, d)
  local pool = nn.max_pool(x, 3, {stride = 1, padding = "SAME"})
  return Concat(3, {conv(x, a, 1), conv(conv(x, b1, 1), b2, 3), conv(conv(x, c1, 1), c2, 5),
                    conv(pool, d, 1)})
end

local function halve(x)
  return nn.max_pool(x, 3, {stride = 2, padding = "SAME"})
end

nets.googlenet = {size = 224, least = 32, net = function(x)
  local h = halve(conv(x, 64, 7, {stride = 2}))
  h = halve(conv(conv(h, 64, 1), 192, 3))
  h = module(h, 64, 96, 128, 16, 32, 32)
  h = halve(module(h, 128, 128, 192, 32, 96, 64))
  h = module(h, 192, 96, 208, 16, 48, 64)
  h = module(h, 160, 112, 224, 24, 64, 64)
  h = module(h, 128, 128, 256, 24, 64, 64)
  h = module(h, 112, 144, 288, 32, 64, 64)
  h = halve(module(h, 256, 160, 320, 32, 128, 128))
  h = module(h, 256, 160, 320, 32, 128, 128)
  h = module(h, 384, 192, 384, 48, 128, 128)
  return nn.flatten(nn.avg_pool(h, h.shape[2]))
end}

-- Inception-v3: convolutions without a bias, normalized by the batch, or by averages in use.
local training

local function bn(x, n, size, o)
  o = o or {}
  o.bias = false
  return Relu(nn.batch_norm(nn.conv2d(x, n // narrow, size, o), {training = training, decay = 0.9}))
end

local valid = function(stride) return {stride = stride, padding = "VALID"} end

local function averaged(x, n)
  return bn(nn.avg_pool(x, 3, {stride = 1, padding = "SAME"}), n, 1)
end

local function pooled(x)
  return nn.max_pool(x, 3, {stride = 2})
end

local function mixed35(x, n)
  return Concat(3, {bn(x, 64, 1), bn(bn(x, 48, 1), 64, 5),
                    bn(bn(bn(x, 64, 1), 96, 3), 96, 3), averaged(x, n)})
end

local function mixed17(x, n)
  local a = bn(bn(bn(x, n, 1), n, {1, 7}), 192, {7, 1})
  local b = bn(bn(bn(x, n, 1), n, {7, 1}), n, {1, 7})
  b = bn(bn(b, n, {7, 1}), 192, {1, 7})
  return Concat(3, {bn(x, 192, 1), a, b, averaged(x, 192)})
end

local function mixed8(x)
  local a = bn(x, 384, 1)
  local b = bn(bn(x, 448, 1), 384, 3)
  return Concat(3, {bn(x, 320, 1), bn(a, 384, {1, 3}), bn(a, 384, {3, 1}),
                    bn(b, 384, {1, 3}), bn(b, 384, {3, 1}), averaged(x, 192)})
end

nets.inception = {size = 299, least = 75, net = function(x, is_training)
  training = is_training
  local h = bn(bn(bn(x, 32, 3, valid(2)), 32, 3, valid(1)), 64, 3)
  h = pooled(bn(bn(pooled(h), 80, 1, valid(1)), 192, 3, valid(1)))
  for _, n in ipairs{32, 64, 64} do h = mixed35(h, n) end
  h = Concat(3, {bn(h, 384, 3, valid(2)), bn(bn(bn(h, 64, 1), 96, 3), 96, 3, valid(2)), pooled(h)})
  for _, n in ipairs{128, 160, 160, 192} do h = mixed17(h, n) end
  local a = bn(bn(h, 192, 1), 320, 3, valid(2))
  local b = bn(bn(bn(bn(h, 192, 1), 192, {1, 7}), 192, {7, 1}), 192, 3, valid(2))
  h = mixed8(mixed8(Concat(3, {a, b, pooled(h)})))
  return nn.flatten(nn.avg_pool(h, h.shape[2]))
end}

return nets
