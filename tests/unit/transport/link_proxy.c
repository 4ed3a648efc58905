/* SPDX-License-Identifier: Apache-2.0
 *
 * Links through a relay that delays, damages, cuts or starves: records arrive whole, or the link
 * ends with a reason, in time.
 */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/time.h"
#include "lib/links.h"

#define LEASE 1.0 /* longer than a busy machine suspends a thread */

struct relay {
    pid_t pid;
    int hold; /* the relay ends when this is closed */
    char address[300];
};

/* The program lies in ../../lib beside this one. */
static void relay_path(char path[600])
{
    char self[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    snprintf(path, 600, "%s/../../lib/proxy", dirname(self));
}

static void relay_start(struct relay *relay, const char *target, const char *options)
{
    int in[2], out[2];
    char path[600], copy[200], *arguments[20] = {path}, *rest = copy;
    int n = 1;
    relay_path(path);
    snprintf(copy, sizeof copy, "%s", options);
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            arguments[n++] = word;
    arguments[n++] = (char *)"127.0.0.1:0";
    arguments[n++] = (char *)(uintptr_t)target;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    relay->pid = fork();
    if (!relay->pid) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execv(path, arguments);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    relay->hold = in[1];
    ssize_t got = read(out[0], relay->address, sizeof relay->address - 1);
    assert_true(got > 1);
    relay->address[got - 1] = '\0';
    close(out[0]);
}

static void relay_stop(struct relay *relay)
{
    int status;
    close(relay->hold);
    assert_int_equal(waitpid(relay->pid, &status, 0), relay->pid);
    assert_int_equal(status, 0);
}

struct scene {
    struct end server, client;
    struct relay relay;
    char folder[64], key[128];
};

static struct peers_options options_of(const struct scene *scene, const char *task, bool tls)
{
    return (struct peers_options){.task = task,
                                  .producer = "test",
                                  .key_file = tls ? scene->key : NULL,
                                  .no_key = !tls,
                                  .sums = !tls,
                                  .hello = 0.5,
                                  .lease = LEASE};
}

/* The client dials the server through the relay. Returns 0, or the error's code. */
static int scene_start(struct scene *scene, const char *faults, bool tls, double seconds)
{
    struct error err = ERROR_INIT;
    end_folder(scene->folder);
    snprintf(scene->key, sizeof scene->key, "%s/key", scene->folder);
    int fd = open(scene->key, O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 64; i++)
        assert_int_equal(write(fd, "7", 1), 1);
    close(fd);
    end_serve(&scene->server, options_of(scene, "ps:0", tls), "127.0.0.1:0");
    relay_start(&scene->relay, scene->server.at.text, faults);
    struct peers_options options = options_of(scene, "worker:0", tls);
    end_start(&scene->client, &options);
    must(peers_connect(scene->client.peers, "ps:0", scene->relay.address, seconds, &err), &err);
    int status = peers_wait(scene->client.peers, &err);
    scene->client.why = err;
    return status;
}

static void scene_stop(struct scene *scene)
{
    end_stop(&scene->client);
    relay_stop(&scene->relay);
    end_stop(&scene->server);
    unlink(scene->key);
    rmdir(scene->folder);
}

static void make_large(struct named_tensor *x)
{
    x->name = "x";
    make_tensor(&x->tensor, FLOAT32, &(struct shape){.rank = 1, .dims = {200000}});
}

/* Sends some requests with tensors, which come back equal. */
static void exchange(struct end *client)
{
    struct named_tensor x;
    make_large(&x);
    for (int i = 0; i < 5; i++) {
        end_request(client, i, &x, 1);
        assert_true(end_pump(client, end_has_records, i + 1, 10));
        assert_true(tensor_equal(&client->kept.tensor, &x.tensor));
    }
    assert_int_equal(client->n_closed, 0);
    tensor_release(&x.tensor);
}

static void test_harmless(void **state)
{
    (void)state;
    static const char *const options[] = {"", "-w 20", "-d down -w 20"};
    for (int i = 0; i < 6; i++) {
        struct scene scene;
        assert_int_equal(scene_start(&scene, options[i / 2], i % 2, 10), 0);
        exchange(&scene.client);
        scene_stop(&scene);
    }
}

/* A flipped bit: on the way to the server, the server notices it, and tells the client. */
static void flip(unsigned at, bool down, bool tls)
{
    struct scene scene;
    struct named_tensor x;
    char options[64];
    snprintf(options, sizeof options, "-a %u -f %u%s", at, at % 8, down ? " -d down" : "");
    assert_int_equal(scene_start(&scene, options, tls, 5), 0);
    make_large(&x);
    end_request(&scene.client, 1, &x, 1);
    assert_true(end_pump(&scene.client, end_has_closed, 1, 5));
    assert_int_equal(scene.client.n_records, 0);
    assert_int_equal(scene.client.why.code, tls ? ERR_UNAVAILABLE : ERR_DATA);
    if (!tls)
        assert_non_null(strstr(scene.client.why.text, "damaged: "));
    scene_stop(&scene);
    tensor_release(&x.tensor);
    assert_int_equal(scene.server.n_records, down);
}

static void test_damage(void **state)
{
    (void)state;
    static const unsigned at[] = {500, 1000, 4001, 100003, 500005, 799999};
    for (int i = 0; i < 6; i++) {
        flip(at[i], false, false);
        flip(at[i], true, false);
    }
    flip(5000, false, true);
    flip(5000, true, true);
}

static void test_cut(void **state)
{
    (void)state;
    struct scene scene;
    struct named_tensor x;
    assert_int_equal(scene_start(&scene, "-c -a 300000", false, 5), 0);
    make_large(&x);
    double start = time_now();
    end_request(&scene.client, 1, &x, 1);
    assert_true(end_pump(&scene.client, end_has_closed, 1, 5));
    assert_true(time_now() - start < 4);
    assert_int_equal(scene.client.why.code, ERR_UNAVAILABLE);
    assert_true(strstr(scene.client.why.text, ": connection closed") ||
                strstr(scene.client.why.text, ": connection reset") ||
                strstr(scene.client.why.text, ": broken pipe"));
    scene_stop(&scene);
    assert_int_equal(scene.server.n_records, 0);
    tensor_release(&x.tensor);
}

/* Before the link is open, the relay is too slow, or silent. */
static void test_no_hello(void **state)
{
    (void)state;
    static const char *const options[] = {"-t", "-d down -t", "-n", "-d down -n"};
    for (int i = 0; i < 4; i++) {
        struct scene scene;
        double start = time_now();
        assert_int_equal(scene_start(&scene, options[i], i % 2, 0.9), ERR_UNAVAILABLE);
        assert_true(time_now() - start < 4.5);
        assert_non_null(strstr(scene.client.why.text, "gave up after 0.9 s"));
        assert_int_equal(scene.client.n_opened, 0);
        scene_stop(&scene);
    }
}

/* One direction of an open link dies: both sides notice within the lease, whichever it is. */
static void starve(const char *options)
{
    struct scene scene;
    struct named_tensor x;
    assert_int_equal(scene_start(&scene, options, false, 5), 0);
    make_large(&x);
    double start = time_now();
    for (int i = 0; i < 20; i++) /* few enough for the buffers: pings stop, too */
        end_request(&scene.client, i, &x, 1);
    assert_true(end_pump(&scene.client, end_has_closed, 1, 10));
    assert_true(time_now() - start < 3 * LEASE + 2); /* the other side may notice first */
    assert_int_equal(scene.client.why.code, ERR_UNAVAILABLE);
    scene_stop(&scene);
    assert_int_equal(scene.server.n_closed, 1);
    tensor_release(&x.tensor);
}

static void test_one_direction(void **state)
{
    (void)state;
    starve("-n -a 400000");
    starve("-s -a 400000");
    starve("-d down -n -a 400000");
    starve("-d down -t -a 400000");
}

int main(void)
{
    signal(SIGPIPE, SIG_DFL); /* no test may depend on it */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_harmless),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_cut),           cmocka_unit_test(test_no_hello),
        cmocka_unit_test(test_one_direction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
