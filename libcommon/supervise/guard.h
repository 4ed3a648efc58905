/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that outlives another one, its owner: it holds the lock of a job's folder for it and,
 * when the owner has ended, however it did, kills what the owner has left behind, removes what is
 * to be removed, and ends.
 *
 * What belongs to an owner is known by a word in its environment, TF_SUPERVISED=PID.N.
 */
#ifndef TF_SUPERVISE_GUARD_H
#define TF_SUPERVISE_GUARD_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

#define MARK_NAME "TF_SUPERVISED"

struct guard_options {
    pid_t owner;
    const char *folder; /* NULL: none; made if it is missing */
    bool temporary; /* `folder` ends in XXXXXX, as for mkdtemp; it is made, and goes at the end */
    const char *cleanup; /* a shell's line, run at the end with the folder as $1; may be NULL */
    char made[4096];     /* set: the folder, also while it is not there yet */
    int lock;            /* set: a descriptor that holds the folder's lock, or -1 */
};

/* First: blocks all signals, and chooses the folder's name. ERR_USAGE, ERR_OS. */
int guard_prepare(struct guard_options *guard, struct error *err);

/* Makes the folder and locks it. ERR_RETRY naming who has it; ERR_IO. It is no error if the owner
 * has ended meanwhile: there is the more to do. */
int guard_open(struct guard_options *guard, struct error *err);

/* guard_open in a process of its own, which goes on here as the guard (*pid: 0). In the caller *pid
 * is its number; if it fails, the error has its exit status and no text, as it has said why. A
 * temporary folder is known to both, so that there is always one who removes it. */
int guard_detach(struct guard_options *guard, pid_t *pid, struct error *err);

/* Waits until the owner has ended, or sends SIGUSR1 because all is over; then tidies up. Closes all
 * other descriptors. Other signals are ignored. */
void guard_run(const struct guard_options *guard);

/* ---- for the owner, and who asks for it ---- */

/* Runs a program that is a guard with --guard, as one of its own processes. Its pidfd, once it has
 * the lock; -1: an error with its exit status and no text, as it has said why. */
int guard_start(const struct guard_options *guard, const char *program, struct error *err);

/* Releases the guard when all is over, and returns when it has tidied up. -1: there is none. False:
 * it stood still, and was killed; another one has to do it. */
bool guard_release(int pidfd);

/* The status of a child, which is killed if it has not ended in time. */
int guard_await(pid_t child, double seconds);

/* Returns whether a process has ended; -1 stands for one that has. */
bool guard_has_ended(int pidfd);

/* The pidfd of who has a folder, and its number; -1: nobody. It waits for a guard that was killed
 * to be replaced, two seconds at most. */
int guard_owner(const char *folder, pid_t *owner);

/* Sends a signal to all processes whose mark begins with `prefix` and for which `spares` (may be
 * NULL) is false. Returns how many there were. */
int marks_kill(const char *prefix, int signal,
               bool (*spares)(void *context, pid_t pid, const char *mark), void *context);

#endif
