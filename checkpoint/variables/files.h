/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints for the ops Save and Restore (exec/state/files.h).
 */
#ifndef TF_CHECKPOINT_FILES_H
#define TF_CHECKPOINT_FILES_H

#include "exec/state/files.h"

/* The checkpoint files of the process; `producer` is what manifests name, and must stay. */
struct checkpoint_files *checkpoint_files(const char *producer);

#endif
