/* SPDX-License-Identifier: Apache-2.0
 *
 * Anonymous memory that processes of a host share. It is sealed against shrinking, which would
 * raise SIGBUS in processes that have it mapped.
 */
#ifndef TF_TRANSPORT_MEMFD_H
#define TF_TRANSPORT_MEMFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns -1 with errno if the system has none. `name` shows in lists of a process's memory. */
int memfd_new(const char *name, size_t bytes);

/* Returns whether it is such memory, and its size. */
bool memfd_is_sealed(int fd, size_t *bytes);

/* Opens another process's memory. Returns -1 if it does not exist, is not such memory, or is not
 * accessible (another user's, another host's, in another container). */
int memfd_open(int64_t pid, int64_t fd, size_t *bytes);

#endif
