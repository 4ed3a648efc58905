/* SPDX-License-Identifier: Apache-2.0
 *
 * Cluster files: their contents, and the errors of wrong ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/cluster.h"
#include "lib/unit.h"

static void test_tasks_and_links(void **state)
{
    (void)state;
    struct cluster c = {0};
    struct error err = ERROR_INIT;
    if (cluster_parse(&c,
                      "# two shards, one worker\n\n"
                      "task ps:0 127.0.0.1:7000 device=CPU:0 memory=1G # the first\n"
                      "task\tworker:0  [::1]:0  device=CPU:1,CUDA speed=2.5\r\n"
                      "task ps:1 unix:shard\n"
                      "link * * bandwidth=2G latency=50us\n"
                      "link ps:* worker:0 latency=1ms\n"
                      "link ps:0 ps:1 bandwidth=100",
                      "c", &err))
        fail_msg("%s", err.text);
    assert_int_equal(c.tasks.n, 3);
    assert_int_equal(c.devices.n, 4);
    const struct cluster_task *ps0 = cluster_find(&c, "ps", 0), *ps1 = cluster_find(&c, "ps", 1);
    const struct cluster_task *worker = cluster_find(&c, "worker", 0);
    assert_int_equal(ps0->memory_bytes, 1 << 30);
    assert_string_equal(ps1->address, "unix:shard");
    assert_int_equal(ps1->memory_bytes, 0);
    assert_int_equal(worker->n_devices, 2);
    assert_true(worker->speed == 2.5);
    assert_string_equal(c.devices.items[worker->first_device + 1].type, "CUDA");
    assert_int_equal(c.devices.items[worker->first_device + 1].index, 0);
    assert_int_equal(cluster_count(&c, "ps"), 2);
    assert_int_equal(cluster_count(&c, "chief"), 0);
    assert_null(cluster_find(&c, "worker", 1));
    /* The last line about two tasks counts, in both directions. */
    assert_true(cluster_link(&c, ps0, ps1).bandwidth == 100);
    assert_true(cluster_link(&c, worker, ps1).latency == 1e-3);
    assert_true(cluster_link(&c, ps1, worker).latency == 1e-3);
    assert_true(cluster_link(&c, worker, worker).bandwidth == 2147483648.0);
    cluster_release(&c);
}

static const struct cluster_host *host_of(const struct cluster *c, const char *job, int index)
{
    return &c->hosts.items[cluster_find(c, job, index)->host];
}

static void test_hosts(void **state)
{
    (void)state;
    struct cluster c = {0};
    struct error err = ERROR_INIT;
    if (cluster_parse(&c,
                      "host far bandwidth=10M cores=4\n"
                      "task ps:0 10.0.0.1:7000\n"
                      "task ps:1 [10::1]:7000\n"
                      "task worker:0 10.0.0.1:7001\n"
                      "task worker:1 10.0.0.2:7001 host=far\n"
                      "task worker:2 unix:w\n"
                      "task worker:3 127.0.0.1:1\n"
                      "task worker:4 [::1]:1\n"
                      "task worker:5 localhost:2\n"
                      "host localhost bandwidth=20M within=rack\n"
                      "host rack cores=6\n"
                      "link host=localhost host=10.0.0.1 bandwidth=5M latency=1ms\n"
                      "link worker:3 ps:0 bandwidth=6M\n",
                      "c", &err))
        fail_msg("%s", err.text);
    assert_string_equal(host_of(&c, "ps", 0)->name, "10.0.0.1");
    assert_string_equal(host_of(&c, "ps", 1)->name, "10::1");
    assert_ptr_equal(host_of(&c, "worker", 0), host_of(&c, "ps", 0));
    assert_string_equal(host_of(&c, "worker", 1)->name, "far");
    assert_int_equal(host_of(&c, "worker", 1)->cores, 4);
    assert_int_equal(host_of(&c, "ps", 0)->cores, 0);
    for (int i = 2; i < 6; i++)
        assert_string_equal(host_of(&c, "worker", i)->name, "localhost");
    const struct cluster_host *rack =
        &c.hosts.items[cluster_machine(&c, cluster_find(&c, "worker", 2)->host)];
    assert_string_equal(rack->name, "rack");
    assert_int_equal(rack->cores, 6);
    int own = cluster_find(&c, "worker", 1)->host;
    assert_int_equal(cluster_machine(&c, own), own);
    const struct cluster_task *ps = cluster_find(&c, "ps", 0);
    const struct cluster_task *far = cluster_find(&c, "worker", 1);
    const struct cluster_task *here = cluster_find(&c, "worker", 2);
    /* A link of hosts holds for all their tasks, in both directions; later lines still count. */
    assert_true(cluster_link(&c, here, ps).latency == 1e-3);
    assert_true(cluster_link(&c, ps, here).bandwidth == 5 << 20);
    assert_true(cluster_link(&c, cluster_find(&c, "worker", 3), ps).bandwidth == 6 << 20);
    /* Without a link: the hosts' adapters limit it; within one host nothing changes. */
    assert_true(cluster_link(&c, here, far).bandwidth == 10 << 20);
    assert_true(cluster_link(&c, far, ps).bandwidth == 10 << 20);
    assert_true(cluster_link(&c, here, cluster_find(&c, "worker", 5)).bandwidth == 1e9);
    assert_true(cluster_link(&c, ps, cluster_find(&c, "ps", 1)).bandwidth == 1e9);
    cluster_release(&c);
}

