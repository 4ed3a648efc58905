/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of records that a tool writes beside its output: it appears whole or not at all.
 */
#ifndef TF_CLI_RECORD_FILE_H
#define TF_CLI_RECORD_FILE_H

#include "cli/output.h"
#include "cli/tool.h"

struct record_file {
    struct output *output;
    struct stream_writer *writer;
    char *path; /* of a file in a folder */
};

/* The path must outlive the file. `expected` is the number of records, -1: unknown. Errors as of
 * output_open. */
int record_file_open(struct record_file *file, const struct tool *tool, const char *path,
                     int64_t expected, struct error *err);

/* Like record_file_open; if the path is a folder each process writes a file of its own in it, and
 * "name/" creates the folder. */
int record_file_open_in(struct record_file *file, const struct tool *tool, const char *path,
                        struct error *err);

/* Checks that a path can be written, now rather than after an hour of training. */
int record_file_probe(const char *path, struct error *err);

/* Ends the stream and gives the file its name. */
int record_file_commit(struct record_file *file, struct error *err);

/* Removes the file. */
void record_file_discard(struct record_file *file);

#endif
