/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/topology.h"

#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/str.h"

/* ---- ways ---- */

static int other_end(const struct topology_link *link, int vertex)
{
    return link->a == vertex ? link->b : link->b == vertex ? link->a : -1;
}

/* From all vertices to one, by breadth. */
static void find_ways_to(struct topology *t, int to)
{
    int queue[TOPOLOGY_VERTICES_MAX], n = 0;
    bool seen[TOPOLOGY_VERTICES_MAX] = {false};
    queue[n++] = to;
    seen[to] = true;
    for (int at = 0; at < n; at++)
        for (size_t i = 0; i < t->links.n; i++) {
            int next = other_end(&t->links.items[i], queue[at]);
            if (next < 0 || seen[next])
                continue;
            seen[next] = true;
            t->first[next * t->n_vertices + to] = (int)i;
            queue[n++] = next;
        }
}

static void find_ways(struct topology *t)
{
    size_t n = (size_t)t->n_vertices * (size_t)t->n_vertices;
    t->first = mem_array(n, sizeof *t->first);
    for (size_t i = 0; i < n; i++)
        t->first[i] = -1;
    for (int to = 0; to < t->n_vertices; to++)
        find_ways_to(t, to);
}

void topology_walk(const struct topology *t, int from, int to, topology_visit *visit, void *context)
{
    while (from != to) {
        int link = t->first[from * t->n_vertices + to];
        bool back = t->links.items[link].b == from;
        visit(context, 2 * link + back);
        from = other_end(&t->links.items[link], from);
    }
}

int topology_parents(const struct topology *t, int *parents, struct error *err)
{
    if (t->switches.n)
        return error_set(err, ERR_DATA, "a switch is no member of a tree");
    for (int k = 0; k < t->n_members; k++) {
        const struct topology_link *link = k ? &t->links.items[t->first[k * t->n_vertices]] : NULL;
        parents[k] = link ? other_end(link, k) : -1;
        if (parents[k] > k)
            return error_set(err, ERR_DATA, "member %d is joined to 0 by %d, of a larger rank", k,
                             parents[k]);
    }
    return 0;
}

/* ---- made ---- */

static void join(struct topology *t, int a, int b)
{
    vec_push(&t->links, ((struct topology_link){a, b}));
}

void topology_mesh(struct topology *t, int n_members)
{
    t->n_members = t->n_vertices = n_members;
    for (int a = 0; a < n_members; a++)
        for (int b = a + 1; b < n_members; b++)
            join(t, a, b);
    find_ways(t);
}

void topology_line(struct topology *t, int n_members)
{
    t->n_members = t->n_vertices = n_members;
    for (int a = 0; a + 1 < n_members; a++)
        join(t, a, a + 1);
    find_ways(t);
}

void topology_star(struct topology *t, int n_members)
{
    t->n_members = n_members;
    t->n_vertices = n_members + 1;
    vec_push(&t->switches, mem_strdup("switch"));
    for (int a = 0; a < n_members; a++)
        join(t, a, n_members);
    find_ways(t);
}

/* ---- read ---- */

/* -1: there is no room for it, or no such member. */
static int vertex_of(struct topology *t, const char *word)
{
    int64_t number;
    if (str_to_int64(word, &number))
        return number >= 0 && number < t->n_members ? (int)number : -1;
    for (size_t i = 0; i < t->switches.n; i++)
        if (!strcmp(t->switches.items[i], word))
            return t->n_members + (int)i;
    if (t->n_vertices == TOPOLOGY_VERTICES_MAX)
        return -1;
    vec_push(&t->switches, mem_strdup(word));
    return t->n_vertices++;
}

static int read_members(struct topology *t, const char *word, struct error *err)
{
    int64_t n;
    if (t->n_members || !str_to_int64(word, &n) || n < 1 || n > TOPOLOGY_VERTICES_MAX)
        return error_set(err, ERR_DATA, "'members %s' is not said once, of 1 to %d", word,
                         TOPOLOGY_VERTICES_MAX);
    t->n_members = t->n_vertices = (int)n;
    return 0;
}

static int read_link(struct topology *t, const char *from, const char *to, struct error *err)
{
    int a = vertex_of(t, from), b = vertex_of(t, to);
    if (a < 0 || b < 0 || a == b)
        return error_set(err, ERR_DATA, "'link %s %s' joins no two of %d members and switches",
                         from, to, t->n_members);
    join(t, a, b);
    return 0;
}

static int read_line(struct topology *t, char *line, struct error *err)
{
    char *words[4] = {NULL}, *rest = NULL;
    int n = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest))
        if (n < 4)
            words[n++] = word;
    if (!n)
        return 0;
    if (n == 2 && !strcmp(words[0], "members"))
        return read_members(t, words[1], err);
    if (n == 3 && !strcmp(words[0], "link"))
        return read_link(t, words[1], words[2], err);
    return error_set(err, ERR_DATA, "'%s' is neither 'members N' nor 'link A B'", words[0]);
}

static int check_joined(const struct topology *t, struct error *err)
{
    if (!t->n_members)
        return error_set(err, ERR_DATA, "it does not say 'members N'");
    for (int k = 1; k < t->n_members; k++)
        if (t->first[k * t->n_vertices] < 0)
            return error_set(err, ERR_DATA, "members 0 and %d are not joined", k);
    return 0;
}

int topology_parse(struct topology *t, const char *text, const char *name, struct error *err)
{
    char *copy = mem_strdup(text), *rest = NULL;
    int number = 0, code = 0;
    for (char *line = copy; line && !code; line = rest) {
        rest = strchr(line, '\n');
        if (rest)
            *rest++ = '\0';
        number++;
        if ((code = read_line(t, line, err)))
            error_prefix(err, "%s:%d: ", name, number);
    }
    mem_free(copy);
    if (code)
        return code;
    find_ways(t);
    return check_joined(t, err) ? error_prefix(err, "%s: ", name) : 0;
}

void topology_release(struct topology *t)
{
    for (size_t i = 0; i < t->switches.n; i++)
        mem_free(t->switches.items[i]);
    vec_release(&t->switches);
    vec_release(&t->links);
    mem_free(t->first);
    *t = (struct topology){0};
}
