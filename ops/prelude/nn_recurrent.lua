-- SPDX-License-Identifier: Apache-2.0
-- Recurrent layers, unrolled over the steps of a sequence or as a loop of the graph. Weights are
-- laid out as PyTorch's, transposed: one matrix W for the inputs, one U for the state, the gates
-- side by side.
local tf = ...

local function gates_of(x, n)
  return Split(Const(1, {dtype = int32}), x, {num_split = n})
end

-- Each cell: its number of gates; the next state, from the inputs' and the state's parts of the
-- gates, and the state {h, ...}.
local cells = {
  rnn = {gates = 1, states = 1, next = function(a, b) return {Tanh(a + b)} end},
  -- Hochreiter & Schmidhuber 1997, with forget gates; input, forget, cell, output
  lstm = {gates = 4, states = 2, next = function(a, b, state)
    local i, f, g, o = gates_of(a + b, 4)
    local c = Sigmoid(f) * state[2] + Sigmoid(i) * Tanh(g)
    return {Sigmoid(o) * Tanh(c), c}
  end},
  -- Cho et al. 2014; reset, update, new. The reset gate is applied after U.
  gru = {gates = 3, states = 1, next = function(a, b, state)
    local ar, az, an = gates_of(a, 3)
    local br, bz, bn = gates_of(b, 3)
    local z = Sigmoid(az + bz)
    local new = Tanh(an + Sigmoid(ar + br) * bn)
    return {new + z * (state[1] - new)}
  end},
}

-- The steps of x one after the other, in the graph or as a loop: what is given of each, [n, time,
-- units], and the last state. start(x) is the first state, of the x of one step; step(x, t, state)
-- gives both of step t, counted from 0.
local function unroll(where, x, start, step, backward)
  local steps, outputs = {Unpack(x, {num = tf.dim(where, x, 2), axis = 1})}, {}
  local state = start(steps[1])
  for i = 1, #steps do
    local t = backward and #steps + 1 - i or i
    outputs[t], state = step(steps[t], t - 1, state)
  end
  return Pack(outputs, {axis = 1}), state
end

local function loop(_, x, start, step, backward)
  local times, inputs = StridedSlice(Shape(x), {1}, {2}, {1}, {shrink_axis_mask = 1}), x.shape[3]
  local function at(t) return Reshape(Slice(x, Pack{0, t, 0}, {-1, 1, -1}), {-1, inputs}) end
  local state = start(at(0))
  local units = state[1].shape[2]
  local shapes = {{}, {-1, -1, units}}
  for k = 1, #state do shapes[2 + k] = {-1, units} end
  local function body(i, outputs, ...)
    local t = backward and times - 1 - i or i
    local output, new = step(at(t), t, {...})
    output = ExpandDims(output, 0)
    outputs = Concat(0, backward and {output, outputs} or {outputs, output})
    return i + 1, outputs, table.unpack(new)
  end
  local none = Slice(ExpandDims(state[1], 0), {0, 0, 0}, {0, -1, -1})
  local ends = {while_loop(function(i) return Less(i, times) end, body,
                           {Const(0, {dtype = int32}), none, table.unpack(state)},
                           {shapes = shapes})}
  return Transpose(ends[2], {1, 0, 2}), {table.unpack(ends, 3)}
end

-- One direction; behind a row's length outputs are 0, and the state as it was.
local function run(where, cell, x, units, o, backward)
  local inputs, dtype = tf.dim(where, x, 3), x.dtype
  local width = cell.gates * units
  local function make(name, shape, initial)
    return variable{name = name, shape = shape, dtype = dtype, init = initial,
                    trainable = o.trainable}
  end
  local weights = o.init or init.glorot_uniform()
  local w, u = make("W", {inputs, width}, weights), make("U", {units, width}, weights)
  local b, c = make("b", {width}, o.bias_init), make("c", {width}, o.bias_init)
  local function start(first)
    local zero = ZerosLike(MatMul(first, StopGradient(Slice(w, {0, 0}, {inputs, units}))))
    return cell.states == 1 and {zero} or {zero, zero}
  end
  local function step(now, t, state)
    local new = cell.next(BiasAdd(MatMul(now, w), b), BiasAdd(MatMul(state[1], u), c), state)
    local output = new[1]
    if o.lengths then
      local there = ExpandDims(Greater(o.lengths, t), 1)
      output = Select(there, output, ZerosLike(output))
      for k = 1, cell.states do new[k] = Select(there, new[k], state[k]) end
    end
    return output, new
  end
  return (o.loop and loop or unroll)(where, x, start, step, backward)
end

local function layer(name)
  local where, cell = "nn." .. name, cells[name]
  -- x [n, time, inputs] -> outputs [n, time, units], and the last state [n, units], of lstm and its
  -- cell's. bidirectional: both directions side by side. lengths [n]: of the sequences. loop: its
  -- steps are a loop, of a graph that stays small, and time may be unknown.
  nn[name] = function(x, units, o)
    o = tf.options(where, o, "name init bias_init trainable? lengths bidirectional? loop?")
    tf.number(where .. ": units", units)
    tf.rank(where, x, 3)
    tf.dim(where, x, o.loop and 3 or 2)
    if o.lengths then
      tf.rank(where .. ": lengths", o.lengths, 1)
      tf.index(where .. ": lengths", o.lengths)
    end
    return scope(o.name or name, function()
      local outputs, state = run(where, cell, x, units, o, false)
      if o.bidirectional then
        local back, last = scope("backward", function()
          return run(where, cell, x, units, o, true)
        end)
        outputs = Concat(2, {outputs, back})
        for k = 1, cell.states do state[k] = Concat(1, {state[k], last[k]}) end
      end
      return outputs, table.unpack(state)
    end)
  end
end

for _, name in ipairs{"rnn", "lstm", "gru"} do layer(name) end
