#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes x-snappy.index of x-tf.index, with every block compressed, as TensorFlow Serving's own
checkpoints have them, and of several blocks. Needs python-snappy, which calls the library."""
import shutil
import struct

import snappy

POLYNOMIAL = 0x82F63B78


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def mask(value):
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def entries(block):
    end = len(block) - 4 - 4 * struct.unpack("<I", block[-4:])[0]
    at, key = 0, b""
    while at < end:
        shared, at = take_varint(block, at)
        more, at = take_varint(block, at)
        size, at = take_varint(block, at)
        key = key[:shared] + block[at : at + more]
        yield key, block[at + more : at + more + size]
        at += more + size


def block_at(data, handle):
    offset, at = take_varint(handle, 0)
    size, at = take_varint(handle, at)
    assert data[offset + size] == 0
    return data[offset : offset + size], handle[at:]


def build(items):
    out, restarts = b"", []
    for key, value in items:
        restarts.append(len(out))
        out += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    return out + b"".join(struct.pack("<I", r) for r in restarts) + struct.pack("<I", len(restarts))


def put(out, block):
    packed = snappy.compress(block)
    handle = varint(len(out)) + varint(len(packed))
    out += packed + b"\1" + struct.pack("<I", mask(crc(packed + b"\1")))
    return handle


def convert(name, n_shards):
    with open(f"{name}-tf.index", "rb") as file:
        data = file.read()
    footer = data[-48:]
    _, rest = block_at(data, footer)
    index, _ = block_at(data, rest)
    items = [item for _, handle in entries(index) for item in entries(block_at(data, handle)[0])]
    out, index = bytearray(), []
    for first in range(0, len(items), 3):
        part = items[first : first + 3]
        index.append((part[-1][0], put(out, build(part))))
    handles = put(out, build([])) + put(out, build(index))
    out += handles.ljust(40, b"\0") + footer[40:]
    with open(f"{name}-snappy.index", "wb") as file:
        file.write(out)
    for i in range(n_shards):
        shutil.copy(f"{name}-tf.data-{i:05}-of-{n_shards:05}",
                    f"{name}-snappy.data-{i:05}-of-{n_shards:05}")


convert("small", 1)
convert("parts", 1)
