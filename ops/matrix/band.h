/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the kernels of MatrixBandPart on all devices.
 */
#ifndef TF_OPS_MATRIX_BAND_H
#define TF_OPS_MATRIX_BAND_H

#include "exec/device/kernel.h"

/* The elements of each matrix at most `lower` below the diagonal, and at most `upper` above it. */
struct band {
    int64_t rows, columns;
    int64_t lower, upper; /* from 0 to the number of diagonals */
};

/* Reads and checks the band. Returns 0, or an error. */
int band_read(struct kernel_call *call, struct band *band);

#endif
