/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of a device with memory of its own find of their step in that memory, so that work
 * that was enqueued once can be done in later steps; and where they leave an error that they find
 * there: an index out of range, a label, a division. Plain data: code of devices includes this.
 *
 * An error does not stop the device. The values that it computes from then on are garbage, which is
 * thrown away, and so a kernel that finds an error there when it begins leaves none of its own, and
 * changes no variable. If several leave one at the same time, that of the lowest item stays, and of
 * one item that of the lowest element.
 */
#ifndef TF_EXEC_STEP_BLOCK_H
#define TF_EXEC_STEP_BLOCK_H

#include <stdint.h>

enum fault_code {
    FAULT_NONE,
    FAULT_INDEX,       /* element `at` of `input` is `value`, outside of [0, limit) */
    FAULT_LABEL,       /* the same of a label */
    FAULT_DIVISION,    /* an integer was divided by zero */
    FAULT_POWER,       /* an integer was raised to a negative power */
    FAULT_PIVOT,       /* matrix `at` is singular: pivot `value`, counted from 1, is zero */
    FAULT_DIAGONAL,    /* the same of a triangular one, and of its diagonal */
    FAULT_MINOR,       /* matrix `at` is not positive definite, by the minor of order `value` */
    FAULT_NOT_FINITE,  /* element `at` of `input` is NaN (`value` 0), Inf (1) or -Inf (-1) */
    FAULT_CLASSES,     /* no class of row `at` is possible: its logits are not finite */
    FAULT_LIMIT,       /* a variable has reached `limit` */
    FAULT_GROUP,       /* a gradient's code has an element that its group does not have */
    FAULT_OWN = 0x100, /* from here on: the device's own, which it explains itself */
};

struct fault {
    uint32_t item; /* kernel_call.item */
    uint16_t code; /* FAULT_NONE: there is none */
    uint16_t input;
    int64_t at, value, limit;
};

struct step_block {
    int64_t number; /* as of struct step */
    uint64_t seed;
    uint32_t replica;
    struct fault fault;
};

#endif
