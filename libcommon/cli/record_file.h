/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of records that a tool writes beside its output: whole, or not at all.
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

/* The path must stay as long as the file. Errors as of output_open. */
int record_file_open(struct record_file *file, const struct tool *tool, const char *path,
                     struct error *err);

/* Opens like record_file_open; in a folder each process writes a file of its own, and "name/" makes
 * the folder. */
int record_file_open_in(struct record_file *file, const struct tool *tool, const char *path,
                        struct error *err);

/* A path that cannot be written is better known now than after an hour of training. */
int record_file_probe(const char *path, struct error *err);

/* Ends the stream and gives it its name. */
int record_file_commit(struct record_file *file, struct error *err);

/* Leaves no trace of it. */
void record_file_discard(struct record_file *file);

#endif
