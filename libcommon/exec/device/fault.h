/* SPDX-License-Identifier: Apache-2.0
 *
 * What errors that kernels find in their data say: the same on every device.
 */
#ifndef TF_EXEC_FAULT_H
#define TF_EXEC_FAULT_H

#include "exec/device/device.h"

/* Whether `a` is to stay where both were left. */
bool fault_goes_first(const struct fault *a, const struct fault *b);

/* Whose a fault is, as far as that is known. */
struct fault_origin {
    const struct node *node;
    enum dtype type; /* of the fault's input, as its shape; DTYPE_INVALID, NULL: not known */
    const struct shape *shape;
};

/* ERR_DATA, or as the device (NULL: the host) has it, without the node's name. */
int fault_explain(struct device *device, const struct fault *fault,
                  const struct fault_origin *origin, struct error *err);

#endif
