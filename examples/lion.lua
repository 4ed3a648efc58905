return function(o)                                        -- Lion: Chen et al. 2023
  local rate, b1, b2 = o.rate or 1e-4, o.beta1 or 0.9, o.beta2 or 0.99
  return function(w, g)
    local m = slot(w, "m", 0)                             -- a variable like w, on w's device
    return group{AssignSub(w, rate * Sign(b1 * m + (1 - b1) * g)),
                 Assign(m, b2 * m + (1 - b2) * g)}        -- a step reads before it writes
  end
end
