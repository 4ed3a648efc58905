/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of resources that outlive steps and are saved in checkpoints.
 */
#ifndef TF_RESOURCE_KINDS_H
#define TF_RESOURCE_KINDS_H

#include "exec/state/resource.h"

extern const struct resource_kind *const resource_kinds[]; /* ends with NULL */

#endif
