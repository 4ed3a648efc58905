-- SPDX-License-Identifier: Apache-2.0
-- What tf-grad does with a graph that it read.
local tf = ...

-- "adam,rate=0.001" -> optim.adam{rate = 0.001}
local function optimizer_of(text)
  local name, rest = text:match("^([^,]*),?(.*)$")
  if type(rawget(optim, name)) ~= "function" then
    local names = {}
    for key in pairs(optim) do names[#names + 1] = key end
    tf.fail("there is no optimizer '%s' (there are: %s)%s", name, table.concat(names, ", "),
            tf.nearest(name, names))
  end
  local o = {}
  for part in rest:gmatch("[^,]+") do
    local key, value = part:match("^([%w_]+)=(.+)$")
    if not key then tf.fail("optimizer '%s': parameters are KEY=VALUE, not '%s'", name, part) end
    if value == "true" or value == "false" then
      o[key] = value == "true"
    else
      o[key] = tonumber(value)
      if not o[key] then
        tf.fail("optimizer '%s': %s must be a number, not '%s'", name, key, value)
      end
    end
  end
  return optim[name](o)
end

function tf.command_minimize(loss, optimizer)
  entry.train = minimize(tensor(loss), optimizer_of(optimizer))
end

function tf.command_gradients(of, wrt)
  local xs = {}
  for i, name in ipairs(wrt) do xs[i] = tensor(name) end
  local list = gradients(tensor(of), xs)
  for i, g in ipairs(list) do
    tf.alias("grad/" .. wrt[i]:gsub(":", "_"), g)
  end
  entry.grad = list
end
