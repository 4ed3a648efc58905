/* SPDX-License-Identifier: Apache-2.0
 *
 * The text form of graphs: whatever is accepted prints to a text that reads back to the same text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text.h"
#include "ops/ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct graph *graph, *again;
    struct str first = STR_INIT, second = STR_INIT;
    if (graph_parse_text((const char *)data, size, "fuzz", ops_registry(), &graph, &err))
        return 0;
    if (graph_print_text(&first, graph, NULL, &err) ||
        graph_parse_text(str_text(&first), first.n, "fuzz", ops_registry(), &again, &err))
        error_bug(__FILE__, __LINE__, err.text);
    if (graph_print_text(&second, again, NULL, &err) ||
        strcmp(str_text(&first), str_text(&second)) != 0)
        error_bug(__FILE__, __LINE__, "the texts differ");
    str_release(&first);
    str_release(&second);
    graph_free(graph);
    graph_free(again);
    return 0;
}
