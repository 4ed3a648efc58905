/* SPDX-License-Identifier: Apache-2.0
 *
 * Reasons why a connection did not become a link, for the counters of peers_refused.
 */
#ifndef TF_TRANSPORT_LINK_REFUSAL_H
#define TF_TRANSPORT_LINK_REFUSAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum link_refusal {
    REFUSAL_NONE,
    REFUSAL_WRONG_KEY,
    REFUSAL_NO_TLS,
    REFUSAL_HTTP,
    REFUSAL_GARBAGE,
    REFUSAL_WRONG_VERSION,
    REFUSAL_TIMEOUT,
    REFUSAL_OLD,
    REFUSAL_TOO_MANY,
    REFUSALS,
};

/* Guesses the kind of the peer from its first bytes if they are no hello; sets the error
 * accordingly. */
enum link_refusal link_guess(const uint8_t *bytes, size_t n, struct error *err);

#endif
