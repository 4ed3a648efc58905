/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_labels.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"

static const char *join(const char *const *texts, size_t n, struct arena *arena)
{
    struct str all = STR_INIT;
    for (size_t i = 0; i < n; i++)
        str_printf(&all, "%s%s", i ? "," : "", texts[i]);
    const char *joined = arena_strdup(arena, str_text(&all));
    str_release(&all);
    return joined;
}

int csv_labels_bind(const struct data_column *column, const struct csv_places *places,
                    const struct csv_header *header, struct error *err)
{
    struct fit *f = column->fitted;
    if (!f || (column->is_known && !f->columns))
        return 0;
    struct arena *arena = &f->prep->arena;
    size_t n = places->at.n;
    /* The name, or the position if there is no header now or there was none when fitting. */
    const char **labels = arena_array(arena, places->at.n, sizeof *labels);
    for (size_t i = 0; i < places->at.n; i++)
        labels[i] = (column->is_known && !f->prep->header) || !header->names
                        ? arena_printf(arena, "%" PRId64, places->at.items[i] + 1)
                        : arena_strdup(arena, header->names[places->at.items[i]]);

    if (!column->is_known) {
        f->n_columns = n;
        f->columns = labels;
        return 0;
    }
    bool same = f->n_columns == n;
    for (size_t i = 0; same && i < n; i++)
        same = !strcmp(labels[i], f->columns[i]);
    return same ? 0
                : error_set(err, ERR_DATA, "%s: '%s' was fitted to columns %s, not to %s",
                            f->prep->path, column->name, join(f->columns, f->n_columns, arena),
                            join(labels, n, arena));
}

void csv_labels_keep(struct prep *prep, const struct csv_header *header)
{
    if (!header->names)
        return;
    prep->n_header = header->n;
    prep->header = arena_array(&prep->arena, header->n, sizeof *prep->header);
    for (size_t i = 0; i < header->n; i++)
        prep->header[i] = arena_strdup(&prep->arena, header->names[i]);
}
