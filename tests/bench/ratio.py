#!/usr/bin/env python3
"""Medians of what is measured in turns. usage: ratio.py MODEL BATCH FILE: lines of milliseconds a
step, ours and the peer's, a round each. Prints model, batch, both medians, and that of the rounds'
ratios, as wide as the headings of train.sh and ddp.sh."""
import statistics
import sys

pairs = [tuple(map(float, line.split())) for line in open(sys.argv[3])]
ours, peer = (statistics.median(p[i] for p in pairs) for i in (0, 1))
ratio = statistics.median(a / b for a, b in pairs)
print(f"{sys.argv[1]:<10} {sys.argv[2]:>5} {ours:12.3f} {peer:12.3f} {ratio:7.2f}", flush=True)
