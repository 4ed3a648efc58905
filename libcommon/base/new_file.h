/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is written whole or not at all: without a name or, where the file system knows no
 * such files, under a temporary one beside that which it gets when all of it is on the disk. A
 * device, a pipe or another file that is not regular is written to where it is. If the name is a
 * symbolic link, the file behind it is replaced.
 */
#ifndef TF_BASE_NEW_FILE_H
#define TF_BASE_NEW_FILE_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

struct new_file {
    int fd;                       /* to write to, in the order of the bytes */
    bool direct;                  /* not through a temporary name */
    bool nameless;                /* it gets the temporary name when it is committed */
    char path[PATH_MAX];          /* the final name, symbolic links resolved */
    char temporary[PATH_MAX];     /* beside it, with the process's number */
    volatile sig_atomic_t exists; /* the temporary file may be there: for handlers of signals */
};

/* ERR_DATA: there is a folder; ERR_DENIED, ERR_IO. Nothing is to be done about it then. */
int new_file_open(struct new_file *file, const char *path, struct error *err);

/* Closes it, and gives it its name; ERR_IO: what was there is as before. */
int new_file_commit(struct new_file *file, struct error *err);

/* Closes it, in place of new_file_commit: what was there is as before. */
void new_file_discard(struct new_file *file);

/* May be called from a handler of a signal that ends the process, too. */
void new_file_unlink(struct new_file *file);

#endif
