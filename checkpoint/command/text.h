/* SPDX-License-Identifier: Apache-2.0
 *
 * Output about stores and checkpoints: columns for people and cut(1), or JSON, one object a line.
 * Everything is appended to `out`.
 */
#ifndef TF_CHECKPOINT_TEXT_H
#define TF_CHECKPOINT_TEXT_H

#include "checkpoint/command/diff.h"
#include "checkpoint/store/verify.h"

/* Columns: STEP SAVED TENSORS SIZE NEW; RUN if there are several runs or one has a name; one for
 * each scalar; TAGS if there are any. */
void text_list(struct str *out, const manifest_vec *manifests, bool json);

/* Prints the contents, then a line for each tensor: NAME TYPE UPDATES SIZE SHARD DIGEST. */
void text_show(struct str *out, struct source *source, bool json);

/* "hidden/W  0.0317  0.204" */
void text_diff(struct str *out, const difference_vec *differences, bool json);

/* "step 400  forgotten", "step 400  to be forgotten" or "step 460  kept (daily)". */
void text_retain(struct str *out, int64_t step, const char *kept_by, bool dry_run, bool json);

/* With `json`, an object for each problem and one with the counts; else only the counts. */
void text_verify(struct str *out, const struct verify_report *report, bool json);

/* Metrics of a run of tf-ckpt in Prometheus' text format, for the node exporter's folder. */
struct text_metrics {
    const char *verb, *store;
    int status;   /* exit status */
    int64_t time; /* when it ended, in microseconds since 1970 */
    double seconds;
    int64_t newest; /* step; -1: none */
    int64_t newest_time;
    uint64_t checkpoints, store_bytes;
    int64_t problems; /* found by verify; -1: verify was not run */
};
void text_metrics(struct str *out, const struct text_metrics *metrics);

#endif
