/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of digests with a small number for each. Digests are random already: their first bytes are
 * the hash.
 */
#ifndef TF_CHECKPOINT_DIGEST_SET_H
#define TF_CHECKPOINT_DIGEST_SET_H

#include "checkpoint/store/digest.h"

struct digest_set {
    struct digest *keys;
    uint8_t *values; /* 0: a free place */
    size_t n, capacity;
};

/* 0: not in it. */
int digest_set_get(const struct digest_set *set, const struct digest *digest);
void digest_set_put(struct digest_set *set, const struct digest *digest, int value); /* 1 to 255 */
void digest_set_release(struct digest_set *set);

#endif
