/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of variables (Abadi et al., OSDI 2016, section 4.2): a table that is too large for one
 * device becomes several variables, each with some of its rows, so that the placer can spread them.
 *
 *   - Gather of the table takes the rows where they are: DynamicPartition of the row numbers, a
 *     Gather beside each slice, DynamicStitch of what they found.
 *   - An update of some rows (ScatterSub and the like) is parted in the same way, one of all rows
 *     is cut, and so are slots: variables that are updated together with the table.
 *   - Of a replicated graph each slice has an aggregator of its own.
 *   - Initial values are the rows of what the whole table would have, bit for bit.
 *   - Whatever else reads the table gets it put together again by Concat.
 *
 * Dense variables are cut in the same way: a worker that reads one whole puts it together, and of
 * its gradient each slice gets its own rows.
 *
 * What has fewer rows than there are to be slices, and is not looked up or changed by rows, is cut
 * along its longest axis; a script may ask for another one.
 *
 * A table of `rows` rows in n slices has rows / n in each and one more in the first rows % n.
 * Slice k of NAME is the variable NAME/part_k, which says what it is a slice of:
 *
 *     _slice_of      string  "NAME"
 *     _slice_shape   shape   of the whole
 *     _slice_offset  int     which row of the whole its first one is; cut along another axis, a
 *                            list(int): its first place along each
 *
 * What restores variables can put wholes together by these, and cut them another way.
 */
#ifndef TF_PASS_SLICE_H
#define TF_PASS_SLICE_H

#include "graph/slice_attr.h"
#include "pass/place/place.h"

/* Attribute of a Variable: how many slices it is to have, where there are several devices. */
#define SLICE_WANTED "_partitions"
/* Attribute of a Variable, int: the axis along which it is cut. */
#define SLICE_AXIS "_partition_axis"

/* From how many elements on a variable may be cut for balance: MXNet's number. */
#define SLICE_BALANCE_ABOVE 1000000

struct slice_options {
    const struct placement *placement;
    int64_t balance_above; /* elements; 0: nothing is cut for balance */
};

/* Cuts the variables that ask for it, and those of which, with their slots, no task of the job `ps`
 * can hold one. Of those with more elements than balance_above it cuts the largest into as many
 * slices as there are such tasks, until none would have more than a tenth above the mean of all
 * variables' bytes; what asks for a task, or what an op needs whole, stays. *to borrows from
 * `from`; NULL: there is nothing to cut. ERR_DATA naming an op that needs a variable whole which
 * has to be cut. */
int slice_variables(const struct graph *from, const struct slice_options *options,
                    struct graph **to, struct error *err);

#endif
