/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a whole file of text.
 */
#ifndef TF_SCRIPT_LOAD_H
#define TF_SCRIPT_LOAD_H

#include <stddef.h>

#include "base/error.h"

/* Returns the bytes of `path` ("-": stdin), which the caller frees with mem_free. NULL with the
 * error set: ERR_NOINPUT if missing, ERR_DATA for a directory or beyond `most` bytes, ERR_IO. */
char *load_file(const char *path, size_t most, size_t *n, struct error *err);

#define LOAD_SCRIPT_BYTES ((size_t)64 << 20)
#define LOAD_TEXT_BYTES ((size_t)64 << 30) /* a graph's constants are in its text */

#endif
