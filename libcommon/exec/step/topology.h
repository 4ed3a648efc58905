/* SPDX-License-Identifier: Apache-2.0
 *
 * Which members of a collective are joined by a link, or by switches: for schedules, in which a
 * link carries one flow at a time in each direction. A text has one statement a line:
 *
 *     members 6
 *     link 0 1          two members
 *     link 1 rack       a member and a switch, which has any name that is no number
 *
 * Flows take the shortest way, over the links that are named first where several are as short.
 */
#ifndef TF_EXEC_TOPOLOGY_H
#define TF_EXEC_TOPOLOGY_H

#include "base/error.h"
#include "base/vec.h"

#define TOPOLOGY_VERTICES_MAX 256

struct topology_link {
    int a, b; /* vertices: members, then switches */
};

struct topology {
    int n_members, n_vertices;
    VEC(struct topology_link) links;
    VEC(char *) switches; /* their names */
    int *first; /* [from * n_vertices + to]: the first link of the way; -1: there is none */
};

/* Each fills what is zero-initialised: a link between each two; a line of ranks; one switch. */
void topology_mesh(struct topology *topology, int n_members);
void topology_line(struct topology *topology, int n_members);
void topology_star(struct topology *topology, int n_members);
/* ERR_DATA: "NAME:LINE: what". Members that are not joined are refused. */
int topology_parse(struct topology *topology, const char *text, const char *name,
                   struct error *err);
void topology_release(struct topology *topology);

/* The way of a flow: calls for each link with its index 2 link + direction. */
typedef void topology_visit(void *context, int link);
void topology_walk(const struct topology *topology, int from, int to, topology_visit *visit,
                   void *context);

/* As a tree to rank 0, of a topology without switches: the member before each one, on its way from
 * rank 0. ERR_DATA: members are joined by a switch, or by one of a larger rank. */
int topology_parents(const struct topology *topology, int *parents, struct error *err);

#endif
