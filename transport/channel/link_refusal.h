/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognises peers that speak another protocol.
 */
#ifndef TF_TRANSPORT_LINK_REFUSAL_H
#define TF_TRANSPORT_LINK_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Guesses the kind of the peer from its first bytes; sets the error if they are no hello. Returns
 * whether the peer would not understand a record that says so. */
bool link_guess(const uint8_t *bytes, size_t n, struct error *err);

#endif
