/* SPDX-License-Identifier: Apache-2.0
 *
 * The run, that is the training, that a checkpoint belongs to: 128 random bits, made when a job
 * starts afresh and kept by a job that resumes, and a name for people. It tells a store whose
 * checkpoint would be replaced.
 */
#ifndef TF_CHECKPOINT_RUN_H
#define TF_CHECKPOINT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

#define RUN_BYTES 16
#define RUN_HEX_BYTES (2 * RUN_BYTES + 1)
#define RUN_NAME_BYTES_MAX 100

struct ckpt_run {
    uint8_t id[RUN_BYTES];             /* all zero: unknown, as in stores from before format 1.1 */
    char name[RUN_NAME_BYTES_MAX + 1]; /* "": no name was given */
};

/* Makes a new run; `name` NULL: without a name. ERR_OS: the system has no random bits; else as
 * run_set_name. */
int run_make(struct ckpt_run *run, const char *name, struct error *err);

/* `name` NULL: the run keeps its name. ERR_USAGE: the name is too long, has blanks, or is not
 * printable. */
int run_set_name(struct ckpt_run *run, const char *name, struct error *err);

bool run_is_known(const struct ckpt_run *run);
bool run_equal(const struct ckpt_run *a, const struct ckpt_run *b); /* ignores names */

/* Prints the identity as hexadecimal digits, and parses it: false if it is malformed. */
void run_hex(const struct ckpt_run *run, char text[RUN_HEX_BYTES]);
bool run_parse(const char *text, struct ckpt_run *run);

/* Prints a run for people: "digits/3f2a91c0", "3f2a91c0", or "-" if it is unknown. */
void run_print(const struct ckpt_run *run, struct str *out);

#endif
