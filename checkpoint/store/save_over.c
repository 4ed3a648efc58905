/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to a checkpoint when another one of its step is saved: a save replaces only
 * checkpoints of the same run, or those that the request allows to be replaced.
 */
#include <inttypes.h>
#include <string.h>

#include "checkpoint/store/save_private.h"
#include "exec/state/resource.h"

/* Errors are those of reading; a damaged checkpoint counts as none. */
int save_find_there(struct store *store, int64_t step, bool *is_there, struct ckpt_manifest *there,
                    struct error *err)
{
    int code = store_manifest(store, step, there, err);
    *is_there = !code;
    if (code != ERR_NOINPUT && code != ERR_DATA)
        return code;
    error_clear(err);
    return 0;
}

/* Returns whether the tensors are alike except for their data. `there` NULL: there is none. */
static bool is_like(const struct manifest_tensor *mine, const struct manifest_tensor *there)
{
    return there && there->type == mine->type && shape_equal(&there->shape, &mine->shape) &&
           there->bytes == mine->bytes && variable_slice_equal(&there->slice, &mine->slice);
}

static void print_run(const struct ckpt_run *run, struct str *out)
{
    str_append(out, run_is_known(run) ? "run " : "a run that is not known");
    if (run_is_known(run))
        run_print(run, out);
}

static int refuse(const struct store *store, const struct ckpt_manifest *there, const char *how,
                  struct error *err)
{
    struct str run = STR_INIT;
    print_run(&there->run, &run);
    error_set(err, ERR_CONFIG, "%s@%" PRId64 ": is there already%s, of %s", store->name,
              there->step, how, run.data);
    str_release(&run);
    return err->code;
}

int save_check_over(const struct store *store, const struct save_over_case *over, bool *stays,
                    struct error *err)
{
    const struct save_request *request = over->request;
    bool is_own = request->over == SAVE_OVER_OWN && run_equal(&request->run, &over->there->run);
    *stays = false;
    if (request->is_part || request->over == SAVE_OVER_ANY || is_own)
        return 0;
    const struct ckpt_manifest *mine = over->mine, *there = over->there;
    bool same = request->n_tensors == there->tensors.n && mine->shards.n == there->shards.n;
    for (size_t i = 0; same && i < mine->shards.n; i++)
        same = !strcmp(mine->shards.items[i].name, there->shards.items[i].name) &&
               digest_equal(&mine->shards.items[i].manifest, &there->shards.items[i].manifest);
    for (size_t i = 0; same && i < request->n_tensors; i++) {
        const struct manifest_tensor like = manifest_tensor_of(&request->tensors[i]);
        same = is_like(&like, ckpt_manifest_find(over->there, like.container, like.name));
    }
    for (size_t i = 0; same && i < over->chunks->n; i++)
        same = over->chunks->items[i].reused;
    *stays = same;
    return *stays ? 0 : refuse(store, over->there, " with other values", err);
}

static bool is_tensor_copy(const struct manifest_tensor *t, struct ckpt_manifest *there)
{
    const struct manifest_tensor *other = ckpt_manifest_find(there, t->container, t->name);
    return is_like(t, other) &&
           !memcmp(t->chunks, other->chunks, chunk_count(t->bytes) * sizeof *t->chunks);
}

/* A second save of a step, at a job's end, has the same variables, but resources as they are then:
 * for example, workers have left. */
static bool is_later_save(const struct checkpoint *from, struct ckpt_manifest *there)
{
    const struct ckpt_manifest *m = &from->manifest;
    bool same = run_is_known(&m->run) && run_equal(&m->run, &there->run) &&
                m->n_tensors == there->n_tensors && !there->shards.n && m->time > there->time;
    for (size_t i = 0; same && i < from->entries.n; i++) {
        const struct manifest_tensor *t = from->entries.items[i].tensor;
        same = resource_is_part(t->name) || is_tensor_copy(t, there);
    }
    return same;
}

int save_check_copy(struct store *store, const struct checkpoint *from, bool *stays,
                    struct error *err)
{
    struct ckpt_manifest there;
    bool is_there;
    *stays = false;
    if (save_find_there(store, from->manifest.step, &is_there, &there, err) || !is_there)
        return err->code;
    *stays = from->entries.n == there.tensors.n && !there.shards.n;
    for (size_t i = 0; *stays && i < from->entries.n; i++)
        *stays = is_tensor_copy(from->entries.items[i].tensor, &there);
    if (!*stays && !is_later_save(from, &there))
        refuse(store, &there, " with other values", err);
    ckpt_manifest_release(&there);
    return err->code;
}

int store_may_save(struct store *store, int64_t step, const struct ckpt_run *run, struct error *err)
{
    struct ckpt_manifest there;
    bool is_there;
    error_clear(err);
    if (save_find_there(store, step, &is_there, &there, err) || !is_there)
        return err->code;
    if (!run_equal(run, &there.run))
        refuse(store, &there, "", err);
    ckpt_manifest_release(&there);
    return err->code;
}

int store_check_alone(struct store *store, const struct ckpt_run *run, struct error *err)
{
    manifest_vec all;
    const struct ckpt_manifest *other = NULL;
    error_clear(err);
    if (store_manifests(store, &all, NULL, err))
        return err->code;
    for (size_t i = 0; i < all.n; i++)
        if (!run_equal(run, &all.items[i].run))
            other = &all.items[i];
    if (other) {
        struct str name = STR_INIT;
        print_run(&other->run, &name);
        error_set(err, ERR_CONFIG,
                  "%s: has checkpoints of %s, the newest of step %" PRId64
                  "; --resume goes on from them, or another store is wanted",
                  store->name, name.data, other->step);
        str_release(&name);
    }
    manifests_release(&all);
    return err->code;
}
