# SPDX-License-Identifier: Apache-2.0
"""What hosts send while workers compute. usage: busy.py SAMPLES TRACE: a worker's trace as JSON;
samples of what each host has sent: a line of the time in ns and bytes each. A line for each Pause
of the last step that is not a gradient's, in the order of time: bytes of each host meanwhile."""
import json
import sys


def at(samples, time, host):
    """Bytes that were sent by then, between two samples in proportion."""
    before = [row for row in samples if row[0] <= time][-1]
    after = [row for row in samples if row[0] > time][0]
    share = (time - before[0]) / (after[0] - before[0])
    return before[1 + host] + share * (after[1 + host] - before[1 + host])


samples = [[int(n) for n in line.split()] for line in open(sys.argv[1])]
events = [json.loads(line) for line in open(sys.argv[2])]
last = max(event.get("step", 0) for event in events)
pauses = sorted(
    (event["start"], event["start"] + event["ns"]) for event in events
    if event.get("step") == last and event.get("op") == "Pause" and "grad" not in event["node"])
for start, end in pauses:
    print(*(round(at(samples, end, host) - at(samples, start, host))
            for host in range(len(samples[0]) - 1)))
