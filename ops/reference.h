/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference of ops, from their declarations: as a line, a page, JSON, and docs/ops.md.
 */
#ifndef TF_OPS_REFERENCE_H
#define TF_OPS_REFERENCE_H

#include "base/str.h"
#include "graph/op.h"

/* "MatMul      Product of two matrices, ..." for each op, in the order of names. */
void reference_list(struct str *out);

/* Prints an op as `tf-op show` does. */
void reference_show(struct str *out, const struct op *op);

/* Prints an op as one JSON object on one line. */
void reference_json(struct str *out, const struct op *op);

/* Prints a line for each type attribute that is not a list: "MatMul T float32 float64 ...", with
 * the types that the CPU supports. */
void reference_types(struct str *out);

/* Prints docs/ops.md except for its table of types (scripts/ops-types). */
void reference_markdown(struct str *out);

#endif
