/* SPDX-License-Identifier: Apache-2.0
 *
 * The step's data in the memory of a device, so that work that was enqueued once can run again in
 * later steps; and where kernels leave an error that they find in their data: an index out of
 * range, a label, a division. Plain data: code of devices includes this.
 *
 * An error does not stop the device. The values that it computes afterwards are garbage and are
 * thrown away, so a kernel that finds an error in the block when it begins leaves none of its own,
 * and changes no variable. If several kernels leave one at the same time, the lowest item's stays,
 * and within an item that of the lowest element.
 */
#ifndef TF_EXEC_STEP_BLOCK_H
#define TF_EXEC_STEP_BLOCK_H

#include <stdint.h>

enum fault_code {
    FAULT_NONE,
    FAULT_INDEX,       /* element `at` of `input` is `value`, outside of [0, limit) */
    FAULT_LABEL,       /* as FAULT_INDEX, for a label */
    FAULT_DIVISION,    /* an integer was divided by zero */
    FAULT_POWER,       /* an integer was raised to a negative power */
    FAULT_PIVOT,       /* matrix `at` is singular: pivot `value`, counted from 1, is zero */
    FAULT_DIAGONAL,    /* as FAULT_PIVOT, for the diagonal of a triangular matrix */
    FAULT_MINOR,       /* matrix `at` is not positive definite, by the minor of order `value` */
    FAULT_NOT_FINITE,  /* element `at` of `input` is NaN (`value` 0), Inf (1) or -Inf (-1) */
    FAULT_CLASSES,     /* no class of row `at` is possible: its logits are not finite */
    FAULT_LIMIT,       /* a variable has reached `limit` */
    FAULT_GROUP,       /* a gradient's code has an element that its group does not have */
    FAULT_OWN = 0x100, /* from here on: the device's own, which it explains itself */
};

struct fault {
    uint32_t item; /* kernel_call.item */
    uint16_t code; /* FAULT_NONE: there is no fault */
    uint16_t input;
    int64_t at, value, limit;
};

struct step_block {
    int64_t number; /* as in struct step */
    uint64_t seed;
    uint32_t replica;
    struct fault fault;
};

#endif
