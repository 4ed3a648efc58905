/* SPDX-License-Identifier: Apache-2.0
 *
 * Types, shapes and error codes, as other programs and custom ops see them. Nothing here changes
 * within a version of the two interfaces that use it: tf_tools.h and tf_op.h.
 */
#ifndef TF_TYPES_H
#define TF_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of a tensor's elements, stored in row-major order. float16 and bfloat16 are their 16
 * bits, complex64 two floats, bool a byte of 0 or 1. */
enum tf_type {
    TF_INVALID = 0,
    TF_FLOAT32 = 1,
    TF_FLOAT64 = 2,
    TF_INT32 = 3,
    TF_UINT8 = 4,
    TF_INT16 = 5,
    TF_INT8 = 6,
    TF_STRING = 7,
    TF_COMPLEX64 = 8,
    TF_INT64 = 9,
    TF_BOOL = 10,
    TF_BFLOAT16 = 14,
    TF_UINT16 = 17,
    TF_FLOAT16 = 19,
    TF_UINT32 = 22,
    TF_UINT64 = 23
};

#define TF_RANK_MAX 8
#define TF_UNKNOWN (-1) /* as a dimension or a rank: not known before values exist */

/* A value's shape has no unknown dimension; its rank is 0 for a scalar. */
struct tf_shape {
    int32_t rank;
    int64_t dims[TF_RANK_MAX];
};

/* Results other than 0 of functions that can fail: the codes of <sysexits.h>, which are also the
 * programs' exit statuses. */
enum tf_code {
    TF_USAGE = 64,       /* wrong call */
    TF_DATA = 65,        /* bad input: a graph, a value, a shape */
    TF_NOINPUT = 66,     /* an input is missing */
    TF_UNAVAILABLE = 69, /* another process cannot be reached */
    TF_INTERNAL = 70,    /* a bug of tf-tools */
    TF_OS = 71,          /* the system refused, for example memory */
    TF_IO = 74,          /* reading or writing failed */
    TF_RETRY = 75,       /* trying again may help */
    TF_PROTOCOL = 76,    /* another version */
    TF_DENIED = 77,      /* not permitted */
    TF_CONFIG = 78,      /* the installation is wrong */
    TF_CANCELLED = 130   /* stopped */
};

#ifdef __cplusplus
}
#endif

#endif
