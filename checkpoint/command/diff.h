/* SPDX-License-Identifier: Apache-2.0
 *
 * How two checkpoints differ, tensor by tensor.
 */
#ifndef TF_CHECKPOINT_DIFF_H
#define TF_CHECKPOINT_DIFF_H

#include "checkpoint/formats/source.h"

enum difference_kind {
    DIFFERENCE_VALUES, /* same type and shape */
    DIFFERENCE_SHAPE,  /* the shapes or types differ */
    DIFFERENCE_ONLY_A,
    DIFFERENCE_ONLY_B,
};

struct difference {
    enum difference_kind kind;
    const struct source_tensor *a, *b; /* NULL: not there */
    const char *name;                  /* valid as long as the sources are */
    /* For numbers the largest |a - b|, and the largest |a - b| / max(|a|, |b|); NaN if only one is
     * NaN, or the two NaNs differ in bits. For strings: NaN, and 0 or NaN. */
    double absolute, relative;
    int64_t elements; /* number of elements that differ in any bit */
};

typedef VEC(struct difference) difference_vec;

/* Lists all differing tensors; empty: all have equal bits. The caller releases the vector. */
int source_diff(struct source *a, struct source *b, difference_vec *differences, struct error *err);

#endif
