/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's .npy files, format 1.0 to 3.0. Big-endian and Fortran-ordered data, and texts of a size
 * ("<U5", "|S5"), are converted on reading. Types that tensors lack (objects, dates) are refused by
 * name.
 */
#ifndef TF_WIRE_NPY_H
#define TF_WIRE_NPY_H

#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "tensor/tensor.h"
#include "wire/gzfile.h"

/* Reads a whole file, plain or compressed; "-" is stdin. Messages start with the name. ERR_NOINPUT,
 * ERR_DATA, ERR_IO, ERR_OS. */
int npy_read(const char *path, struct tensor *t, struct error *err);

/* Reads the array that starts here; the data after it stays in the file. */
int npy_read_file(struct gzfile *file, struct tensor *t, struct error *err);

/* `name` is for messages. */
int npy_read_memory(const void *data, size_t n, const char *name, struct tensor *t,
                    struct error *err);

/* Prints the header of a file; not for a type that .npy lacks. */
void npy_print_header(struct str *out, const struct tensor *t);

/* Writes format 1.0. ERR_DATA for a type that .npy lacks, ERR_IO. The file is not flushed. */
int npy_write(FILE *file, const struct tensor *t, struct error *err);

/* The contents of a header. */
struct npy_header {
    enum dtype type;
    struct shape shape;
    bool fortran_order;
    int swap_bytes;       /* size of the items to byte-swap; 1: none */
    int64_t text_bytes;   /* of STRING: size of each text, zeros behind it included, ... */
    bool text_is_unicode; /* ... in characters of four bytes */
};

/* Parses the dict of a header, whose n bytes need not be terminated. */
int npy_parse_header(const char *text, size_t n, struct npy_header *header, struct error *err);

/* Reverses the bytes of each item. */
void npy_swap(char *data, size_t bytes, size_t item);

#endif
