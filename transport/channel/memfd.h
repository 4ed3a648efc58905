/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory without a name that processes of a host share. It is sealed: it never gets shorter, which
 * would be a SIGBUS for those who have it mapped.
 */
#ifndef TF_TRANSPORT_MEMFD_H
#define TF_TRANSPORT_MEMFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -1: the system gives none; errno says why. `name` is for who lists a process's memory. */
int memfd_new(const char *name, size_t bytes);

/* Returns whether it is such memory, and how much. */
bool memfd_is_sealed(int fd, size_t *bytes);

/* Opens the memory of another process. -1: it is not there, is no such memory, or not for this
 * process (another user's, another host's, in another container). */
int memfd_open(int64_t pid, int64_t fd, size_t *bytes);

#endif
