/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the job directory.
 */
#ifndef TF_TRANSPORT_JOB_PRIVATE_H
#define TF_TRANSPORT_JOB_PRIVATE_H

#include "transport/job/job.h"

/* Converts "ps:0", ".pid" to "ps-0.pid". */
char *job_file(const char *task, const char *what);

/* Reads a small file as text, without its trailing newline; NULL with the error set, ERR_NOINPUT if
 * it does not exist. The caller frees it. */
char *job_read(const struct job *job, const char *name, struct error *err);

/* Replaces the file atomically, through a temporary name. */
int job_write(const struct job *job, const char *name, mode_t mode, const char *text,
              struct error *err);

/* Returns whether a process holds the lock of the pid file. */
bool job_is_locked(int fd);

#endif
