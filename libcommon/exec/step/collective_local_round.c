/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a round: where its values meet, and answers. If all are in the memory of one
 * device it adds them up there; else what is on devices is copied to the host first.
 */
#include "base/container_of.h"
#include "base/memory.h"
#include "exec/step/collective_local_private.h"
#include "exec/step/copy_out.h"
#include "exec/device/deferred.h"

struct part_copy {
    struct copy_out copy; /* to: an array of its own */
    struct local_round *round;
    struct error err; /* why there is none */
};

void local_part_release(struct local_part *part)
{
    if (part->copy) {
        copy_out_release(&part->copy->copy);
        mem_free(part->copy->copy.to);
        mem_free(part->copy);
    }
    for (int i = 0; i < part->n; i++)
        tensor_release(&part->values[i]);
    mem_free(part->values);
    mem_free(part->rows);
    device_point_release(&part->at);
    *part = (struct local_part){0};
}

void local_round_free(struct local_round *round)
{
    for (int k = 0; k < MEMBERS_MAX; k++)
        local_part_release(&round->parts[k]);
    mem_free(round->name);
    mem_free(round->kinds);
    mem_free(round);
}

/* ---- answers ---- */

struct local_answer {
    struct collective_results results; /* values: n for each member, by rank */
    int n;
    struct error err;
};

/* How many values there are, and members. */
static struct local_answer open_answer(const struct local_round *round)
{
    struct local_answer answer = {.n = -1, .err = ERROR_INIT};
    for (int k = 0; k < MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (part->declined)
            error_set(&answer.err, ERR_DATA, "'%s': member %d brings nothing: its input is dead",
                      round->name, k);
        if (!part->waiter)
            continue;
        if (answer.n >= 0 && part->n != answer.n)
            error_set(&answer.err, ERR_DATA, "a member brings %d values, another %d", part->n,
                      answer.n);
        answer.n = part->n;
        answer.results.members++;
    }
    if (answer.n < 0) /* nobody waits */
        answer.n = 0;
    size_t n = (size_t)answer.n * (size_t)answer.results.members;
    answer.results.values = mem_array(n + 1, sizeof *answer.results.values);
    return answer;
}

/* Those of the member, and its own share: the waiter may be gone once it was told. */
static void tell(struct collective_waiter *waiter, const struct local_answer *answer, int member)
{
    struct collective_results shares = answer->results;
    if (answer->err.code) {
        waiter->done(waiter, NULL, &answer->err);
        return;
    }
    shares.values = answer->results.values + (size_t)member * (size_t)answer->n;
    waiter->done(waiter, &shares, NULL);
}

static void answer_all(struct local_round *round, struct local_answer *answer)
{
    int member = 0;
    for (int k = 0; k < MEMBERS_MAX; k++)
        if (round->parts[k].waiter)
            tell(round->parts[k].waiter, answer, member++);
    for (int i = 0; i < answer->n * answer->results.members; i++)
        tensor_release(&answer->results.values[i]);
    mem_free(answer->results.values);
    device_point_release(&answer->results.at);
    local_round_free(round);
}

/* What the members have brought as the i-th, and want of it. */
struct collected {
    const struct tensor *values[MEMBERS_MAX];
    int ranks[MEMBERS_MAX];
    int64_t wanted[MEMBERS_MAX];
    struct collective_routing routing;
};

static void collect(const struct local_round *round, int i, struct collected *c)
{
    bool wants = false;
    c->routing = (struct collective_routing){.kind = round->kinds[i], .root = -1};
    for (int k = 0; k < MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (!part->waiter)
            continue;
        int n = c->routing.n++;
        c->ranks[n] = k;
        if (round->has_root && round->root == k)
            c->routing.root = n;
        c->values[n] = part->copy ? &part->copy->copy.to[i] : &part->values[i];
        c->wanted[n] = part->rows ? part->rows[i] : 0;
        wants |= part->rows != NULL;
    }
    c->routing.wanted = wants ? c->wanted : NULL;
}

/* Whether it goes by the round's schedule, as it does where none of the members has another kind of
 * value. */
static bool is_scheduled(const struct local_round *round, const struct collected *c)
{
    for (int k = 0; k < c->routing.n; k++)
        if (c->values[k]->type != c->values[0]->type ||
            !shape_equal(&c->values[k]->shape, &c->values[0]->shape))
            return false;
    return collective_goes_by_schedule(&round->schedule, c->routing.kind, round->has_root,
                                       c->values[0]);
}

static void combine_by_schedule(const struct local_round *round, const struct collected *c,
                                struct tensor *result, struct error *err)
{
    struct sum_schedule schedule = {0};
    int n_parts =
        collective_schedule_parts(&round->schedule, &round->group, round->size, round->member);
    collective_schedule_make(&round->schedule, c->ranks, c->routing.n, &schedule);
    collective_combine_by(&schedule, n_parts, c->routing.kind, c->values, result, err);
    schedule_release(&schedule);
}

/* Of one value; who gets the same shares it. */
static void combine_value(const struct local_round *round, const struct collective_memory *memory,
                          int i, struct local_answer *answer)
{
    struct collected c;
    collect(round, i, &c);
    bool differ = round->has_root || collective_parts(c.routing.kind);
    if (round->has_root && c.routing.root < 0)
        error_set(&answer->err, ERR_DATA, "the root, member %d, takes no part", round->root);
    for (int k = 0; k < c.routing.n && !answer->err.code; k++) {
        struct tensor *result = &answer->results.values[k * answer->n + i];
        if (k && !differ)
            tensor_share(result, &answer->results.values[i]);
        else if (!memory && is_scheduled(round, &c))
            combine_by_schedule(round, &c, result, &answer->err);
        else
            collective_combine_for(memory, &c.routing, c.values, k, result, &answer->err);
    }
}

