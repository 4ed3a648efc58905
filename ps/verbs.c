/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/formats/source.h"

/* ---- all tasks ---- */

int verbs_ask(struct client *client, const char *verb, const struct variable_place *place,
              void (*answered)(void *context, const char *task, const struct record *reply),
              void *context, struct error *err)
{
    struct shard_fields fields = {.origin.step = -1};
    struct task_request request = {.verb = verb, .answered = answered, .context = context};
    if (place) {
        fields.container = place->container;
        request.about = fields.name = place->name;
    }
    shard_fields_add(&request, &fields);
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
    record_get_text(&all->via.array.ptr[0], "container", &found->client->member.cluster.arena,
                    &found->container);
}

/* Sends the request about a variable to the task that has it. To find that costs a round trip more
 * than guessing, but is right with any placement. */
static int ask_owner(struct client *client, const struct variable_place *place,
                     struct task_request *request, struct error *err)
{
    struct task_reply found = {.client = client};
    char about[256];
    int code = verbs_ask(client, "list", place, take_place, &found, err);
    if (code)
        return code;
    if (!found.n)
        return error_set(err, ERR_NOINPUT, "no %s has a variable '%s'%s%s",
                         client_asks_worker(client) ? "worker" : "shard", place->name,
                         place->container ? " in container " : "",
                         place->container ? place->container : "");
    if (found.n > 1)
        return error_set(err, ERR_USAGE, "'%s' is there %d times: --container says which",
                         place->name, found.n);
    struct shard_fields fields = {
        .container = found.container, .name = place->name, .origin.step = -1};
    snprintf(about, sizeof about, "'%.200s'", place->name);
    request->about = about;
    shard_fields_add(request, &fields);
    return client_ask_one(client, found.task, request, err);
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
    struct task_request request = {.verb = "get", .answered = take_value, .context = value};
    *value = (struct tensor)TENSOR_INIT;
    int code = ask_owner(client, place, &request, err);
    if (!code && !value->buffer)
        code = error_set(err, ERR_PROTOCOL, "'%s': an answer without a value", place->name);
    return code;
}

int verbs_put(struct client *client, const struct variable_place *place, const struct tensor *value,
              struct error *err)
{
    const struct named_tensor named = {place->name, *value};
    struct task_request request = {.verb = "put", .tensors = &named, .n_tensors = 1};
    return ask_owner(client, place, &request, err);
}

/* ---- containers ---- */

int verbs_reset(struct client *client, const char *container, int64_t *n, struct error *err)
{
    struct variable_place place = {container, NULL};
    struct task_reply found = {.client = client,
                               .has = mem_array(client->tasks.n, sizeof *found.has)};
    *n = 0;
    int code = verbs_ask(client, "list", &place, take_place, &found, err);
    if (!code && !found.n)
        code = error_set(err, ERR_NOINPUT, "no shard has a container '%s'", container);
    for (size_t i = 0; !code && i < client->tasks.n; i++) {
        struct shard_fields fields = {.container = container, .origin.step = -1};
        if (found.has[i])
            code = shard_fields_ask(client, (int)i, "reset", &fields, NULL, err);
        *n += fields.variables;
    }
    mem_free(found.has);
    return code;
}

/* ---- checkpoints ---- */

static void take_leader(void *context, const char *task, const struct record *reply)
{
    struct task_reply *leader = context;
    int64_t version = -1;
    record_get_int(&reply->header, "version", &version);
    if (version >= 0)
        leader->task = client_task_index(leader->client, task);
}

int verbs_leader(struct client *client, int *task, struct error *err)
{
    struct task_reply leader = {.client = client};
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
    struct shard_fields fields = {.folder = path,
                                  .seconds = client->member.options.timeout / 2,
                                  .last = last,
                                  .origin.step = -1};
    int code = client_check_holders(client, err);
    if (!code)
        code = verbs_leader(client, &leader, err);
    if (!code)
        code = shard_fields_ask(client, leader, "save", &fields, "a checkpoint", err);
    *step = fields.origin.step;
    mem_free(path);
    return code;
}

/* The leader decides on a checkpoint, and the others restore the same. */
int verbs_restore(struct client *client, const char *where, int64_t *step, struct error *err)
{
    int leader;
    struct shard_fields fields = {.seconds = client->member.options.timeout / 2};
    struct arena arena = ARENA_INIT;
    const char *store;
    int code = source_split(where, &arena, &store, &fields.origin.step, err);
    char *path = absolute(store);
    fields.folder = path;
    if (!code)
        code = verbs_leader(client, &leader, err);
    if (!code)
        code = shard_fields_ask(client, leader, "restore", &fields, "a checkpoint", err);
    for (size_t i = 0; !code && i < client->tasks.n; i++)
        if ((int)i != leader)
            code = shard_fields_ask(client, (int)i, "restore", &fields, "a checkpoint", err);
    *step = fields.origin.step;
    mem_free(path);
    arena_release(&arena);
    return code;
}

int verbs_origin(struct client *client, const char *task, struct shard_origin *origin,
                 struct error *err)
{
    struct shard_fields fields = {.name = task, .origin.step = -1};
    int code =
        shard_fields_ask(client, 0, "origin", &fields, "which checkpoint to resume from", err);
    *origin = fields.origin;
    return code;
}
