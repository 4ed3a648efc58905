/* SPDX-License-Identifier: Apache-2.0
 *
 * What tf-graph --help TOPIC prints: the table of the prelude in docs/language.md, which
 * scripts/topics makes C of when it is built.
 */
#ifndef TF_BIN_TOPICS_H
#define TF_BIN_TOPICS_H

/* "nn", its text, and so on; NULL. */
extern const char *const script_topics[];

#endif
