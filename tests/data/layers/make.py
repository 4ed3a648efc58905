#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what layers.lua computes, by PyTorch: make.py > expected.txt. A line is a name and the
elements."""
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
count = 0


def sines(*shape):
    global count
    count += 1
    n = torch.Size(shape).numel()
    return torch.sin(torch.arange(n) * 1.7 + count).reshape(shape)


def put(name, y):
    print(name, *("%.17g" % value for value in y.detach().reshape(-1).tolist()))


def both(name, y, of):
    put(name, y)
    of.grad = None
    y.square().sum().backward()
    put(name + "_dx", of.grad)


def given(net):
    """Weights in the order in which the script makes them: W, U, b, c of each direction."""
    for tail in ("", "_reverse")[:2 if net.bidirectional else 1]:
        for name, turned in (("weight_ih", 1), ("weight_hh", 1), ("bias_ih", 0), ("bias_hh", 0)):
            p = getattr(net, name + "_l0" + tail)
            p.data = sines(*p.shape[::-1]).T.contiguous() if turned else sines(*p.shape)
    return net


x, q = sines(3, 4, 6).requires_grad_(), sines(3, 4, 8).requires_grad_()
k, v = sines(3, 5, 8), sines(3, 5, 4)
both("rnn", given(torch.nn.RNN(6, 5, batch_first=True))(x)[0], x)
y, (h, c) = given(torch.nn.LSTM(6, 5, batch_first=True))(x)
both("lstm", y, x)
put("lstm_h", h)
put("lstm_c", c)
both("gru", given(torch.nn.GRU(6, 5, batch_first=True))(x)[0], x)
packed = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 1, 3], True, False)
y, (h, c) = given(torch.nn.LSTM(6, 5, batch_first=True, bidirectional=True))(packed)
both("lstm_both", torch.nn.utils.rnn.pad_packed_sequence(y, True)[0], x)
put("lstm_both_h", torch.cat([h[0], h[1]], 1))
both("layer_norm", F.layer_norm(x, (6,)), x)
both("gelu", F.gelu(x), x)
both("silu", F.silu(x), x)


def attention(q, k, v, heads, causal=False):
    q, k, v = (t.reshape(*t.shape[:2], heads, -1).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores).tril() == 0, -torch.inf)
    return (scores.softmax(3) @ v).transpose(1, 2).flatten(2)


both("attention", attention(q, k, v, 2), q)
both("causal", attention(q, q, q, 4, True), q)
sees = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
parts = [t.reshape(3, -1, 2, t.shape[2] // 2).transpose(1, 2) for t in (q, k, v)]
both("masked", F.scaled_dot_product_attention(*parts, attn_mask=sees[:, None, None])
     .transpose(1, 2).flatten(2), q)
sees = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 0, 1]]).bool().tril()
parts = [q.reshape(3, 4, 2, 4).transpose(1, 2)] * 3
both("masked_causal", F.scaled_dot_product_attention(*parts, attn_mask=sees)
     .transpose(1, 2).flatten(2), q)


def block(**o):
    net = torch.nn.TransformerEncoderLayer(8, 2, 10, 0, batch_first=True, **o)
    for p in (net.self_attn.in_proj_weight, net.self_attn.in_proj_bias,
              net.self_attn.out_proj.weight, net.self_attn.out_proj.bias, net.linear1.weight,
              net.linear1.bias, net.linear2.weight, net.linear2.bias):
        p.data = sines(*p.shape[::-1]).T.contiguous() if p.dim() > 1 else sines(*p.shape)
    return net


both("transformer", block()(q), q)
causal = torch.nn.Transformer.generate_square_subsequent_mask(4)
both("norm_first", block(norm_first=True, activation="gelu")(q, src_mask=causal), q)
waves = torch.zeros(4, 6)  # Vaswani et al. 2017, section 3.5
for i in range(3):
    at = torch.arange(4) / 10000 ** (2 * i / 6)
    waves[:, 2 * i], waves[:, 2 * i + 1] = at.sin(), at.cos()
both("positions", x + waves, x)
both("learned", x + sines(4, 6), x)

image = sines(2, 5, 6, 4).requires_grad_()
nchw = image.permute(0, 3, 1, 2).detach().contiguous().requires_grad_()
both("elu", F.elu(x, .7), x)
both("elu_1", F.elu(x), x)
both("softplus", F.softplus(x, 1.5), x)
both("softplus_1", F.softplus(x), x)
both("prelu", F.prelu(x.transpose(1, 2), sines(6)).transpose(1, 2), x)
first = image.permute(0, 3, 1, 2)  # PyTorch's layout
both("group_norm", F.group_norm(first, 2).permute(0, 2, 3, 1), image)
both("instance_norm", F.instance_norm(x.transpose(1, 2)).transpose(1, 2), x)


def filters(*shape):
    """Ours are [window..., in, out]; PyTorch's [out, in, window...]."""
    w = sines(*shape)
    return w.permute(-1, -2, *range(len(shape) - 2))


