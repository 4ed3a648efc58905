/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators make the flows in an order in which each value is ready before it is sent; then each
 * flow gets its round.
 */
#include <string.h>

#include "base/memory.h"
#include "collective/schedule.h"
#include "collective/sum.h"

static const char *const library_names[] = {
    [BY_DEVICE_IF_THERE] = "nccl-auto", [BY_DEVICE_ALWAYS] = "nccl"};

enum by_device by_device_of(const char *schedule)
{
    for (int by = BY_DEVICE_IF_THERE; by <= BY_DEVICE_ALWAYS; by++)
        if (!strcmp(schedule, library_names[by]))
            return (enum by_device)by;
    return BY_DEVICE_NEVER;
}

const char *by_device_name(enum by_device by)
{
    return library_names[by];
}

/* ---- kinds ---- */

static void flow(struct sum_schedule *s, int piece, int from, int to,
                 enum schedule_operation operation)
{
    vec_push(&s->flows, ((struct schedule_flow){
                            .from = from, .to = to, .piece = piece, .operation = operation}));
}

static void make_direct(const struct schedule_request *r, struct sum_schedule *s, int piece)
{
    int owner = piece % r->n_members;
    for (int k = 0; k < r->n_members; k++)
        if (k != owner)
            flow(s, piece, k, owner, SCHEDULE_KEEP);
    for (int k = 0; k < r->n_members; k++)
        if (k != owner)
            flow(s, piece, owner, k, SCHEDULE_COPY);
}

static void make_chain(const struct schedule_request *r, struct sum_schedule *s, int piece)
{
    for (int k = 0; k + 1 < r->n_members; k++)
        flow(s, piece, k, k + 1, SCHEDULE_ADD);
    for (int k = r->n_members - 1; k > 0; k--)
        flow(s, piece, k, k - 1, SCHEDULE_COPY);
}

/* Returns the parent in a binomial tree. */
static int parent_of(int member)
{
    return member & (member - 1);
}

/* Adds the values of the subtree below a member to it, one child after the other by rank. */
static void gather_tree(struct sum_schedule *s, int piece, int member)
{
    for (int k = member + 1; k < s->n_members; k++) {
        if (parent_of(k) != member)
            continue;
        gather_tree(s, piece, k);
        flow(s, piece, k, member, SCHEDULE_ADD);
    }
}

static void make_tree(const struct schedule_request *r, struct sum_schedule *s, int piece)
{
    gather_tree(s, piece, 0);
    for (int k = 1; k < r->n_members; k++)
        flow(s, piece, parent_of(k), k, SCHEDULE_COPY);
}

static int power_below(int n)
{
    int power = 1;
    while (power * 2 <= n)
        power *= 2;
    return power;
}

/* The first 2 (n - power) members form pairs, of which the even member takes part. */
static int halving_member(int n, int at)
{
    int pairs = n - power_below(n);
    return at < pairs ? 2 * at : at + pairs;
}

static void make_halving(const struct schedule_request *r, struct sum_schedule *s, int piece)
{
    int n = r->n_members, power = power_below(n), pairs = n - power, last = piece % power;
    for (int k = 0; k < pairs; k++)
        flow(s, piece, 2 * k + 1, 2 * k, SCHEDULE_ADD);
    for (int distance = power / 2; distance; distance /= 2)
        for (int at = 0; at < power; at++) /* `at` still has the piece, but is not to keep it */
            if ((at ^ last) % (2 * distance) / distance && (at ^ last) / (2 * distance) == 0)
                flow(s, piece, halving_member(n, at), halving_member(n, at ^ distance),
                     SCHEDULE_ADD);
    for (int distance = 1; distance < power; distance *= 2)
        for (int at = 0; at < power; at++)
            if ((at ^ last) < distance)
                flow(s, piece, halving_member(n, at), halving_member(n, at ^ distance),
                     SCHEDULE_COPY);
    for (int k = 0; k < pairs; k++)
        flow(s, piece, 2 * k, 2 * k + 1, SCHEDULE_COPY);
}

/* Finds the first member of each host, in order; of[k]: that of member k's host. Only two-level
 * goes by hosts: for the other kinds each member is its own leader. */
static int find_leaders(const struct schedule_request *r, int *leaders, int *of)
{
    int n = 0;
    for (int k = 0; k < r->n_members; k++) {
        int at = r->kind == SCHEDULE_TWO_LEVEL ? 0 : n;
        while (at < n && r->hosts[leaders[at]] != r->hosts[k])
            at++;
        if (at == n)
            leaders[n++] = k;
        of[k] = leaders[at];
    }
    return n;
}

/* A ring of the leaders, from the one at `piece` on; members send to their leader before, and get
 * the sum from it afterwards. */
