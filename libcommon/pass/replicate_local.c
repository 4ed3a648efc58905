/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/replicate_private.h"

struct edge replicate_pushed(struct replicator *r, struct edge edge)
{
    return replicate_edge(r, edge);
}
