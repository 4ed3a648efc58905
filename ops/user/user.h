/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom ops, from shared objects compiled against api/tf_op.h. Once loaded, they are in the
 * registry and in the table of kernels (ops/ops.h) like any other op.
 */
#ifndef TF_OPS_USER_H
#define TF_OPS_USER_H

#include "base/error.h"

/* Loads an object, for the lifetime of the process, and adds its ops; does nothing if it is already
 * loaded. Like ops_add, call it before the registry is shared. On failure nothing was added, and
 * the error names the file: ERR_NOINPUT: it does not exist; ERR_DATA: it is not such an object, or
 * its declarations are malformed; ERR_CONFIG: it was made for another version. */
int user_ops_load(const char *path, struct error *err);

/* The same for a colon-separated list of files, and of folders, whose *.so are loaded by name.
 */
int user_ops_load_path(const char *list, struct error *err);

#endif
