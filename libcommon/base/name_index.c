/* SPDX-License-Identifier: Apache-2.0 */
#include "base/name_index.h"

void name_index_add(struct name_index *index, const char *name, int value)
{
    int64_t next = 0;
    map_get(&index->first, name, &next);
    vec_push(&index->links, ((struct name_link){value, (int)next}));
    map_put(&index->first, name, (int64_t)index->links.n);
}

const struct name_link *name_index_first(const struct name_index *index, const char *name)
{
    int64_t link;
    return map_get(&index->first, name, &link) ? &index->links.items[link - 1] : NULL;
}

void name_index_release(struct name_index *index)
{
    map_release(&index->first);
    vec_release(&index->links);
}
