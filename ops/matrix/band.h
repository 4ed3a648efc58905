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

/* Makes the output, and reads the band. NULL with call->err set. */
struct tensor *band_output(struct kernel_call *call, struct band *band);

#endif
