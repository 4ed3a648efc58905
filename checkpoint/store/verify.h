/* SPDX-License-Identifier: Apache-2.0
 *
 * Verification: checks that all that the manifests name exists and, on request, that it is what was
 * saved. The file's pages were already checked when the store was opened.
 */
#ifndef TF_CHECKPOINT_VERIFY_H
#define TF_CHECKPOINT_VERIFY_H

#include "checkpoint/store/maintain.h"

struct verify_request {
    double fraction; /* of the chunks whose digests are checked; 0: structure only */
    uint64_t seed;   /* selects which ones */
    const struct maintain_watch *watch;
};

struct verify_report {
    uint64_t checkpoints, tensors, chunks; /* examined; shared chunks count once */
    uint64_t checked_chunks, checked_bytes;
    damage_vec problems;   /* one for each damaged tensor: "backup@40000: 'hidden/W': chunk 1 of 1
                            * in ps-0: digest differs" */
    int64_t newest_intact; /* a step; -1: none */
};

/* Returns 0 also if problems were found. */
int store_verify(struct store *store, const struct verify_request *request,
                 struct verify_report *report, struct error *err);
void verify_report_release(struct verify_report *report);

#endif
