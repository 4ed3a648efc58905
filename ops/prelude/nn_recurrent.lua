-- SPDX-License-Identifier: Apache-2.0
-- Recurrent layers, unrolled over the steps of a sequence. Weights have PyTorch's layout,
-- transposed: one matrix W for the inputs, one U for the state, with adjacent gates.
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

-- One direction: outputs by step, and the last state; past a row's length, 0 and unchanged.
local function run(where, cell, steps, units, o, backward)
  local inputs, dtype = tf.dim(where, steps[1], 2), steps[1].dtype
  local width = cell.gates * units
  local function make(name, shape, initial)
    return variable{name = name, shape = shape, dtype = dtype, init = initial,
                    trainable = o.trainable}
  end
  local weights = o.init or init.glorot_uniform()
  local w, u = make("W", {inputs, width}, weights), make("U", {units, width}, weights)
  local b, c = make("b", {width}, o.bias_init), make("c", {width}, o.bias_init)
  local zero = ZerosLike(MatMul(steps[1], StopGradient(Slice(w, {0, 0}, {inputs, units}))))
  local state, outputs = {}, {}
  for k = 1, cell.states do state[k] = zero end
  for i = 1, #steps do
    local t = backward and #steps + 1 - i or i
    local new = cell.next(BiasAdd(MatMul(steps[t], w), b), BiasAdd(MatMul(state[1], u), c), state)
    outputs[t] = new[1]
    if o.lengths then
      local there = ExpandDims(Greater(o.lengths, t - 1), 1)
      outputs[t] = Select(there, new[1], zero)
      for k = 1, cell.states do new[k] = Select(there, new[k], state[k]) end
    end
    state = new
  end
  return outputs, state
end

local function layer(name)
  local where, cell = "nn." .. name, cells[name]
  -- x [n, time, inputs] -> outputs [n, time, units], and the last state [n, units], for lstm also
  -- the cell's. bidirectional: both directions concatenated. lengths [n]: of the sequences.
  nn[name] = function(x, units, o)
    o = tf.options(where, o, "name init bias_init trainable? lengths bidirectional?")
    tf.number(where .. ": units", units)
    tf.rank(where, x, 3)
    tf.dim(where, x, 2)
    if o.lengths then
      tf.rank(where .. ": lengths", o.lengths, 1)
      tf.index(where .. ": lengths", o.lengths)
    end
    return scope(o.name or name, function()
      local steps = {Unpack(x, {num = tf.dim(where, x, 2), axis = 1})}
      local outputs, state = run(where, cell, steps, units, o, false)
      if o.bidirectional then
        local back, last = scope("backward", function()
          return run(where, cell, steps, units, o, true)
        end)
        for t = 1, #steps do outputs[t] = Concat(1, {outputs[t], back[t]}) end
        for k = 1, cell.states do state[k] = Concat(1, {state[k], last[k]}) end
      end
      return Pack(outputs, {axis = 1}), table.unpack(state)
    end)
  end
end

for _, name in ipairs{"rnn", "lstm", "gru"} do layer(name) end