def images(y):
    return y.movedim(1, -1)


steps = x.transpose(1, 2)
w = filters(3, 6, 5)
both("conv1d", images(F.conv1d(steps, w, sines(5), dilation=2, padding=2)), x)
w = filters(2, 6, 5)
both("conv1d_stride", images(F.conv1d(steps, w, sines(5), stride=2)).tanh(), x)
w = filters(3, 2, 3, 4)  # of a transposed one, [window..., out, in] and [in, out, window...]
both("transpose", images(F.conv_transpose2d(first, w, sines(3), stride=2)), image)
w = filters(3, 3, 3, 4)
both("transpose_same", images(F.conv_transpose2d(first, w, stride=2)[..., :-1, :-1]), image)
w = filters(3, 3, 3, 4)
both("transpose_nchw", F.conv_transpose2d(nchw, w, sines(3), padding=1), nchw)


def each_channel(height, width, multiplier):
    """[window..., channels, multiplier] as PyTorch's grouped filters."""
    w = sines(height, width, 4, multiplier)
    return w.permute(2, 3, 0, 1).reshape(4 * multiplier, 1, height, width)


w = each_channel(3, 3, 2)
both("depthwise", images(F.conv2d(first, w, sines(8), padding=1, groups=4)), image)
w = each_channel(2, 3, 1)
both("depthwise_stride", images(F.conv2d(first, w, sines(4), stride=2, groups=4)), image)
w = each_channel(2, 3, 1)
both("depthwise_dilation", images(F.conv2d(first, w, dilation=(3, 2), groups=4)), image)
w = each_channel(3, 3, 1)
h = F.conv2d(F.pad(first, (0, 1, 1, 1)), w, stride=2, groups=4)
w = filters(1, 1, 4, 7)
both("separable", images(F.conv2d(h, w, sines(7))), image)
both("pool_max", images(F.max_pool1d(steps, 2)), x)
both("pool_avg", images(F.avg_pool1d(steps, 3, 1, 1, count_include_pad=False)), x)
both("global_max", F.adaptive_max_pool2d(first, 1).flatten(1), image)
both("global_avg", F.adaptive_avg_pool2d(nchw, 1).flatten(1), nchw)
w = filters(1, 6, 6)
both("residual", F.relu(x + images(F.conv1d(steps, w, sines(6)))), x)
w = filters(1, 6, 5)
h = F.conv1d(steps, w, sines(5)).tanh().mean(2)
w = sines(5, 2).T
both("sequential", F.linear(h, w, sines(2)), x)

rows = torch.sin(torch.arange(10) * 1.7 + 1).reshape(5, 2)
ids = torch.tensor([[4, 0, 4], [1, 2, 0], [3, 3, 3], [0, 0, 0]])
some, starts = torch.tensor([4, 0, 4, 1, 3, 3]), torch.tensor([0, 3, 4, 6])
put("bag", F.embedding_bag(ids, rows))
put("bag_sum", F.embedding_bag(ids, rows, mode="sum"))
put("bag_mean", F.embedding_bag(some, rows, starts))
put("bag_part", F.embedding_bag(some, rows, starts, mode="sum"))

logits, row = sines(4, 3).requires_grad_(), torch.tensor([.5, 2, 1, 0])
answers = torch.tensor([[1., 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 0]])
classes = torch.tensor([2, 0, 1, 1])


def focal(p, gamma):
    """-(1 - p)^gamma log(p), Lin et al. 2017, equation 4."""
    return -(1 - p) ** gamma * p.log()


p_yes, p_class = logits.sigmoid(), logits.softmax(1)[range(4), classes]
p_yes = answers * p_yes + (1 - answers) * (1 - p_yes)
both("focal", (focal(p_yes, 2) * (.25 * answers + .75 * (1 - answers))).mean(), logits)
p_yes = logits.sigmoid()
p_yes = answers * p_yes + (1 - answers) * (1 - p_yes)
both("focal_plain", focal(p_yes, 1.5).mean(), logits)
both("focal_classes", .25 * focal(p_class, 2).mean(), logits)
p_class = logits.softmax(1)[range(4), classes]
both("focal_weighted", (focal(p_class, 2) * row).sum() / row.sum(), logits)
both("smooth", F.cross_entropy(logits, classes, label_smoothing=.2), logits)
both("triplet", F.triplet_margin_loss(logits, sines(4, 3), sines(4, 3), .8), logits)
w = each_channel(3, 3, 2)
both("depthwise_nchw", F.conv2d(nchw, w, sines(8), padding=1, groups=4), nchw)
w = filters(3, 3, 2, 6)
both("grouped", images(F.conv2d(first, w, sines(6), padding=1, groups=2)), image)
w = filters(2, 3, 2, 6)
both("grouped_nchw", F.conv2d(nchw, w, sines(6), stride=2, groups=2), nchw)
w = filters(3, 2, 9)
both("grouped1d", images(F.conv1d(steps, w, dilation=2, padding=2, groups=3)), x)
