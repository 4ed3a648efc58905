/* SPDX-License-Identifier: Apache-2.0
 *
 * What shards answer, as a user reads it: tables with a head, lines for scripts, or JSON. Each
 * shard's answer is turned into rows of its own, so that they can be put in order whenever it came.
 */
#ifndef TF_SHOW_SHARDS_H
#define TF_SHOW_SHARDS_H

#include "base/str.h"
#include "wire/record.h"

struct shard_view;

/* "list", "status", and of the statistics "worker", "shard", "key", "peer", "resource". NULL: there
 * is none. */
const struct shard_view *shard_view_find(const char *name);

/* The request that answers it. */
const char *shard_view_verb(const struct shard_view *view);

/* Appends a shard's rows: cells for shard_view_print, or with `json` an object a line. Values that
 * a reply lacks are shown as "-". */
void shard_view_add(const struct shard_view *view, bool json, const char *task,
                    const msgpack_object *reply, struct str *rows);

/* Prints all rows, under the view's head, in columns; a view for scripts has neither. */
void shard_view_print(const struct shard_view *view, const struct str *rows, struct str *out);

#endif
