/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops of users' own, from shared objects that were compiled against api/tf_op.h. Once loaded they
 * are in the registry and in the table of kernels (ops/ops.h) like any other.
 */
#ifndef TF_OPS_USER_H
#define TF_OPS_USER_H

#include "base/error.h"

/* Loads an object, for as long as the process lives, and adds its ops; nothing happens if it is
 * loaded already. As ops_add: before the registry is shared. On failure nothing was added, and the
 * error names the file: ERR_NOINPUT, there is none; ERR_DATA, it is no such object, or what it
 * declares is malformed; ERR_CONFIG, it was made for another version. */
int user_ops_load(const char *path, struct error *err);

/* The same for a list of files, and of folders with all *.so in them by name, separated by colons.
 */
int user_ops_load_path(const char *list, struct error *err);

#endif
