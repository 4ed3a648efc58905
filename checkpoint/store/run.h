/* SPDX-License-Identifier: Apache-2.0
 *
 * Which run, that is which training, a checkpoint is of: 128 random bits, made when a job begins
 * anew and taken over by one that resumes, and a name for people. By it a store knows whose
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
    uint8_t id[RUN_BYTES]; /* all zero: not known, as of stores that were made before format 1.1 */
    char name[RUN_NAME_BYTES_MAX + 1]; /* "": none was given */
};

/* A new one. `name` NULL: without. ERR_OS when the system has no random bits; otherwise as
 * run_set_name. */
int run_make(struct ckpt_run *run, const char *name, struct error *err);

/* NULL: it keeps the one that it has. ERR_USAGE: a name that is too long, has blanks, or is not fit
 * to print. */
int run_set_name(struct ckpt_run *run, const char *name, struct error *err);

bool run_is_known(const struct ckpt_run *run);
bool run_equal(const struct ckpt_run *a, const struct ckpt_run *b); /* whatever their names are */

/* The identity as hexadecimal digits, and back: false when they are none. */
void run_hex(const struct ckpt_run *run, char text[RUN_HEX_BYTES]);
bool run_parse(const char *text, struct ckpt_run *run);

/* As people tell runs apart: "digits/3f2a91c0", "3f2a91c0", or "-" where it is not known. */
void run_print(const struct ckpt_run *run, struct str *out);

#endif
