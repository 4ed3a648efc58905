/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress line of a watched job: how far training is, and which tasks take part.
 */
#ifndef TF_BIN_WATCH_LINE_H
#define TF_BIN_WATCH_LINE_H

#include "cli/progress.h"
#include "ps/watch.h"

/* Nothing is drawn before the first step is known. */
void watch_line_draw(struct progress *progress, const struct watch_state *state);

#endif
