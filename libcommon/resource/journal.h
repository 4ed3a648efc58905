/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's journal: what a worker keeps for itself, written to a file before each of its pushes,
 * so that it finds its own again when its process is killed (write-ahead logging: Mohan et al.,
 * ARIES, 1992; here of two copies, and never replayed). It guards against the death of the process,
 * not of its host: what the kernel has of the file is enough, nothing waits for a disk.
 *
 * Values have names, types and shapes. There are two copies of each: that of the last push, and
 * that of the one before, as only the clock (resource/clock.h) knows whether the last push has
 * reached it. A copy is there when it is committed, as a whole. Each bears the step of its push and
 * the incarnation of the clock that this was for: another clock, as after a restore, does not know
 * what came of it.
 *
 * A value may be *open*: what becomes of it depends on whether the push counts.
 *
 * What is read back is checked: whose file it is, and each copy by sums of all that is in it, which
 * are made when it is committed. A copy that does not pass is ignored, as if the file were lost.
 *
 * A journal that has no place has nothing, and what is written to it goes nowhere.
 *
 * Thread-safe; the values of a copy may be written at once, each by one thread.
 */
#ifndef TF_RESOURCE_JOURNAL_H
#define TF_RESOURCE_JOURNAL_H

#include "exec/state/resource.h"

#define JOURNAL_COPIES 2

struct journal;
extern const struct resource_kind journal_kind;

/* Finds or makes the journal of the worker whose variables these are. */
struct journal *journal_of(struct variable_store *store, const char *container);

/* Says where the journal is to be, and whose it is: a number that no other worker, graph or job
 * has. Nothing is made or opened before somebody asks for its heads. */
void journal_place(struct journal *journal, const char *path, uint64_t owner);
/* Returns whether something of what was found there is lost, as it was damaged or another's; said
 * once. */
bool journal_take_damage(struct journal *journal, struct error *damage);

/* The worker does not come back: the file is removed, if it was opened. */
void journal_remove(struct journal *journal);

struct journal_head {
    int64_t incarnation; /* of the clock */
    int64_t step;
};

/* Opens it, if it has a place: makes the file if there is none, and begins it anew if it is no
 * journal. One process at a time. The copies that are there, *n of them. ERR_IO, ERR_DENIED naming
 * the file. */
int journal_heads(struct journal *journal, struct journal_head heads[JOURNAL_COPIES], int *n,
                  struct error *err);

/* From now on it is for this incarnation of the clock. The copy of the step stays, to be read; 0:
 * none does. ERR_DATA: it is not there. */
int journal_begin(struct journal *journal, const struct journal_head *head, struct error *err);

/* Reads the value of that name, and of value's type and shape, from the copy of journal_begin.
 * ERR_DATA: it has nothing. */
int journal_read(struct journal *journal, const char *name, struct tensor *value, bool *is_open,
                 struct error *err);

/* A value of the copy of the step, which is in place of the older of the two. Its type
 * is floating. ERR_IO: there is no room. */
int journal_write(struct journal *journal, int64_t step, const char *name,
                  const struct tensor *value, struct error *err);

/* Adds to what was written of the step under that name, float32; the value is open then. */
int journal_add(struct journal *journal, int64_t step, const char *name, const struct tensor *value,
                struct error *err);

/* Commits the step, all of whose values are written. */
int journal_commit(struct journal *journal, int64_t step, struct error *err);

#endif
