#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Milliseconds that a step takes. usage: step.py STEPS COMMAND... --steps
The command is run with STEPS and with three times as many: what the others take, without its start,
is what counts."""
import subprocess
import sys
import time


def seconds(steps):
    began = time.monotonic()
    subprocess.run(sys.argv[2:] + [str(steps)], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


steps = int(sys.argv[1])
less = seconds(steps)
print(500 * (seconds(3 * steps) - less) / steps)
