/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of shards in readable form: tables with a head, lines for scripts, or JSON. Each shard's
 * reply becomes its own rows, which can be sorted whenever they arrive.
 */
#ifndef TF_SHOW_SHARDS_H
#define TF_SHOW_SHARDS_H

#include "base/str.h"
#include "wire/record.h"

struct shard_view;

/* Finds a view: "list", "status", and of the statistics "worker", "shard", "key", "peer",
 * "resource". NULL: there is none of this name. */
const struct shard_view *shard_view_find(const char *name);

/* Returns the request whose reply the view shows. */
const char *shard_view_verb(const struct shard_view *view);

/* Appends a shard's rows: cells for shard_view_print, or with `json` one object per line. Values
 * that a reply lacks are shown as "-". */
void shard_view_add(const struct shard_view *view, bool json, const char *task,
                    const msgpack_object *reply, struct str *rows);

/* Prints all rows in columns under the view's head; a view for scripts has neither. */
void shard_view_print(const struct shard_view *view, const struct str *rows, struct str *out);

#endif
