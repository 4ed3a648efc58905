/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a store of variables keeps its resources. Private to libcommon/exec.
 */
#ifndef TF_EXEC_RESOURCE_TABLE_H
#define TF_EXEC_RESOURCE_TABLE_H

#include "exec/state/resource.h"

struct resource_table {
    pthread_mutex_t lock; /* guards the list */
    struct resource *first, *last;
    struct resource_watcher *watcher; /* NULL: nobody */
};

void resource_table_init(struct resource_table *table);
void resource_table_release(struct resource_table *table);
struct resource_table *variable_store_resources(struct variable_store *store);

#endif
