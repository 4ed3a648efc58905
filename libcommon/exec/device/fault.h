/* SPDX-License-Identifier: Apache-2.0
 *
 * What errors that kernels find in their data say: the same on every device.
 */
#ifndef TF_EXEC_FAULT_H
#define TF_EXEC_FAULT_H

#include "exec/device/device.h"

/* The owner of a fault, as far as it is known. */
struct fault_origin {
    const struct node *node;
    enum dtype type; /* of the fault's input, as its shape; DTYPE_INVALID, NULL: not known */
    const struct shape *shape;
};

/* ERR_DATA, or as the device (NULL: the host) has it, without the node's name. */
int fault_explain(struct device *device, const struct fault *fault,
                  const struct fault_origin *origin, struct error *err);

/* The owner of numbers of items in step blocks (exec/device/step_block.h): a value that one plan
 * hands over to another brings what kernels have left there, so that no two of the process use the
 * same numbers.
 */
struct fault_source {
    uint32_t first, n; /* its numbers; first is set by fault_source_add */
    int (*explain)(struct fault_source *source, const struct fault *fault, struct error *err);
};
void fault_source_add(struct fault_source *source);
void fault_source_remove(struct fault_source *source);

/* Returns the code that a kernel has left in a step block, with the error that it would have
 * returned on the host, which names its node. Its source must still be there. Any thread. */
int fault_report(const struct fault *fault, struct error *err);

#endif
