-- The scores of metric.py, by its names.
local given = Placeholder{dtype = float32, shape = {-1, 10}, name = "rows"}
local function column(i, dtype)
  local x = Reshape(Slice(given, {0, i}, {-1, 1}), {-1})
  return dtype and Cast(x, {DstT = dtype}) or x
end
local s, two = Slice(given, {0, 0}, {-1, 4}), Slice(given, {0, 0}, {-1, 2})
local y, p, b, t, g = column(4, int32), column(5), column(6, int32), column(7), column(8)
local list = {}
for _, tail in ipairs{"", "_w"} do
  local function o(name, more)
    more = more or {}
    more.name = name .. tail
    if tail ~= "" then more.weights = column(9) end
    return more
  end
  local all = {
    metric.accuracy(s, y, o"accuracy"), metric.accuracy(p, b, o"accuracy_p"),
    metric.top_k(s, y, 2, o"top_2"), metric.confusion(s, y, o"confusion"),
    metric.auc(p, b, o"auc"), metric.auc(two, b, o"auc_two"),
    metric.auc(p, b, o("ap", {curve = "pr"})), metric.auc(s, y, o"auc_all"),
    metric.log_loss(s, y, o"log_loss"), metric.log_loss(p, b, o"log_loss_b"),
    metric.perplexity(s, y, o"perplexity"), metric.mse(g, t, o"mse"), metric.rmse(g, t, o"rmse"),
    metric.mae(g, t, o"mae"), metric.r2(g, t, o"r2"), metric.mean(t, o"mean")}
  for _, name in ipairs{"precision", "recall", "f1"} do
    local f = metric[name]
    all[#all + 1] = f(p, b, o(name))
    all[#all + 1] = f(p, b, o(name .. "_0", {positive = 0}))
    for _, average in ipairs{"macro", "micro", "weighted"} do
      all[#all + 1] = f(s, y, o(name .. "_" .. average, {average = average}))
    end
  end
  for _, x in ipairs(all) do list[#list + 1] = x end
end
entry.eval = list
own = metric.total(Sum(p * column(9), 0)) / metric.total(Sum(column(9), 0))
