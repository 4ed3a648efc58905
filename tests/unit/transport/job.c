/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "transport/job/job.h"

static const char text[] = "# two shards\n"
                           "task  ps:0      127.0.0.1:0  device=CPU:0 memory=1G   # here\n"
                           "task  ps:1      127.0.0.1:0\n"
                           "task  ps:10     127.0.0.1:0\n"
                           "link  *  *      bandwidth=2G latency=50us\n";
static const char cluster_text[] = "task ps:0 127.0.0.1:0 device=CPU:0   # here\n"
                                   "task  ps:1\t127.0.0.1:0\n"
                                   "task worker:0 unix:w.sock\n"
                                   "link * * bandwidth=2G\n";

static char folder[64];

static int enter_folder(void **unused)
{
    (void)unused;
    snprintf(folder, sizeof folder, "/tmp/tf-job-XXXXXX");
    return !mkdtemp(folder);
}

static int leave_folder(void **unused)
{
    char command[128];
    (void)unused;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void create(struct job *job)
{
    struct error err = ERROR_INIT;
    if (job_create(job, folder, cluster_text, &err))
        fail_msg("%s", err.text);
}

static void assert_lacks(const struct job *job, const char *name, int index, const char *wanted)
{
    struct cluster cluster = {0};
    struct error err = ERROR_INIT;
    assert_int_equal(job_cluster(job, &cluster, &err), 0);
    const char *why = job_lacks(job, cluster_find(&cluster, name, index));
    if (wanted)
        assert_string_equal(why, wanted);
    else
        assert_null(why);
    cluster_release(&cluster);
}

static void addresses_are_published(void **unused)
{
    (void)unused;
    struct job job;
    struct cluster cluster = {0};
    struct error err = ERROR_INIT;
    create(&job);
    assert_lacks(&job, "ps", 1, "not started");
    assert_int_equal(job_publish(&job, "ps:1", "127.0.0.1:7001", &err), 0);
    assert_int_equal(job_publish(&job, "ps:1", "[::1]:7002", &err), 0); /* restarted */
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s/cluster: no task ps:7", folder);
    unit_assert_error(job_publish(&job, "ps:7", "127.0.0.1:7001", &err), err, ERR_CONFIG, wanted);
    error_clear(&err);
    assert_int_equal(job_cluster(&job, &cluster, &err), 0);
    assert_string_equal(cluster_find(&cluster, "ps", 0)->address, "127.0.0.1:0");
    assert_string_equal(cluster_find(&cluster, "ps", 1)->address, "[::1]:7002");
    assert_int_equal(cluster.links.n, 1);
    cluster_release(&cluster);
    assert_lacks(&job, "ps", 1, NULL);
    assert_lacks(&job, "worker", 0, "not started");
    job_close(&job);
}

/* The file is the user's: comments and spacing must stay. */
static void only_the_address_is_changed(void **unused)
{
    (void)unused;
    struct job job;
    struct error err = ERROR_INIT;
    char bytes[512] = "";
    assert_int_equal(job_create(&job, folder, text, &err), 0);
    assert_int_equal(job_publish(&job, "ps:0", "127.0.0.1:41234", &err), 0);
    assert_int_equal(job_publish(&job, "ps:1", "127.0.0.1:41235", &err), 0);
    int fd = openat(job.fd, "cluster", O_RDONLY);
    assert_true(read(fd, bytes, sizeof bytes - 1) > 0);
    close(fd);
    assert_string_equal(bytes, "# two shards\n"
                               "task  ps:0      127.0.0.1:41234  device=CPU:0 memory=1G   # here\n"
                               "task  ps:1      127.0.0.1:41235\n"
                               "task  ps:10     127.0.0.1:0\n"
                               "link  *  *      bandwidth=2G latency=50us\n");
    job_close(&job);
}

/* A child that takes the slot of ps:0, reports it, and lives until it is killed. */
static pid_t start_shard(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        struct job job;
        struct job_slot slot;
        struct error err = ERROR_INIT;
        if (job_open(&job, folder, &err) || job_enter(&job, "ps:0", &slot, &err) ||
            write(ready[1], "", 1) != 1)
            _exit(1);
        pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_shard(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void what_was_killed_is_recognised(void **unused)
{
    (void)unused;
    struct job job, other;
    struct job_process process;
    struct job_slot slot;
    struct error err = ERROR_INIT;
    char wanted[256];
    create(&job);
    assert_int_equal(job_look(&job, "ps:0", &process, &err), 0);
    assert_false(process.alive || process.pid || process.incarnation);

    pid_t pid = start_shard();
    assert_int_equal(job_look(&job, "ps:0", &process, &err), 0);
    assert_true(process.alive && process.pid == pid && process.incarnation == 1);
    assert_lacks(&job, "ps", 0, "it has not said where it listens");
    snprintf(wanted, sizeof wanted, "%s: ps:0 runs already, as pid %ld", folder, (long)pid);
    unit_assert_error(job_enter(&job, "ps:0", &slot, &err), err, ERR_RETRY, wanted);
    snprintf(wanted, sizeof wanted, "job directory %s: the process of ps-0.pid lives", folder);
    unit_assert_error(job_create(&other, folder, cluster_text, &err), err, ERR_RETRY, wanted);
    unit_assert_error(job_end(folder, &err), err, ERR_RETRY, wanted);
    assert_int_equal(job_publish(&job, "ps:0", "127.0.0.1:7001", &err), 0);
    assert_lacks(&job, "ps", 0, NULL);

    end_shard(pid);
    assert_int_equal(job_look(&job, "ps:0", &process, &err), 0);
    assert_true(!process.alive && process.pid == pid && process.incarnation == 1);
    assert_lacks(&job, "ps", 0, "its process has died");
    assert_int_equal(job_enter(&job, "ps:0", &slot, &err), 0);
    assert_int_equal(slot.incarnation, 2);
    assert_int_equal(job_look(&job, "ps:0", &process, &err), 0);
    assert_int_equal(process.pid, getpid());
    assert_lacks(&job, "ps", 0, NULL);
    job_leave(&job, &slot);
    assert_int_equal(job_look(&job, "ps:0", &process, &err), 0);
    assert_false(process.alive || process.pid);
    job_close(&job);
}

/* Between taking the lock and writing its pid a process does not count: a watcher that saw only
 * such a process took over the job. */
static void who_takes_its_place_is_not_there_yet(void **unused)
{
    (void)unused;
    struct job job;
    struct job_process process;
    struct error err = ERROR_INIT;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    create(&job);
    int fd = openat(job.fd, "ps-0.pid", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    assert_int_equal(job_look(&job, "ps:0", &process, &err), 0);
    assert_false(process.alive || process.pid || process.listens);
    assert_int_equal(pwrite(fd, "77\n", 3, 0), 3);
    assert_int_equal(job_look(&job, "ps:0", &process, &err), 0);
    assert_true(process.alive && process.pid == 77 && !process.listens);
    close(fd);
    job_close(&job);
}

static bool exists(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return !access(path, F_OK);
}

static void an_ended_job_leaves_what_it_wrote(void **unused)
{
    (void)unused;
    struct job job;
    struct stat status;
    struct error err = ERROR_INIT;
    char *path;
    create(&job);
    end_shard(start_shard());
    path = job_path(&job, "ps:0", ".err");
    close(open(path, O_CREAT | O_WRONLY, 0600));
    mem_free(path);
    path = job_path(&job, "", "key");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(status.st_size, 65);
    mem_free(path);
    path = job_path(&job, "ps:0", ".link"); /* left by a killed listener */
    assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
    mem_free(path);
    assert_true(exists("ps-0.pid") && exists("cluster") && exists("ps-0.link"));
    assert_int_equal(job_end(folder, &err), 0);
    assert_false(exists("ps-0.link"));
    assert_false(exists("ps-0.pid") || exists("cluster") || exists("key") || exists("ps-0.starts"));
    assert_true(exists("ps-0.err"));
    job_close(&job);
}

static void a_job_killed_as_it_was_made_is_ended(void **unused)
{
    (void)unused;
    struct job job;
    struct error err = ERROR_INIT;
    char wanted[256];
    create(&job);
    assert_int_equal(unlinkat(job.fd, "cluster", 0), 0);
    job_close(&job);
    assert_int_equal(job_end(folder, &err), 0);
    assert_false(exists("key"));
    snprintf(wanted, sizeof wanted, "job directory %s: no job runs there (no cluster file)",
             folder);
    unit_assert_error(job_end(folder, &err), err, ERR_NOINPUT, wanted);
}

static void folders_that_are_no_job(void **unused)
{
    (void)unused;
    struct job job;
    struct error err = ERROR_INIT;
    char wanted[256];
    snprintf(wanted, sizeof wanted, "job directory %s: no job runs there (no cluster file)",
             folder);
    unit_assert_error(job_open(&job, folder, &err), err, ERR_NOINPUT, wanted);
    unit_assert_error(job_open(&job, "/no/such/job", &err), err, ERR_NOINPUT,
                      "job directory /no/such/job: No such file or directory");
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(wanted, sizeof wanted, "job directory %s is open to others: chmod 700 %s", folder,
             folder);
    unit_assert_error(job_create(&job, folder, cluster_text, &err), err, ERR_DENIED, wanted);
}

/* Tasks that publish at the same time lose nothing. */
static void all_publish_at_once(void **unused)
{
    (void)unused;
    struct job job;
    struct cluster cluster = {0};
    struct error err = ERROR_INIT;
    char all[1024] = "", task[32], address[32];
    for (int i = 0; i < 8; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "task ps:%d 127.0.0.1:0\n", i);
    assert_int_equal(job_create(&job, folder, all, &err), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(task, sizeof task, "ps:%d", i);
        snprintf(address, sizeof address, "127.0.0.1:%d", 7000 + i);
        struct job mine;
        if (!fork())
            _exit(job_open(&mine, folder, &err) || job_publish(&mine, task, address, &err));
    }
    for (int i = 0; i < 8; i++) {
        int status;
        assert_true(wait(&status) > 0 && !status);
    }
    assert_int_equal(job_cluster(&job, &cluster, &err), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(address, sizeof address, "127.0.0.1:%d", 7000 + i);
        assert_string_equal(cluster_find(&cluster, "ps", i)->address, address);
    }
    cluster_release(&cluster);
    job_close(&job);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(addresses_are_published),
        in_folder(only_the_address_is_changed),
        in_folder(what_was_killed_is_recognised),
        in_folder(who_takes_its_place_is_not_there_yet),
        in_folder(an_ended_job_leaves_what_it_wrote),
        in_folder(a_job_killed_as_it_was_made_is_ended),
        in_folder(folders_that_are_no_job),
        in_folder(all_publish_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
