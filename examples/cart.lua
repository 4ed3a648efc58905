-- A pole on a cart that is pushed left or right (Barto, Sutton and Anderson 1983), learned by
-- policy gradient (Williams 1992): carts run side by side in a loop in the graph, with no data.
local carts, most = D.carts or 64, D.most or 200
local function float(x) return Const(x, {dtype = float32}) end
local policy = share(function(state)
  return nn.dense(nn.dense(state, 16, {activation = Tanh}), 2)
end)

local function pushed(state, force)                       -- 0.02 s later, by Euler's method
  local x, v, angle, turn = table.unpack(state)
  local sin, cos = Sin(angle), Cos(angle)
  local a = (force + 0.05 * turn * turn * sin) / 1.1
  local bend = (9.8 * sin - cos * a) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
  return x + 0.02 * v, v + 0.02 * (a - 0.05 * bend * cos / 1.1), angle + 0.02 * turn,
         turn + 0.02 * bend
end

-- said: the sum of log-probabilities of what a cart did so far. Each step that it stands gives 1,
-- less what the others' mean is: all that it did before is made more likely by that.
local function step(t, up, said, gain, lasted, x, v, angle, turn)
  local logits = policy(Pack({x, v, angle, turn}, {axis = 1}))
  local push = Squeeze(Multinomial(StopGradient(logits), 1), {squeeze_dims = {1}})
  local chosen = OneHot(push, 2, float(1), float(0))
  said = said + up * Sum(LogSoftmax(logits) * chosen, 1)
  x, v, angle, turn = pushed({x, v, angle, turn}, 20 * Cast(push, {DstT = float32}) - 10)
  local stands = LogicalAnd(Less(Abs(x), 2.4), Less(Abs(angle), 0.2095))
  up = up * Cast(stands, {DstT = float32})
  gain = gain + Mean(said * StopGradient(up - Mean(up, 0)), 0)
  return t + 1, up, said, gain, lasted + Mean(up, 0), x, v, angle, turn
end

local start = {Const(0, {dtype = int32}), Fill({carts}, float(1)), Fill({carts}, float(0)),
               float(0), float(0)}
for _ = 1, 4 do start[#start + 1] = 0.1 * RandomUniform({carts}, {dtype = float32}) - 0.05 end
local _, _, _, gain, steps = while_loop(function(t) return Less(t, most) end, step, start)
lasted = steps                                            -- of `most`, the mean of all carts
loss   = -gain
entry.train = minimize(loss, optim.adam{rate = D.rate or 0.01}, {clip = 5})
entry.eval  = lasted
