/* SPDX-License-Identifier: Apache-2.0
 *
 * How two checkpoints differ, tensor by tensor.
 */
#ifndef TF_CHECKPOINT_DIFF_H
#define TF_CHECKPOINT_DIFF_H

#include "checkpoint/formats/source.h"

enum difference_kind {
    DIFFERENCE_VALUES, /* type and shape are the same */
    DIFFERENCE_SHAPE,  /* or the type */
    DIFFERENCE_ONLY_A,
    DIFFERENCE_ONLY_B,
};

struct difference {
    enum difference_kind kind;
    const struct source_tensor *a, *b; /* NULL: not there */
    const char *name;                  /* valid as long as the sources */
    /* For numbers the largest |a - b|, and the largest |a - b| / max(|a|, |b|); NaN where one is
     * NaN and the other is not, or another NaN. Strings: NaN, and 0 or NaN. */
    double absolute, relative;
    int64_t elements; /* that differ, in a bit */
};

typedef VEC(struct difference) difference_vec;

/* All that differ; empty when every tensor has the same bits. The caller releases the vector. */
int source_diff(struct source *a, struct source *b, difference_vec *differences, struct error *err);

#endif
