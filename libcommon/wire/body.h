/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a record: their list in the header, and their data behind it.
 */
#ifndef TF_WIRE_BODY_H
#define TF_WIRE_BODY_H

#include "wire/input.h"
#include "wire/record.h"

#define BODY_TRUNCATED (-1) /* the input ended; the caller says where */

/* Reads the tensors that record->header lists straight into their memory. */
int body_read(struct input *in, struct record *record, bool check, struct error *err);

#endif
