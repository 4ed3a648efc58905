/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/formats/source.h"

/* Fields of a request; NULL and negative ones are left out. */
struct fields {
    const char *container, *name, *folder;
    int64_t step;
    double seconds;
    bool last;
};

static void pack_field(msgpack_packer *packer, const char *key, const char *value)
{
    if (value)
        pack_key_text(packer, key, value);
}

static void pack(const struct fields *fields, msgpack_packer *packer)
{
    pack_field(packer, "container", fields->container);
    pack_field(packer, "name", fields->name);
    pack_field(packer, "folder", fields->folder);
    if (fields->step >= 0)
        pack_key_int(packer, "step", fields->step);
    if (fields->seconds > 0)
        pack_key_float(packer, "seconds", fields->seconds);
    if (fields->last)
        pack_key_bool(packer, "last", true);
}

/* A request with its fields and the receiver of the replies. */
struct verb_request {
    struct fields fields; /* first */
    void (*answered)(void *context, const char *task, const struct record *reply);
    void *context;
};

static void pack_asked(void *context, msgpack_packer *packer)
{
    pack(&((const struct verb_request *)context)->fields, packer);
}

static void take_reply(void *context, const char *task, const struct record *reply)
{
    const struct verb_request *asked = context;
    if (asked->answered)
        asked->answered(asked->context, task, reply);
}

static struct task_request request_of(const char *verb, struct verb_request *asked)
{
    const struct fields *f = &asked->fields;
    return (struct task_request){.verb = verb,
                                 .n_fields = (f->container != NULL) + (f->name != NULL) +
                                             (f->folder != NULL) + (f->step >= 0) +
                                             (f->seconds > 0) + f->last,
                                 .pack = pack_asked,
                                 .answered = take_reply,
                                 .about = f->name,
                                 .context = asked};
}

/* ---- all tasks ---- */

int verbs_ask(struct client *client, const char *verb, const struct variable_place *place,
              void (*answered)(void *context, const char *task, const struct record *reply),
              void *context, struct error *err)
{
    struct verb_request asked = {.fields = {.step = -1}, .answered = answered, .context = context};
    if (place) {
        asked.fields.container = place->container;
        asked.fields.name = place->name;
    }
    struct task_request request = request_of(verb, &asked);
    return client_ask(client, &request, err);
}

/* ---- which task has it ---- */

struct task_reply {
    struct client *client;
    int task, n;
    bool *has; /* by task; may be NULL */
    const char *container;
};

static void take_place(void *context, const char *task, const struct record *reply)
{
    struct task_reply *found = context;
    const msgpack_object *all = record_field(&reply->header, "variables");
    if (!all || all->type != MSGPACK_OBJECT_ARRAY || !all->via.array.size)
        return;
    found->task = client_task_index(found->client, task);
    found->n += (int)all->via.array.size;
    if (found->has)
        found->has[found->task] = true;
    record_get_text(&all->via.array.ptr[0], "container", &found->client->cluster.arena,
                    &found->container);
}

/* This costs a round trip more than guessing, but is right with any placement. */
static int find(struct client *client, const struct variable_place *place, struct task_reply *found,
                struct error *err)
{
    *found = (struct task_reply){.client = client};
    int code = verbs_ask(client, "list", place, take_place, found, err);
    if (code)
        return code;
    if (!found->n)
        return error_set(err, ERR_NOINPUT, "no shard has a variable '%s'%s%s", place->name,
                         place->container ? " in container " : "",
                         place->container ? place->container : "");
    if (found->n > 1)
        return error_set(err, ERR_USAGE, "'%s' is there %d times: --container says which",
                         place->name, found->n);
    return 0;
}

static int ask_owner(struct client *client, const char *verb, const struct variable_place *place,
                     struct verb_request *asked, const struct tensor *value, struct error *err)
{
    struct task_reply found;
    char about[256];
    struct named_tensor named = {place->name, TENSOR_INIT};
    int code = find(client, place, &found, err);
    if (code)
        return code;
    asked->fields = (struct fields){.container = found.container, .name = place->name, .step = -1};
    struct task_request request = request_of(verb, asked);
    snprintf(about, sizeof about, "'%.200s'", place->name);
    request.about = about;
    if (value) {
        named.tensor = *value;
        request.tensors = &named;
        request.n_tensors = 1;
    }
    return client_ask_one(client, found.task, &request, err);
}

static void take_value(void *context, const char *task, const struct record *reply)
{
    struct tensor *value = context;
    (void)task;
    if (reply->n_tensors == 1)
        tensor_share(value, &reply->tensors[0].tensor);
}

