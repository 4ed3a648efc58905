/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ops Save and Restore are given in the cases: a list of tensors instead of a disk.
 */
#ifndef TF_TESTS_OPS_FILES_H
#define TF_TESTS_OPS_FILES_H

#include "exec/state/files.h"

struct checkpoint_files *case_files(void);

#endif
