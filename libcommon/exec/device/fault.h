/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages for errors that kernels find in their data, equal on every device.
 */
#ifndef TF_EXEC_FAULT_H
#define TF_EXEC_FAULT_H

#include "exec/device/device.h"

/* The origin of a fault, as far as it is known. */
struct fault_origin {
    const struct node *node;
    enum dtype type; /* of the fault's input, as the shape; DTYPE_INVALID, NULL: unknown */
    const struct shape *shape;
};

/* Sets ERR_DATA, or the error of the device (NULL: the host), without the node's name. */
int fault_explain(struct device *device, const struct fault *fault,
                  const struct fault_origin *origin, struct error *err);

/* The owner of item numbers in step blocks (exec/device/step_block.h). A value that one plan passes
 * to another brings the fault of its kernels, so no two plans of the process use the same
 * numbers. */
struct fault_source {
    uint32_t first, n; /* a range of numbers; `first` is set by fault_source_add */
    int (*explain)(struct fault_source *source, const struct fault *fault, struct error *err);
};
void fault_source_add(struct fault_source *source);
void fault_source_remove(struct fault_source *source);

/* Returns the code of a fault from a step block, and sets the error that its kernel would have set
 * on the host, which names the node. The fault's source must still exist. Any thread. */
int fault_report(const struct fault *fault, struct error *err);

#endif
