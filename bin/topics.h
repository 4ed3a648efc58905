/* SPDX-License-Identifier: Apache-2.0
 *
 * What tf-graph --help TOPIC prints: the table of the prelude in docs/language.md, which
 * scripts/topics turns into C during the build.
 */
#ifndef TF_BIN_TOPICS_H
#define TF_BIN_TOPICS_H

/* Alternates topics and their texts: "nn", its text, and so on; ends with NULL. */
extern const char *const script_topics[];

#endif
