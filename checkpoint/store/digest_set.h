/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of digests with a small number for each. Digests are random, so their first bytes serve as
 * hash.
 */
#ifndef TF_CHECKPOINT_DIGEST_SET_H
#define TF_CHECKPOINT_DIGEST_SET_H

#include "checkpoint/store/digest.h"

struct digest_set {
    struct digest *keys;
    uint8_t *values; /* 0: the slot is free */
    size_t n, capacity;
};

/* Returns 0 if the digest is not in the set. */
int digest_set_get(const struct digest_set *set, const struct digest *digest);
void digest_set_put(struct digest_set *set, const struct digest *digest, int value); /* 1 to 255 */
void digest_set_release(struct digest_set *set);

#endif
