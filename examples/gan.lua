-- Digits out of noise (Goodfellow et al. 2014): a net that draws them, and one that tells drawn
-- ones from real ones, each trained on the other's mistakes, in one step.
local noise, batch = 16, D.batch or 64
x = Placeholder{dtype = float32, shape = {batch, 64}}     -- pixels, 0 to 16
local draw = share(function()
  return scope("draw", function()
    return Sigmoid(nn.sequential(RandomStandardNormal({batch, noise}, {dtype = float32}),
                                 {{nn.dense, 128}, Relu, {nn.dense, 64}}))
  end)
end)
local judge = share(function(image)                       -- above 0: real
  return scope("judge", function()
    return Squeeze(nn.sequential(image, {{nn.dense, 128}, Relu, {nn.dense, 1}}))
  end)
end)
local function is(answer, image)
  return nn.sigmoid_cross_entropy(judge(image), Fill({batch}, Const(answer, {dtype = float32})))
end
drawn      = draw()
judge_loss = is(1, x / 16) + is(0, StopGradient(drawn))
draw_loss  = is(1, drawn)
local function of(name)
  local list = {}
  for _, w in ipairs(trainable()) do
    if w.name:find("^" .. name .. "/") then list[#list + 1] = w end
  end
  return list
end
local rule = optim.adam{rate = 0.001, beta1 = 0.5}
entry.train = {minimize(judge_loss, rule, {variables = of "judge"}),
               minimize(draw_loss, rule, {variables = of "draw"})}
entry.predict = drawn