static void make_ring(const struct schedule_request *r, struct sum_schedule *s, int piece)
{
    int leaders[SCHEDULE_MEMBERS_MAX], of[SCHEDULE_MEMBERS_MAX];
    int n = find_leaders(r, leaders, of);
    for (int k = 0; k < s->n_members; k++)
        if (of[k] != k)
            flow(s, piece, k, of[k], SCHEDULE_ADD);
    for (int hop = 0; hop < 2 * (n - 1); hop++)
        flow(s, piece, leaders[(piece + hop) % n], leaders[(piece + hop + 1) % n],
             hop < n - 1 ? SCHEDULE_ADD : SCHEDULE_COPY);
    for (int k = 0; k < s->n_members; k++)
        if (of[k] != k)
            flow(s, piece, of[k], k, SCHEDULE_COPY);
}

static int count_one(const struct schedule_request *r)
{
    (void)r;
    return 1;
}

static int count_halves(const struct schedule_request *r)
{
    return power_below(r->n_members);
}

static int count_leaders(const struct schedule_request *r)
{
    int leaders[SCHEDULE_MEMBERS_MAX], of[SCHEDULE_MEMBERS_MAX];
    return find_leaders(r, leaders, of);
}

static const struct generator {
    const char *name;
    void (*make)(const struct schedule_request *request, struct sum_schedule *schedule, int piece);
    int (*count)(const struct schedule_request *request); /* the least number of pieces */
} generators[] = {
    [SCHEDULE_DIRECT] = {"direct", make_direct, count_leaders},
    [SCHEDULE_CHAIN] = {"chain", make_chain, count_one},
    [SCHEDULE_RING] = {"ring", make_ring, count_leaders},
    [SCHEDULE_TREE] = {"tree", make_tree, count_one},
    [SCHEDULE_HALVING] = {"halving", make_halving, count_halves},
    [SCHEDULE_TWO_LEVEL] = {"two-level", make_ring, count_leaders},
};

bool schedule_kind_of(const char *name, enum schedule_kind *kind)
{
    size_t n = sizeof generators / sizeof *generators, at = names_find(generators, n, name);
    *kind = (enum schedule_kind)at;
    return at < n;
}

const char *schedule_name(enum schedule_kind kind)
{
    return generators[kind].name;
}

/* ---- rounds ---- */

/* The last rounds in which a member's piece was received and sent; -1: none. */
struct piece_rounds {
    int came, sent;
};

/* For each round, whether a member sends something to another. */
struct way_rounds {
    VEC(bool) busy;
};

static int max(int a, int b)
{
    return a > b ? a : b;
}

/* Sorts the flows by round; the sort is stable. */
static void sort(struct sum_schedule *s)
{
    struct schedule_flow *sorted = mem_array(s->flows.n + 1, sizeof *sorted);
    size_t *first = mem_array((size_t)s->n_rounds + 1, sizeof *first);
    for (size_t i = 0; i < s->flows.n; i++)
        first[s->flows.items[i].round + 1]++;
    for (int round = 0; round < s->n_rounds; round++)
        first[round + 1] += first[round];
    for (size_t i = 0; i < s->flows.n; i++)
        sorted[first[s->flows.items[i].round]++] = s->flows.items[i];
    for (size_t i = 0; i < s->flows.n; i++)
        s->flows.items[i] = sorted[i];
    mem_free(sorted);
    mem_free(first);
}

/* Puts each flow into the first round in which its value is ready and its way is free. */
static void set_rounds(struct sum_schedule *s)
{
    size_t n = (size_t)s->n_members, n_pieces = n * (size_t)s->n_pieces;
    struct piece_rounds *pieces = mem_array(n_pieces, sizeof *pieces);
    struct way_rounds *ways = mem_array(n * n, sizeof *ways);
    for (size_t i = 0; i < n_pieces; i++)
        pieces[i] = (struct piece_rounds){-1, -1};
    vec_each(flow, &s->flows) {
        struct piece_rounds *from = &pieces[flow->from * s->n_pieces + flow->piece];
        struct piece_rounds *to = &pieces[flow->to * s->n_pieces + flow->piece];
        struct way_rounds *way = &ways[flow->from * s->n_members + flow->to];
        flow->round = max(0, max(from->came + 1, max(to->came, to->sent)));
        while ((size_t)flow->round < way->busy.n && way->busy.items[flow->round])
            flow->round++;
        while (way->busy.n <= (size_t)flow->round)
            vec_push(&way->busy, false);
        way->busy.items[flow->round] = true;
        from->sent = max(from->sent, flow->round);
        to->came = flow->round;
        s->n_rounds = max(s->n_rounds, flow->round + 1);
    }
    sort(s);
    for (size_t i = 0; i < n * n; i++)
        vec_release(&ways[i].busy);
    mem_free(ways);
    mem_free(pieces);
}

/* ---- the whole schedule ---- */

