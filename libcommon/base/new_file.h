/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is written whole or not at all: it has no name or, on file systems that do not
 * support that, a temporary one beside the final name, which it gets when all of it is on the disk.
 * A device, a pipe or another file that is not regular is written in place. If the name is a
 * symbolic link, the file that it points to is replaced.
 */
#ifndef TF_BASE_NEW_FILE_H
#define TF_BASE_NEW_FILE_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

struct new_file {
    int fd;                       /* for sequential writing */
    bool direct;                  /* written in place, without a temporary name */
    bool nameless;                /* gets the temporary name only on commit */
    char path[PATH_MAX];          /* the final name, symbolic links resolved */
    char temporary[PATH_MAX];     /* beside `path`, with the process ID */
    volatile sig_atomic_t exists; /* the temporary file may exist: for signal handlers */
};

/* ERR_DATA: the path is a folder; ERR_DENIED, ERR_IO. After an error nothing is to be released. */
int new_file_open(struct new_file *file, const char *path, struct error *err);

/* Closes the file and gives it its name; ERR_IO: the old file is unchanged. */
int new_file_commit(struct new_file *file, struct error *err);

/* Closes the file instead of committing it: the old file is unchanged. */
void new_file_discard(struct new_file *file);

/* Removes the temporary file; may also be called from a fatal signal's handler. */
void new_file_unlink(struct new_file *file);

#endif
