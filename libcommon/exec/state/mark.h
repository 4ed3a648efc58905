/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables as they were at one moment, while steps go on. Where values are shared
 * (exec/state/variable.h) that is sharing them. On a device with memory of its own each variable is
 * marked, which takes no time, and the first writer after that copies the value out before it
 * changes it; whoever wants the values collects them meanwhile from those that nobody has written
 * yet.
 *
 * The moment is consistent when no step runs that writes: between two steps of a driver.
 */
#ifndef TF_EXEC_MARK_H
#define TF_EXEC_MARK_H

#include "exec/state/variable.h"

struct variable_mark {
    struct variable *variable;
    struct tensor value; /* shared, or once it was copied; in host memory */
    uint64_t updates;    /* at the moment of the mark */
    struct variable_slice slice;
    struct error err; /* of the writer who could not copy it */
};

struct variable_marks {
    struct variable_mark *items; /* do not move while they are placed */
    size_t n;
};

/* Marks those of the variables that have a value. Nobody writes them meanwhile: they are locked,
 * or no step runs that writes. A variable whose value is not shared has one mark at a time. */
void variable_marks_place(const variable_vec *variables, struct variable_marks *marks);

/* Copies what no writer has copied yet, from any one thread; a writer waits for the copy of one
 * variable at most. On return all values are there. ERR_OS without memory. */
int variable_marks_collect(struct variable_marks *marks, struct error *err);

/* Takes away what is still marked and frees the values. */
void variable_marks_release(struct variable_marks *marks);

#endif
