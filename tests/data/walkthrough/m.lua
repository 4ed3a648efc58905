-- The slot of W and the variable m share a device with each other, but W and m are on two shards.
device("/job:ps/task:0", function()
  W = variable{name = "W", shape = {4}}
end)
local s = slot(W, "slot")
colocate(s, function()
  device("/job:ps/task:1", function()
    m = variable{name = "m", shape = {4}}
  end)
end)
y = W + m
