#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pandas.read_csv of a file: seconds of processor time, without the import.

usage: peer_csv.py FILE
"""
import sys
import time

import pandas

begin = time.process_time()
pandas.read_csv(sys.argv[1])
print(time.process_time() - begin)
