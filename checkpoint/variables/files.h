/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoint files for the ops Save and Restore (exec/state/files.h).
 */
#ifndef TF_CHECKPOINT_FILES_H
#define TF_CHECKPOINT_FILES_H

#include "exec/state/files.h"

/* The checkpoint files of the process. Manifests name `producer`, which must outlive them. */
struct checkpoint_files *checkpoint_files(const char *producer);

#endif
