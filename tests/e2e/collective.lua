-- SPDX-License-Identifier: Apache-2.0
-- A collective, forward and backward: `op` among workers that have `rows` rows of `cols` columns
-- each, or (`one`) all of them in one process, with slices and sums. Worker k gets y, g = dL/dx
-- and, among workers, slope and rise: the derivative of the sum L of all losses in a direction by
-- gradients, and by differences. `group`: among groups of so many, `stride` apart; then one process
-- computes that of the workers `ranks`.
local op, cols, root = D.op, tonumber(D.cols), tonumber(D.root or 1)
local counts = {}
for n in D.rows:gmatch "%d+" do counts[#counts + 1] = tonumber(n) end
local ranks = {}
for k in (D.ranks or ""):gmatch "%d+" do ranks[#ranks + 1] = tonumber(k) end
local group = D.group and {size = tonumber(D.group), stride = tonumber(D.stride)} or nil
local n, total = #counts, 0
for _, rows in ipairs(counts) do total = total + rows end

-- of worker k, a tensor or a number
local function value(k, rows, frequency)
  local index = Cast(Range(0, rows * cols, 1), {DstT = float64})
  return Reshape(Sin(index * frequency + k), Pack {rows, cols})
end

local function loss(y, k) return Sum(Square(y) * (k + 1) + Sin(y), {0, 1}) end

-- ---- among workers ----

local function apply(x)
  if op == "mean_scatter" then return collective.reduce_scatter(x, "mean", group) end
  if op == "mean_reduce" then return collective.all_reduce(x, "mean", group) end
  if op == "all_reduce" then return collective.all_reduce(x, "sum", group) end
  if op == "reduce_scatter" then return collective.reduce_scatter(x, "sum", group) end
  if op == "rows" or op == "part" or op == "sum_part" or op == "mean_part" or op == "mean_rows" then
    return collective.all_reduce(x, op, group)
  end
  if op == "broadcast" or op == "gather" or op == "scatter" then
    return collective[op](x, root, group)
  end
  return collective[op](x, group)
end

local function worker()
  local k = Placeholder {dtype = float64, shape = {}, name = "k"}
  local rows = Placeholder {dtype = int32, shape = {}, name = "rows"}
  local x, d = value(k, rows, 0.37), value(k, rows, 0.91)
  local y = apply(x)
  local one = Const(1, {dtype = float64}) -- in the device that all have
  local g = gradients(loss(y, k), x, {grad_ys = {one}, colocate = true})
  local h = 1e-5
  local rise = (loss(apply(x + h * d), k) - loss(apply(x - h * d), k)) / (2 * h)
  Identity(y, {name = "y"})
  Identity(g, {name = "g"})
  Identity(collective.all_reduce(Sum(g * d, {0, 1})), {name = "slope"})
  Identity(collective.all_reduce(rise), {name = "rise"})
end

-- ---- in one process ----

local function slice(x, first, rows) return Slice(x, {first, 0}, {rows, cols}) end

-- first row and number of rows of the k-th part
local function part(rows, k)
  local each, more = rows // n, rows % n
  return each * k + math.min(k, more), each + (k < more and 1 or 0)
end

local function sum(list)
  local result = list[1]
  for i = 2, #list do result = result + list[i] end
  return result
end

local function each(make)
  local list = {}
  for k = 0, n - 1 do list[k + 1] = make(k) end
  return list
end

local function parts(x, rows)
  return each(function(k) return slice(x, part(rows, k)) end)
end

local function by_counts(x)
  local first = 0
  return each(function(k)
    first = first + counts[k + 1]
    return slice(x, first - counts[k + 1], counts[k + 1])
  end)
end

local function zeros(rows) return Fill(Pack {rows, cols}, Const(0, {dtype = float64})) end
local function join(list) return Concat(0, list) end
local function scaled(list, c) return each(function(k) return list[k + 1] / c end) end
local function same(x) return each(function() return x end) end
local function at_root(x, rows)
  return each(function(k) return k == root and x or zeros(rows and rows[k + 1] or 0) end)
end

-- of every list the k-th
local function turned(lists)
  return each(function(k)
    return join(each(function(j) return lists[j + 1][k + 1] end))
  end)
end
local function all_parts(xs)
  return turned(each(function(j) return parts(xs[j + 1], counts[1]) end))
end

-- what workers get is cut again as it was: of each pair what the other was sent
local function back_parts(gs)
  local first = each(function() return 0 end)
  return each(function(k)
    return join(each(function(j)
      local _, rows = part(counts[1], j)
      local from = first[j + 1]
      first[j + 1] = from + rows
      return slice(gs[j + 1], from, rows)
    end))
  end)
end
-- what goes there, and back
local ways = {
  broadcast = {function(xs) return same(xs[root + 1]) end,
               function(gs) return at_root(sum(gs), counts) end},
  gather = {function(xs) return at_root(join(xs)) end,
            function(gs) return by_counts(gs[root + 1]) end},
  scatter = {function(xs) return parts(xs[root + 1], counts[root + 1]) end,
             function(gs) return at_root(join(gs), counts) end},
  reduce_scatter = {function(xs) return parts(sum(xs), counts[1]) end,
                    function(gs) return same(join(gs)) end},
  mean_scatter = {function(xs) return parts(sum(xs) / n, counts[1]) end,
                  function(gs) return same(join(gs) / n) end},
  all_gather = {function(xs) return same(join(xs)) end,
                function(gs) return by_counts(sum(gs)) end},
  mean_rows = {function(xs) return same(join(xs) / n) end,
               function(gs) return by_counts(sum(gs) / n) end},
  all_to_all = {all_parts, back_parts},
  all_reduce = {function(xs) return same(sum(xs)) end, function(gs) return same(sum(gs)) end},
  mean_reduce = {function(xs) return same(sum(xs) / n) end,
                 function(gs) return same(sum(gs) / n) end},
}
ways.rows, ways.part = ways.all_gather, ways.all_to_all
ways.sum_part, ways.mean_part = ways.reduce_scatter, ways.mean_scatter

local function one()
  local function rank(k) return ranks[k + 1] or k end
  local xs = each(function(k) return value(rank(k), counts[k + 1], 0.37) end)
  local ys = ways[op][1](xs)
  local gs = ways[op][2](each(function(k)
    local y = Identity(ys[k + 1])
    return gradients(loss(y, rank(k)), y)
  end))
  for k = 0, n - 1 do
    Identity(ys[k + 1], {name = "y" .. k})
    Identity(gs[k + 1], {name = "g" .. k})
  end
end

if D.one then one() else device("/job:worker/task:*", worker) end
