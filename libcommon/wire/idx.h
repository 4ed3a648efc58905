/* SPDX-License-Identifier: Apache-2.0
 *
 * IDX, the format of MNIST: 0 0 TYPE RANK, the dimensions as big-endian uint32, the elements in
 * big-endian. Types: 08 uint8, 09 int8, 0B int16, 0C int32, 0D float32, 0E float64.
 */
#ifndef TF_WIRE_IDX_H
#define TF_WIRE_IDX_H

#include "base/error.h"
#include "tensor/tensor.h"
#include "wire/gzfile.h"

/* Reads the whole file into a new tensor. Memory grows as data arrives, so a header that claims too
 * much costs nothing. ERR_DATA: not IDX, truncated, longer than its header says; ERR_OS, ERR_IO.
 * Messages start with the file's name. */
int idx_read(struct gzfile *file, struct tensor *tensor, struct error *err);

#endif
