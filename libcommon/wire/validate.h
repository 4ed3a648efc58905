/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates a header before msgpack-c sees it: msgpack-c allocates what a container's count claims
 * before it has seen one element, and recurses without our limits.
 */
#ifndef TF_WIRE_VALIDATE_H
#define TF_WIRE_VALIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Checks that [data, data + n) is exactly one msgpack map within the limits of limits.h, in which
 * no container claims more elements than there are bytes left. ERR_DATA if not. */
int header_validate(const uint8_t *data, size_t n, struct error *err);

/* The same; also counts the objects, including the map itself. */
int header_measure(const uint8_t *data, size_t n, size_t *n_objects, struct error *err);

#endif
