/* SPDX-License-Identifier: Apache-2.0
 *
 * Variable partitioning (Abadi et al., OSDI 2016, section 4.2): a table that is too large for one
 * device becomes several variables, slices of its rows, which the placer can spread.
 *
 *   - Gather of the table looks up rows where they are: DynamicPartition of the row numbers, a
 *     Gather beside each slice, DynamicStitch of the rows found.
 *   - An update of some rows (ScatterSub and the like) is split in the same way. One of all rows is
 *     cut, like slots: variables that are updated together with the table.
 *   - In a replicated graph each slice has its own aggregator.
 *   - Initial values are the rows that the whole table would have, bit for bit.
 *   - All other readers of the table get a Concat of its slices.
 *
 * Dense variables are partitioned in the same way: a worker that reads one whole concatenates it,
 * and each slice gets its own rows of the gradient.
 *
 * A variable with fewer rows than slices, and without row-wise lookups or updates, is split along
 * its longest axis; a script may ask for another axis.
 *
 * A table of `rows` rows in n slices has rows / n in each and one more in the first rows % n. Slice
 * k of NAME is the variable NAME/part_k, with these attributes:
 *
 *     _slice_of      string  "NAME"
 *     _slice_shape   shape   of the whole
 *     _slice_offset  int     its first row within the whole; split along another axis: a list(int),
 *                            its first index along each axis
 *
 * With these, restoring code can put variables together, and partition them in another way.
 */
#ifndef TF_PASS_SLICE_H
#define TF_PASS_SLICE_H

#include "graph/marks.h"
#include "pass/place/place.h"

/* Attribute of a Variable: the wanted number of slices, if there are several devices. */
#define SLICE_WANTED "_partitions"
/* Attribute of a Variable, int: the axis along which it is split. */
#define SLICE_AXIS "_partition_axis"

/* Variables with more elements may be split for balance: MXNet's number. */
#define SLICE_BALANCE_ABOVE 1000000

struct slice_options {
    const struct placement *placement;
    int64_t balance_above; /* elements; 0: nothing is split for balance */
};

/* Partitions variables that ask for it, and those that, with their slots, fit into no task of the
 * job `ps`. Of those with more elements than balance_above it splits the largest into as many
 * slices as there are such tasks, until no task would have more than a tenth above the mean of all
 * variables' bytes; variables that ask for a task, or that an op needs whole, are left. *to borrows
 * from `from`; NULL: nothing is split. ERR_DATA naming an op that needs whole a variable to be
 * split. */
int slice_variables(const struct graph *from, const struct slice_options *options,
                    struct graph **to, struct error *err);

#endif