int schedule_make(const struct schedule_request *r, struct sum_schedule *s, struct error *err)
{
    if (r->n_members < 1 || r->n_members > SCHEDULE_MEMBERS_MAX)
        return error_set(err, ERR_DATA, "schedules are for 1 to %d workers, not %d",
                         SCHEDULE_MEMBERS_MAX, r->n_members);
    if (r->kind == SCHEDULE_TWO_LEVEL && !r->hosts)
        return error_set(err, ERR_DATA, "two-level goes by the workers' hosts, which are not said");
    s->n_members = r->n_members;
    s->n_pieces = r->n_pieces ? r->n_pieces : generators[r->kind].count(r);
    for (int piece = 0; piece < s->n_pieces; piece++)
        generators[r->kind].make(r, s, piece);
    set_rounds(s);
    return 0;
}

void schedule_release(struct sum_schedule *s)
{
    vec_release(&s->flows);
    *s = (struct sum_schedule){0};
}

/* ---- the schedule of a call ---- */

bool collective_goes_by_schedule(const struct collective_schedule *schedule,
                                 enum collective_kind kind, bool has_root,
                                 const struct tensor *value)
{
    bool whole = kind == COLLECTIVE_SUM || kind == COLLECTIVE_MEAN;
    return schedule->kind != SCHEDULE_DIRECT && whole && !has_root &&
           collective_can_add(kind, value->type) && value->type != FLOAT16 &&
           value->type != BFLOAT16 && (int64_t)tensor_bytes(value) > COLLECTIVE_SMALL_BYTES;
}

/* Fills `hosts` with the host numbers of these ranks. */
static struct schedule_request request_of(const struct collective_schedule *schedule,
                                          const int *ranks, int n, int *hosts)
{
    for (int k = 0; k < n && schedule->hosts; k++)
        hosts[k] = (int)schedule->hosts[ranks[k]];
    return (struct schedule_request){
        .kind = schedule->kind, .n_members = n, .hosts = schedule->hosts ? hosts : NULL};
}

int collective_schedule_parts(const struct collective_schedule *schedule,
                              const struct collective_group *group, int size, int rank)
{
    int ranks[SCHEDULE_MEMBERS_MAX], hosts[SCHEDULE_MEMBERS_MAX];
    int n = collective_group_size(group, size);
    BUG_ON(n > SCHEDULE_MEMBERS_MAX);
    for (int k = 0; k < n; k++)
        ranks[k] = (int)collective_group_rank(group, rank, k);
    const struct schedule_request request = request_of(schedule, ranks, n, hosts);
    return generators[request.kind].count(&request);
}

void collective_schedule_make(const struct collective_schedule *schedule, const int *ranks, int n,
                              struct sum_schedule *made)
{
    struct error err = ERROR_INIT;
    int hosts[SCHEDULE_MEMBERS_MAX];
    const struct schedule_request request = request_of(schedule, ranks, n, hosts);
    int code = schedule_make(&request, made, &err);
    BUG_ON(code);
}

/* ---- programs ---- */

#define PROGRAM(awaited, ...)                                                                      \
    {                                                                                              \
        .actions = (struct chunk_action[]){__VA_ARGS__},                                           \
        .n = sizeof((struct chunk_action[]){__VA_ARGS__}) / sizeof(struct chunk_action),           \
        .awaits = awaited,                                                                         \
    }

const struct chunk_program program_owner = PROGRAM(false, {ACT_SUM, PROGRAM_PEER, true});
const struct chunk_program program_member =
    PROGRAM(true, {ACT_SEND, PROGRAM_PEER, false}, {ACT_COPY, PROGRAM_PEER, true});
const struct chunk_program program_source = PROGRAM(false, {ACT_SEND, PROGRAM_PEER, true});
const struct chunk_program program_destination = PROGRAM(true, {ACT_COPY, PROGRAM_PEER, true});

void program_make(const struct sum_schedule *s, int member, int piece,
                  struct chunk_program *program)
{
    uint64_t held[SCHEDULE_MEMBERS_MAX], all = 0; /* by member: bits of the members added in its
                                                   * piece */
    for (int k = 0; k < s->n_members; k++)
        all |= held[k] = (uint64_t)1 << k;
    *program =
        (struct chunk_program){.actions = mem_array(s->flows.n + 1, sizeof *program->actions)};
    vec_each(flow, &s->flows) {
        if (flow->piece != piece)
            continue;
        bool copies = flow->operation == SCHEDULE_COPY, is_whole = held[flow->from] == all;
        held[flow->to] = copies ? all : held[flow->to] | held[flow->from];
        if (flow->from == member)
            program->actions[program->n++] = (struct chunk_action){ACT_SEND, flow->to, is_whole};
        else if (flow->to == member)
            program->actions[program->n++] =
                (struct chunk_action){copies ? ACT_COPY : ACT_ADD, flow->from, held[member] == all};
        program->awaits |= flow->to == member;
    }
}

void program_release(struct chunk_program *program)
{
    mem_free(program->actions);
    *program = (struct chunk_program){0};
}
