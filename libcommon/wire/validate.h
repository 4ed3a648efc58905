/* SPDX-License-Identifier: Apache-2.0
 *
 * msgpack-c reserves what a container's count says before it has seen one element, and recurses on
 * its own terms; so a header is walked by this validator first.
 */
#ifndef TF_WIRE_VALIDATE_H
#define TF_WIRE_VALIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Returns whether [data, data + n) is exactly one msgpack map within the limits of limits.h: every
 * container has at most as many elements as there are bytes left. ERR_DATA if not. */
int header_validate(const uint8_t *data, size_t n, struct error *err);

/* The same, and how many objects it holds, itself included. */
int header_measure(const uint8_t *data, size_t n, size_t *n_objects, struct error *err);

#endif
