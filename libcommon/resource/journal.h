/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's journal: the values that a worker keeps for itself, written to a file before each of
 * its pushes, so that the worker finds them again after its process was killed (write-ahead
 * logging: Mohan et al., ARIES, 1992; here with two copies and without replay). It guards against
 * the death of the process, not of the host: it never waits for the disk, as the kernel keeps the
 * file.
 *
 * Values have names, types and shapes. Each has two copies, one for the last push and one for the
 * push before, as only the clock (resource/clock.h) knows whether the last push has reached it. A
 * copy exists once it is committed, as a whole. It bears the step of its push and the incarnation
 * of the clock that the push was for: another clock, for example after a restore, does not know the
 * outcome.
 *
 * A value may be *open*: its outcome depends on whether the push counts.
 *
 * What is read back is checked: the file's owner, and each copy by sums of its whole contents, made
 * when it is committed. A copy that fails the check is ignored, as if the file were lost.
 *
 * A journal that is not placed is empty, and writes to it are dropped.
 *
 * Thread-safe; values of a copy may be written concurrently, each by one thread.
 */
#ifndef TF_RESOURCE_JOURNAL_H
#define TF_RESOURCE_JOURNAL_H

#include "exec/state/resource.h"

#define JOURNAL_COPIES 2
#define JOURNAL_PAGE 65536 /* of its file: a multiple of every machine's page size */

struct journal;
extern const struct resource_kind journal_kind;

/* Finds or creates the journal of the worker that has these variables. */
struct journal *journal_of(struct variable_store *store, const char *container);

/* Sets the path of the journal and its owner: a number unique to the worker, graph and job. The
 * file is opened only when its heads are asked for. */
void journal_place(struct journal *journal, const char *path, uint64_t owner);
/* Returns, once, whether contents of the file were dropped because they were damaged or belong to
 * another owner. */
bool journal_take_damage(struct journal *journal, struct error *damage);

/* The worker does not return: removes the file if it was opened. */
void journal_remove(struct journal *journal);

struct journal_head {
    int64_t incarnation; /* of the clock */
    int64_t step;
};

/* Opens the file if it is placed: creates a missing one, and resets one that is no journal. One
 * process at a time. Returns the *n copies that exist. ERR_IO, ERR_DENIED naming the file. */
int journal_heads(struct journal *journal, struct journal_head heads[JOURNAL_COPIES], int *n,
                  struct error *err);

/* From now on the journal is for this incarnation of the clock. The copy of the head's step stays
 * readable; step 0: none does. ERR_DATA: there is no such copy. */
int journal_begin(struct journal *journal, const struct journal_head *head, struct error *err);

/* Reads the value of that name, and of value's type and shape, from the copy of journal_begin.
 * ERR_DATA: it has none. */
int journal_read(struct journal *journal, const char *name, struct tensor *value, bool *is_open,
                 struct error *err);

/* Writes a value, of a floating type, of the step's copy, which replaces the older of the two
 * copies. ERR_IO: no room. */
int journal_write(struct journal *journal, int64_t step, const char *name,
                  const struct tensor *value, struct error *err);

/* Adds to the float32 value that was written for the step under that name, and makes it open. */
int journal_add(struct journal *journal, int64_t step, const char *name, const struct tensor *value,
                struct error *err);

/* Commits the step after all of its values are written. */
int journal_commit(struct journal *journal, int64_t step, struct error *err);

#endif
