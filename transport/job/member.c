/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/job/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/time.h"
#include "transport/job/cluster_config.h"

#define TIMEOUT_SECONDS 30

int member_find(struct member *member, const struct member_options *options,
                char task[TASK_TEXT_BYTES], struct error *err)
{
    const char *config = getenv("TF_CONFIG");
    *task = '\0';
    *member = (struct member){.options = *options};
    if (options->timeout <= 0)
        member->options.timeout = TIMEOUT_SECONDS;
    if (options->job_folder) {
        int code = job_open(&member->job, options->job_folder, err);
        if (code)
            return code;
    }
    if (options->cluster_path)
        return cluster_read(&member->cluster, options->cluster_path, err);
    if (options->job_folder)
        return job_cluster(&member->job, &member->cluster, err);
    if (config && *config)
        return cluster_from_config(&member->cluster, config, task, err);
    return error_set(err, ERR_USAGE,
                     "which cluster? name its file by -c, or a running job's directory by --job");
}

static int find_self(struct member *member, const char *task, struct error *err)
{
    if (!task)
        return error_set(err, ERR_USAGE, "which task of the cluster is this? --task worker:0");
    if (task_parse(task, member->job_name, &member->index, err))
        return err->code;
    snprintf(member->task, sizeof member->task, "%s:%d", member->job_name, member->index);
    if (!cluster_find(&member->cluster, member->job_name, member->index))
        return error_set(err, ERR_CONFIG, "there is no task %s in the cluster", member->task);
    return 0;
}

int member_connect(struct member *member, struct error *err)
{
    const struct member_options *options = &member->options;
    if (member->job.folder && !options->key_file && !options->no_key)
        member->key_path = job_path(&member->job, "", "key");
    struct conns_options conns = {
        .peers = {.task = member->task,
                  .incarnation = member->has_slot ? member->slot.incarnation : 0,
                  .producer = options->producer,
                  .folder = options->job_folder,
                  .key_file = options->key_file ? options->key_file : member->key_path,
                  .no_key = options->no_key,
                  .lease = options->lease,
                  .news = options->news}};
    member->conns = conns_new(&conns, err);
    return member->conns ? 0 : err->code;
}

int member_open(struct member *member, const struct member_options *options, struct error *err)
{
    char task[TASK_TEXT_BYTES];
    *member = (struct member){.options = *options};
    if (FAILPOINT("member.open"))
        return error_set(err, ERR_UNAVAILABLE, "failpoint member.open");
    if (member_find(member, options, task, err) ||
        find_self(member, options->task || !*task ? options->task : task, err) ||
        (member->job.folder && job_enter(&member->job, member->task, &member->slot, err)))
        return err->code;
    member->has_slot = member->job.folder;
    const struct cluster_task *self =
        cluster_find(&member->cluster, member->job_name, member->index);
    if (self && self->memory_bytes) /* memory= of a task applies to each of its devices */
        mem_set_limit((size_t)self->memory_bytes * (size_t)self->n_devices, member->task);
    return member_connect(member, err);
}

void member_close(struct member *member)
{
    conns_free(member->conns);
    if (member->has_slot)
        job_leave(&member->job, &member->slot);
    if (member->job.folder)
        job_close(&member->job);
    mem_free(member->key_path);
    cluster_release(&member->cluster);
}

char *member_claims(const struct member *member)
{
    return member->has_slot ? job_path(&member->job, member->task, ".claims") : NULL;
}

int member_listen(struct member *member, struct address *bound, struct error *err)
{
    const struct cluster_task *self =
        cluster_find(&member->cluster, member->job_name, member->index);
    if (peers_listen(conns_peers(member->conns), self->address, bound, err))
        return error_prefix(err, "%s: ", member->task);
    if (!member->has_slot)
        return 0;
    char address[DEVICE_WORD_BYTES + 32]; /* the control socket: tools on this host need no key */
    snprintf(address, sizeof address, "unix:%s-%d.sock", member->job_name, member->index);
    return peers_listen(conns_peers(member->conns), address, NULL, err)
               ? err->code
               : job_publish(&member->job, member->task, bound->text, err);
}

/* ---- waiting for a job's tasks ---- */

const struct cluster_task *member_find_task(const struct cluster *cluster, const char *task)
{
    size_t i = vec_find(&cluster->tasks, task);
    return i < cluster->tasks.n ? &cluster->tasks.items[i] : NULL;
}

/* Returns what is known against one of the other tasks; NULL: nothing. */
static const char *lacks(const struct member *member, const char *const *tasks, size_t n,
                         const char **which)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(tasks[i], member->task))
            continue;
        const struct cluster_task *task = member_find_task(&member->cluster, tasks[i]);
        const char *why = task ? job_lacks(&member->job, task) : NULL;
        *which = tasks[i];
        if (why)
            return why;
    }
    return NULL;
}

int member_wait_for(struct member *member, const char *const *tasks, size_t n, struct error *err)
{
    double end = time_now() + member->options.timeout, told = time_now() - 0.5, left;
    const struct peers_news *news = &member->options.news;
    const char *why, *which;
    if (!member->job.folder || member->options.cluster_path)
        return 0;
    while ((why = lacks(member, tasks, n, &which)) && (left = end - time_now()) > 0) {
        char text[512];
        snprintf(text, sizeof text, "waiting for %s: %s, %.0f s left", which, why, left);
        if (news->waiting && time_now() - told >= 1) {
            news->waiting(news->context, which, text);
            told = time_now();
        }
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
        if (member->options.given_up && member->options.given_up(news->context))
            return error_set(err, ERR_CANCELLED, "given up while waiting for %s", which);
        cluster_release(&member->cluster);
        memset(&member->cluster, 0, sizeof member->cluster);
        if (job_cluster(&member->job, &member->cluster, err))
            return err->code;
    }
    return why ? error_set(err, ERR_UNAVAILABLE, "%s: %s", which, why) : 0;
}
