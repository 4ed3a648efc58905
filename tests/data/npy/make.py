#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the .npy and .npz files beside it, with NumPy. Values are 0, 1, 2, ... in row-major order."""
import io
import struct
import zipfile

import numpy as np

def save(name, array):
    np.save(name + ".npy", array)

for descr in "<f4 >f4 <f8 >f8 <f2 >f2 <i8 >i8 <i4 >i4 <i2 >i2 |i1 |u1 <u2 >u2 <u4 >u4 <u8 >u8 <c8 >c8".split():
    name = descr.replace("<", "little-").replace(">", "big-").replace("|", "byte-")
    save(name, np.arange(6).reshape(2, 3).astype(descr))
save("bool", np.array([True, False, True]))
save("scalar", np.float32(7))
save("empty", np.zeros((0, 3), np.float32))
save("vector", np.arange(5, dtype=np.int64))
save("rank8", np.arange(24, dtype=np.int32).reshape(1, 2, 1, 2, 1, 2, 1, 3))
save("fortran", np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)))
save("fortran-big", np.asfortranarray(np.arange(6).reshape(2, 3).astype(">i4")))
for version in (2, 3):
    with open("version%d.npy" % version, "wb") as f:
        np.lib.format.write_array(f, np.arange(6, dtype=np.float32).reshape(2, 3), (version, 0))
save("objects", np.array([None, 1], dtype=object))
save("text", np.array(["a", "bcd"]))
save("records", np.zeros(2, dtype=[("x", "<f4")]))
save("dates", np.array(["2000-01-01"], dtype="M8[D]"))

def order(name, text):
    """A header that NumPy reads, but does not write."""
    header = text.encode() + b"\n"
    data = np.arange(6, dtype=np.float32).tobytes()
    with open(name + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    assert np.load(name + ".npy").shape == (2, 3)

order("keys", '{"shape":(2,3),"fortran_order":False,"descr":"<f4"}')
np.savez("stored.npz", x=np.arange(6, dtype=np.float32).reshape(2, 3), label=np.arange(2))
np.savez_compressed("deflated.npz", x=np.arange(6, dtype=np.float32).reshape(2, 3), label=np.arange(2))
with zipfile.ZipFile("mixed.npz", "w") as z:
    z.writestr("readme.txt", "no array")
with zipfile.ZipFile("folder.npz", "w") as z:
    z.writestr("folder/", "")
    z.comment = b"a comment"
    b = io.BytesIO()
    np.save(b, np.arange(3))
    with z.open("folder/a.npy", "w", force_zip64=True) as f:
        f.write(b.getvalue())
with zipfile.ZipFile("twice.npz", "w") as z:
    for _ in range(2):
        z.writestr("a.npy", b.getvalue())
with zipfile.ZipFile("bzip2.npz", "w", zipfile.ZIP_BZIP2) as z:
    z.writestr("a.npy", b.getvalue())