/* The last line with a key counts; a task's memory and speed are for devices without their own. */
static void test_devices(void **state)
{
    (void)state;
    struct cluster c = {.arena = ARENA_INIT};
    struct error err = ERROR_INIT;
    if (cluster_parse(&c,
                      "task worker:0 a:1 device=CPU:0,GPU:0,GPU:1 memory=1G speed=2\n"
                      "task worker:1 b:1 device=GPU:0\n"
                      "device * GPU memory=80G bus=24G operations=5e13\n"
                      "device worker:0 GPU:1 memory=40G speed=3\n"
                      "device host=b GPU:0 bandwidth=2e12\n",
                      "c", &err))
        fail_msg("%s", err.text);
    static const struct {
        const char *device;
        int64_t memory;
        double speed, bus, bandwidth;
    } cases[] = {
        {"/job:worker/task:0/device:CPU:0", 1, 2, 0, 0},
        {"/job:worker/task:0/device:GPU:0", 80, 2, 24, 0},
        {"/job:worker/task:0/device:GPU:1", 40, 3, 24, 0},
        {"/job:worker/task:1/device:GPU:0", 80, 1, 24, 2e12},
        {"/job:ps/task:0/device:GPU:0", 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct device_name name;
        assert_int_equal(device_name_parse(&name, cases[i].device, &err), 0);
        struct device_facts facts = cluster_facts(&c, &name);
        assert_true(facts.memory_bytes == cases[i].memory << 30);
        assert_true(facts.speed == cases[i].speed && facts.bus == cases[i].bus * (1 << 30));
        assert_true(facts.bandwidth == cases[i].bandwidth);
        assert_true(facts.operations == (facts.bus > 0 ? 5e13 : 0));
    }
    cluster_release(&c);
}

static void fails(const char *text, const char *message)
{
    struct cluster c = {0};
    struct error err = ERROR_INIT;
    int code = cluster_parse(&c, text, "c", &err);
    unit_assert_error(code, err, ERR_CONFIG, message);
    cluster_release(&c);
}

#define PS "task ps:0 h:1\n"

static void test_what_is_wrong(void **state)
{
    (void)state;
    fails(PS "device ps:0 GPU\n", "c:2: a device needs its task, its name, and what it has");
    fails(PS "device ps GPU bus=1G\n", "c:2: 'ps' is not a task, as worker:0 is");
    fails(PS "device ps:0 a/b bus=1G\n", "c:2: 'a/b' is not a device, as GPU:0 is, or a type");
    fails(PS "device ps:0 GPU bus=0\n", "c:2: bus=0: not bytes a second, as 24G is");
    fails(PS "device ps:0 GPU operations=-1\n", "c:2: operations=-1: not a positive number");
    fails(PS "device ps:0 GPU cores=1\n",
          "c:2: a device has memory, speed, operations, bandwidth and bus, not 'cores'");
    fails("# nothing\n", "c: no task");
    fails(PS "tusk ps:1 h:1\n", "c:2: 'tusk' is none of task, host, device and link");
    fails("task ps:0\n", "c:1: a task needs a name and an address");
    fails("task ps h:1\n", "c:1: 'ps' is not a task, as worker:0 is");
    fails("task ps:-1 h:1\n", "c:1: 'ps:-1' is not a task, as worker:0 is");
    fails("task ps:* h:1\n", "c:1: 'ps:*' is not a task, as worker:0 is");
    fails("task p/s:0 h:1\n", "c:1: 'p/s' is not the name of a job");
    fails("task :0 h:1\n", "c:1: '' is not the name of a job");
    fails("task ps:0 h:65536\n", "c:1: 'h:65536' is not an address: HOST:PORT or unix:NAME");
    fails("task ps:0 unix:\n", "c:1: 'unix:' is not an address: HOST:PORT or unix:NAME");
    fails(PS PS, "c:2: task ps:0 is given twice");
    fails(PS "task ps:2 h:1\n", "c: job ps has 2 tasks, but one is ps:2");
    fails("task ps:0 h:1 device=CPU:0,CPU:0\n", "c:1: device=CPU:0: is given twice");
    fails("task ps:0 h:1 device=CPU:0/task:1\n",
          "c:1: device=CPU:0/task:1: not a device, as CPU:0 is");
    fails("task ps:0 h:1 device=\n", "c:1: device=: not a device, as CPU:0 is");
    fails("task ps:0 h:1 memory=0\n", "c:1: memory=0: not a size, as 1G is");
    fails("task ps:0 h:1 speed=nan\n", "c:1: speed=nan: not a positive number");
    fails("task ps:0 h:1 fast\n", "c:1: 'fast' is not key=value");
    fails("task ps:0 h:1 fast=1\n", "c:1: a task has device, host, memory and speed, not 'fast'");
    fails("task ps:0 h:1 host=\n", "c:1: host=: no name");
    fails(PS "host h\n", "c:2: a host needs a name, and bandwidth, cores or within");
    fails(PS "host h bandwidth\n", "c:2: 'bandwidth' is not key=value");
    fails(PS "host h bandwidth=0\n", "c:2: bandwidth=0: not bytes a second, as 100M is");
    fails(PS "host h cores=0\n", "c:2: cores=0: not a number of cores");
    fails(PS "host h size=1\n", "c:2: a host has bandwidth, cores and within, not 'size'");
    fails(PS "host h cores=1\nhost h cores=2\n", "c:3: host h is given twice");
    fails(PS "host g cores=1\n", "c: no task is on host g");
    fails(PS "host h within=\n", "c:2: within=: not another host");
    fails(PS "host h within=h\n", "c:2: within=h: not another host");
    fails(PS "host h within=g\nhost h cores=1\n", "c:3: host h is given twice");
    fails(PS "host g within=h\n", "c: no task is on host g");
    fails(PS "host h within=g cores=2\n", "c: host h has the cores of g, and none of its own");
    fails(PS "host h within=g\nhost g within=f\n",
          "c: host h is within g, which is within another");
    fails(PS "link host=g host=h latency=1ms\n", "c: no task is on host g");
    fails(PS "link ps:0 wroker:0 latency=1ms\n", "c: a link of wroker:0, which is no task");
    fails(PS "link ps:7 ps:0 latency=1ms\n", "c: a link of ps:7, which is no task");
    fails(PS "link worker:* * latency=1ms\n", "c: a link of worker:*, of which there is no task");
    fails(PS "device ps:1 GPU bus=1G\n", "c: a device of ps:1, which is no task");
    fails(PS "link * *\n", "c:2: a link needs two tasks or hosts, and bandwidth or latency");
    fails(PS "link * p bandwidth=1\n", "c:2: 'p' is not a task, as worker:0 is");
    fails(PS "link * * bandwidth=0\n", "c:2: bandwidth=0: not bytes a second, as 2G is");
    fails(PS "link * * latency=-1s\n", "c:2: latency=-1s: not a time, as 50us is");
    fails(PS "link * * hops=1\n", "c:2: a link has bandwidth and latency, not 'hops'");
}

static void test_files(void **state)
{
    (void)state;
    struct cluster c = {0};
    struct error err = ERROR_INIT;
    char name[] = "/tmp/tf-cluster-XXXXXX";
    assert_int_equal(cluster_read(&c, "/nonexistent/c", &err), ERR_NOINPUT);
    int fd = mkstemp(name);
    assert_int_equal(write(fd, PS, strlen(PS)), strlen(PS));
    assert_int_equal(cluster_read(&c, name, &err), 0);
    cluster_release(&c);
    memset(&c, 0, sizeof c);
    assert_int_equal(write(fd, "\0", 1), 1); /* not text */
    assert_int_equal(cluster_read(&c, name, &err), ERR_CONFIG);
    cluster_release(&c);
    close(fd);
    unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_and_links), cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_devices),         cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
