/* SPDX-License-Identifier: Apache-2.0
 *
 * Verification: is everything there that the manifests name, and, if asked for, is it what was
 * saved? The pages of the file were checked when the store was opened.
 */
#ifndef TF_CHECKPOINT_VERIFY_H
#define TF_CHECKPOINT_VERIFY_H

#include "checkpoint/store/maintain.h"

struct verify_request {
    double fraction; /* of the chunks whose digests are taken; 0: structure only */
    uint64_t seed;   /* which ones: another seed, others */
    const struct maintain_watch *watch;
};

struct verify_problem {
    int64_t step;
    char *text; /* "backup@40000: 'hidden/W': chunk 1 of 1 in ps-0: digest differs" */
};

struct verify_report {
    uint64_t checkpoints, tensors, chunks; /* looked at; chunks that several have count once */
    uint64_t checked_chunks, checked_bytes;
    VEC(struct verify_problem) problems; /* one for each damaged tensor */
    int64_t newest_intact;               /* a step; -1: none */
};

/* 0 also when problems were found. */
int store_verify(struct store *store, const struct verify_request *request,
                 struct verify_report *report, struct error *err);
void verify_report_release(struct verify_report *report);

#endif