int verbs_get(struct client *client, const struct variable_place *place, struct tensor *value,
              struct error *err)
{
    struct verb_request asked = {.answered = take_value, .context = value};
    *value = (struct tensor)TENSOR_INIT;
    int code = ask_owner(client, "get", place, &asked, NULL, err);
    if (!code && !value->buffer)
        code = error_set(err, ERR_PROTOCOL, "'%s': an answer without a value", place->name);
    return code;
}

int verbs_put(struct client *client, const struct variable_place *place, const struct tensor *value,
              struct error *err)
{
    struct verb_request asked = {.answered = NULL};
    return ask_owner(client, "put", place, &asked, value, err);
}

/* ---- containers ---- */

static void add_count(void *context, const char *task, const struct record *reply)
{
    int64_t count = 0, *n = context;
    (void)task;
    record_get_int(&reply->header, "variables", &count);
    *n += count;
}

int verbs_reset(struct client *client, const char *container, int64_t *n, struct error *err)
{
    struct variable_place place = {container, NULL};
    struct task_reply found = {.client = client,
                               .has = mem_array(client->tasks.n, sizeof *found.has)};
    struct verb_request asked = {
        .fields = {.container = container, .step = -1}, .answered = add_count, .context = n};
    struct task_request request = request_of("reset", &asked);
    *n = 0;
    int code = verbs_ask(client, "list", &place, take_place, &found, err);
    if (!code && !found.n)
        code = error_set(err, ERR_NOINPUT, "no shard has a container '%s'", container);
    for (size_t i = 0; !code && i < client->tasks.n; i++)
        if (found.has[i])
            code = client_ask_one(client, (int)i, &request, err);
    mem_free(found.has);
    return code;
}

/* ---- checkpoints ---- */

struct leader {
    const struct client *client;
    int task;
};

static void take_leader(void *context, const char *task, const struct record *reply)
{
    struct leader *leader = context;
    int64_t version = -1;
    record_get_int(&reply->header, "version", &version);
    if (version >= 0)
        leader->task = client_task_index(leader->client, task);
}

static void take_step(void *context, const char *task, const struct record *reply)
{
    (void)task;
    record_get_int(&reply->header, "step", context);
}

int verbs_leader(struct client *client, int *task, struct error *err)
{
    struct leader leader = {.client = client};
    int code = verbs_ask(client, "status", NULL, take_leader, &leader, err);
    *task = leader.task;
    return code;
}

/* Returns the absolute path, as shards may run in another folder. */
static char *absolute(const char *path)
{
    char here[PATH_MAX];
    struct str text = STR_INIT;
    if (*path != '/' && getcwd(here, sizeof here))
        str_printf(&text, "%s/", here);
    str_append(&text, path);
    return text.data;
}

int verbs_save(struct client *client, const char *folder, bool last, int64_t *step,
               struct error *err)
{
    int leader;
    char *path = absolute(folder);
    struct verb_request asked = {.fields = {.folder = path,
                                            .step = -1,
                                            .seconds = client->options.timeout / 2,
                                            .last = last},
                                 .answered = take_step,
                                 .context = step};
    struct task_request request = request_of("save", &asked);
    request.about = "a checkpoint";
    int code = client_check_shards_keep(client, err);
    if (!code)
        code = verbs_leader(client, &leader, err);
    if (!code)
        code = client_ask_one(client, leader, &request, err);
    mem_free(path);
    return code;
}

struct restore_order {
    const char *folder;
    double seconds;
    struct shard_origin origin; /* decision 0: the asked shard decides */
};

static void pack_order(void *context, msgpack_packer *packer)
{
    const struct restore_order *order = context;
    pack_field(packer, "folder", order->folder);
    pack_key_float(packer, "seconds", order->seconds);
    origin_pack(packer, &order->origin);
}

static void take_decision(void *context, const char *task, const struct record *reply)
{
    (void)task;
    origin_take(&reply->header, &((struct restore_order *)context)->origin);
}

/* The leader decides on a checkpoint, and the others restore the same. */
int verbs_restore(struct client *client, const char *where, int64_t *step, struct error *err)
{
    int leader;
    struct restore_order order = {.seconds = client->options.timeout / 2};
    struct task_request request = {.verb = "restore",
                                   .n_fields = 2 + ORIGIN_FIELDS,
                                   .pack = pack_order,
                                   .answered = take_decision,
                                   .about = "a checkpoint",
                                   .context = &order};
    struct arena arena = ARENA_INIT;
    const char *store;
    int code = source_split(where, &arena, &store, &order.origin.step, err);
    char *path = absolute(store);
    order.folder = path;
    if (!code)
        code = verbs_leader(client, &leader, err);
    if (!code)
        code = client_ask_one(client, leader, &request, err);
    request.answered = NULL;
    for (size_t i = 0; !code && i < client->tasks.n; i++)
        if ((int)i != leader)
            code = client_ask_one(client, (int)i, &request, err);
    *step = order.origin.step;
    mem_free(path);
    arena_release(&arena);
    return code;
}