static void combine(const struct local_round *round, const struct collective_memory *memory,
                    struct local_answer *answer)
{
    for (int i = 0; i < answer->n && !answer->err.code; i++)
        combine_value(round, memory, i, answer);
}

/* ---- on a device ---- */

/* Rows that are cut lie where kernels of a device need not be able to add; and nothing is added for
 * who brings nothing. */
static bool is_for_host(const struct local_round *round)
{
    bool parts = round->has_root || round->schedule.kind != SCHEDULE_DIRECT;
    for (int k = 0; k < MEMBERS_MAX; k++)
        parts |= round->parts[k].declined;
    for (int i = 0; i < round->n && !parts; i++)
        parts = collective_parts(round->kinds[i]);
    return parts;
}

/* That has all values; NULL: none has, or it does not add. */
static struct device *device_of(const struct local_round *round)
{
    struct device *device = NULL;
    if (is_for_host(round))
        return NULL;
    for (int k = 0; k < MEMBERS_MAX; k++) {
        const struct local_part *part = &round->parts[k];
        if (!part->waiter)
            continue;
        if (!part->at.device || (device && device != part->at.device))
            return NULL;
        device = part->at.device;
    }
    return device && device->sum ? device : NULL;
}

static const struct local_part *first_part(const struct local_round *round)
{
    int k = 0;
    while (!round->parts[k].waiter)
        k++;
    return &round->parts[k];
}

/* The compute queue waits for all, and `block` gets the fault of the least rank that has one. */
static int join(const struct local_round *round, struct device *device, struct step_block *block,
                struct error *err)
{
    const struct local_part *first = first_part(round);
    device->wait(device, QUEUE_COMPUTE, first->at.ready);
    int code = device->copy(device, &block->fault, device_point_fault(&first->at),
                            sizeof block->fault, err);
    for (const struct local_part *part = first + 1; !code && part < round->parts + MEMBERS_MAX;
         part++)
        if (part->waiter)
            code = device_point_join(&part->at, block, err);
    return code;
}

/* Of results: the compute queue of a device that has `sum`, and a pool of its memory. */
struct point_memory {
    struct device *device;
    struct pool *pool;
};

static int alloc_there(void *context, enum dtype type, const struct shape *shape, struct tensor *t,
                       struct error *err)
{
    const struct point_memory *memory = context;
    struct buffer *buffer = pool_alloc(memory->pool, (size_t)shape_bytes(shape, type));
    if (!buffer)
        return error_set(err, ERR_OS, "no memory for %s%s", shape_text_typed(type, shape),
                         mem_limit_text());
    *t = (struct tensor){.type = type, .shape = *shape, .data = buffer->data, .buffer = buffer};
    return 0;
}

static int copy_there(void *context, void *to, const void *from, size_t bytes, struct error *err)
{
    const struct point_memory *memory = context;
    return memory->device->copy(memory->device, to, from, bytes, err);
}

static int sum_there(void *context, const struct collective_terms *terms, void *sum, int64_t count,
                     struct error *err)
{
    const struct point_memory *memory = context;
    return memory->device->sum(memory->device, terms, sum, count, err);
}

static void conclude_on(struct device *device, struct local_round *round)
{
    struct local_answer answer = open_answer(round);
    struct device_point *at = &answer.results.at;
    struct point_memory there = {device, first_part(round)->pool};
    const struct collective_memory memory = {&there, alloc_there, copy_there, sum_there};
    thread_enter_device(device, 1);
    at->device = device;
    at->block = pool_alloc(there.pool, sizeof(struct step_block));
    if (!at->block)
        error_set(&answer.err, ERR_OS, "no memory for what is reduced%s", mem_limit_text());
    if (!answer.err.code && !join(round, device, at->block->data, &answer.err))
        combine(round, &memory, &answer);
    at->ready = device->record(device, QUEUE_COMPUTE, false);
    answer_all(round, &answer);
}

/* ---- on the host ---- */

static void conclude_on_host(struct local_round *round)
{
    struct local_answer answer = open_answer(round);
    for (int k = 0; k < MEMBERS_MAX && !answer.err.code; k++)
        if (round->parts[k].copy)
            answer.err = round->parts[k].copy->err;
    combine(round, NULL, &answer);
    answer_all(round, &answer);
}

static void count_copied(struct local_round *round)
{
    if (atomic_fetch_sub(&round->n_copying, 1) == 1)
        conclude_on_host(round);
}

static void copied(struct copy_out *copy, const struct error *failure)
{
    struct part_copy *own = CONTAINER_OF(copy, struct part_copy, copy);
    if (failure)
        own->err = *failure;
    count_copied(own->round);
}

static void begin_copy(struct local_round *round, struct local_part *part)
{
    struct part_copy *own = part->copy = mem_alloc(sizeof *own);
    own->round = round;
    own->err = error_none();
    own->copy = (struct copy_out){.at = part->at,
                                  .from = part->values,
                                  .to = mem_array((size_t)part->n + 1, sizeof *own->copy.to),
                                  .n = part->n,
                                  .done = copied};
    part->at = (struct device_point){0};
    thread_enter_device(own->copy.at.device, 1);
    if (copy_out_enqueue(&own->copy, part->host_pool, &own->err))
        return;
    atomic_fetch_add(&round->n_copying, 1);
    copy_out_notify(&own->copy);
}

void local_round_conclude(struct local_round *round)
{
    struct device *device = device_of(round);
    if (device) {
        conclude_on(device, round);
        return;
    }
    atomic_store(&round->n_copying, 1);
    for (int k = 0; k < MEMBERS_MAX; k++)
        if (round->parts[k].waiter && round->parts[k].at.device)
            begin_copy(round, &round->parts[k]);
    count_copied(round);
}
