/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that outlives its owner: it holds the lock of a job's folder for the owner and, when
 * the owner has ended, for whatever reason, kills the processes and removes the files that the
 * owner has left behind, and ends.
 *
 * Processes of an owner are recognised by a variable in their environment, TF_SUPERVISED=PID.N.
 */
#ifndef TF_SUPERVISE_REAPER_H
#define TF_SUPERVISE_REAPER_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

#define MARK_NAME "TF_SUPERVISED"

struct reaper_options {
    pid_t owner;
    const char *folder; /* NULL: none; created if missing */
    bool temporary; /* `folder` ends in XXXXXX, as for mkdtemp; created, and removed at the end */
    const char *cleanup; /* a shell line, run at the end with the folder as $1; may be NULL */
    char made[4096];     /* set: the folder, even before it exists */
    int lock;            /* set: a descriptor that holds the folder's lock, or -1 */
};

/* Call first: blocks all signals, and chooses the folder's name. ERR_USAGE, ERR_OS. */
int reaper_prepare(struct reaper_options *reaper, struct error *err);

/* Creates the folder and locks it. ERR_RETRY naming the holder; ERR_IO. It is no error if the owner
 * has ended meanwhile: there is only more to clean up. */
int reaper_open(struct reaper_options *reaper, struct error *err);

/* reaper_open in a new process, which continues here as the reaper (*pid: 0). In the caller *pid is
 * its process ID; on failure, the error has its exit status and no text, as it has reported why.
 * Both know a temporary folder, so that one of them always removes it. */
int reaper_detach(struct reaper_options *reaper, pid_t *pid, struct error *err);

/* Waits until the owner has ended, or sends SIGUSR1 at its orderly end; then cleans up. Closes all
 * other descriptors. Ignores other signals. */
void reaper_run(const struct reaper_options *reaper);

/* ---- for the owner, and for processes that look for it ---- */

/* Starts `program` --reaper as a reaper. Returns its pidfd once it has the lock; -1: an error with
 * its exit status and no text, as it has reported why. */
int reaper_start(const struct reaper_options *reaper, const char *program, struct error *err);

/* Releases the reaper at the end, and returns when it has cleaned up. -1: there is none. Returns
 * false if it was stalled, and so was killed; another reaper must clean up. */
bool reaper_release(int pidfd);

/* Returns the exit status of a child, which is killed if it has not ended in time. */
int reaper_await(pid_t child, double seconds);

/* Returns whether a process has ended; pidfd -1 counts as ended. */
bool reaper_has_ended(int pidfd);

/* Returns the pidfd of a folder's owner, and its process ID; -1: none. Waits up to two seconds for
 * a killed reaper to be replaced. */
int reaper_owner(const char *folder, pid_t *owner);

/* Sends a signal to all processes whose mark begins with `prefix`, except those for which `spares`
 * (may be NULL) is true. Returns their number. */
int marks_kill(const char *prefix, int signal,
               bool (*spares)(void *context, pid_t pid, const char *mark), void *context);

#endif
