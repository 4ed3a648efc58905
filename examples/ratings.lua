-- Who likes what (Koren, Bell and Volinsky 2009): a rating is the product of what a person and a
-- film are made of. A batch changes only the rows of those who are in it.
local people, films, size = D.people or 400, D.films or 300, D.size or 4
person = Placeholder{dtype = int32, shape = {-1}}
film   = Placeholder{dtype = int32, shape = {-1}}
stars  = Placeholder{dtype = float32, shape = {-1}}
local function embed(ids, n, units)
  return nn.embedding(ids, n, units, {init = init.normal{stddev = 0.1}})
end
local p, f = embed(person, people, size), embed(film, films, size)
local bias = Squeeze(embed(person, people, 1) + embed(film, films, 1), {squeeze_dims = {1}})
guess = 3 + bias + Sum(p * f, 1)
loss  = nn.mse(guess, stars)
local size_of = nn.mse(p, 0 * p) + nn.mse(f, 0 * f)       -- kept small, so that others are told
entry.train   = minimize(loss + 0.002 * size_of, optim.adam{rate = 0.01})
rmse  = metric.rmse(guess, stars)
entry.eval    = rmse
entry.predict = guess
