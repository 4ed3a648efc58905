/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket: each request gets a reply, whatever other clients do, and no client holds up
 * the supervisor.
 */
#include "supervise/control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "lib/unit.h"

#define PATIENCE 20.0 /* seconds */

struct lab {
    char folder[512];
    struct control control;
    struct str large;
    char asked[256]; /* requests, in order */
};

static const char *reply(void *context, const char *request)
{
    struct lab *lab = context;
    size_t n = strlen(lab->asked);
    snprintf(lab->asked + n, sizeof lab->asked - n, "%s ", request);
    return !strcmp(request, "status")  ? "fine\n"
           : !strcmp(request, "large") ? lab->large.data
           : !strcmp(request, "stop")  ? NULL
                                       : "";
}

static void open_lab(struct lab *lab, int n_long)
{
    struct error err = ERROR_INIT;
    memset(lab, 0, sizeof *lab);
    snprintf(lab->folder, sizeof lab->folder, "/tmp/tf-control-XXXXXX");
    assert_non_null(mkdtemp(lab->folder));
    for (int i = 0; i < n_long; i++) { /* nested folders with names of 60 characters */
        size_t n = strlen(lab->folder);
        snprintf(lab->folder + n, sizeof lab->folder - n, "/%060d", i);
        assert_int_equal(mkdir(lab->folder, 0700), 0);
    }
    if (control_open(&lab->control, lab->folder, &err))
        fail_msg("%s", err.text);
}

static void close_lab(struct lab *lab)
{
    control_close(&lab->control, "the end\n");
    control_remove(lab->folder);
    for (char *end; rmdir(lab->folder) == 0 && (end = strrchr(lab->folder, '/')) > lab->folder + 4;)
        *end = '\0';
    str_release(&lab->large);
}

static void serve_for(struct lab *lab, double seconds)
{
    for (double until = time_now() + seconds; time_now() < until;) {
        control_wait(&lab->control, -1, 0.01);
        control_serve(&lab->control, reply, lab);
    }
}

/* ---- clients that behave ---- */

struct inquiry {
    const char *folder, *request;
    struct str reply;
    int code;
    atomic_bool done;
    pthread_t thread;
};

static void *ask(void *argument)
{
    struct inquiry *asking = argument;
    asking->code = control_ask(asking->folder, asking->request,
                               &(struct control_patience){.seconds = -1}, &asking->reply);
    atomic_store(&asking->done, true);
    return NULL;
}

static void begin_asking(struct inquiry *asking, const struct lab *lab, const char *request)
{
    memset(asking, 0, sizeof *asking);
    asking->folder = lab->folder;
    asking->request = request;
    assert_int_equal(pthread_create(&asking->thread, NULL, ask, asking), 0);
}

static void end_asking(struct inquiry *asking, int code, const char *text)
{
    pthread_join(asking->thread, NULL);
    assert_int_equal(asking->code, code);
    assert_string_equal(str_text(&asking->reply), text);
    str_release(&asking->reply);
}

static void expect(struct lab *lab, const char *request, int code, const char *text)
{
    struct inquiry asking;
    begin_asking(&asking, lab, request);
    for (double until = time_now() + PATIENCE; !atomic_load(&asking.done) && time_now() < until;)
        serve_for(lab, 0.01);
    assert_true(atomic_load(&asking.done));
    end_asking(&asking, code, text);
}

/* ---- and others ---- */

static int connect_to(const struct lab *lab)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/control", lab->folder);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static bool has_ended(int fd)
{
    char bytes[64];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

static void test_requests_are_answered(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab, 0);
    expect(&lab, "status", 0, "fine\n");
    expect(&lab, "status", 0, "fine\n");
    expect(&lab, "nonsense", ERR_UNAVAILABLE, "");
    assert_string_equal(lab.asked, "status status nonsense ");
    close_lab(&lab);
    struct str none = STR_INIT;
    assert_int_equal(
        control_ask("/nowhere", "status", &(struct control_patience){.seconds = 1}, &none),
        ERR_NOINPUT);
    str_release(&none);
}

static void test_who_waits_for_the_end_hears_of_it(void **state)
{
    struct inquiry first, second;
    struct lab lab;
    (void)state;
    open_lab(&lab, 0);
    begin_asking(&first, &lab, "stop");
    begin_asking(&second, &lab, "stop");
    while (strcmp(lab.asked, "stop stop ") != 0)
        serve_for(&lab, 0.01);
    expect(&lab, "status", 0, "fine\n");
    int gone = connect_to(&lab); /* a client that left meanwhile loses its place */
    say(gone, "stop\n");
    serve_for(&lab, 0.05);
    close(gone);
    serve_for(&lab, 0.05);
    int taken = 0;
    for (int i = CONTROL_FIRST; i < CONTROL_END; i++)
        taken += lab.control.polls[i].fd >= 0;
    assert_int_equal(taken, 2);
    assert_false(atomic_load(&first.done) || atomic_load(&second.done));
    close_lab(&lab);
    end_asking(&first, 0, "the end\n");
    end_asking(&second, 0, "the end\n");
}

static void test_nobody_holds_it_up(void **state)
{
    int silent[100], half, babbler, mute;
    struct lab lab;
    (void)state;
    open_lab(&lab, 0);
    half = connect_to(&lab);
    say(half, "sta");
    serve_for(&lab, 0.05);
    say(half, "tus\nstop\n"); /* one request per connection */
    serve_for(&lab, 0.05);
    assert_string_equal(lab.asked, "status ");
    assert_true(has_ended(half));
    babbler = connect_to(&lab);
    say(babbler, "a line that is longer than any request is");
    serve_for(&lab, 0.05);
    assert_true(has_ended(babbler));
    mute = connect_to(&lab);
    close(mute); /* before it was read */
    for (int i = 0; i < 100; i++)
        silent[i] = connect_to(&lab);
    double began = time_now();
    expect(&lab, "status", 0, "fine\n");
    assert_true(time_now() < began + CONTROL_SECONDS / 2);
    int kept = 0;
    for (int i = 0; i < 100; i++)
        kept += !has_ended(silent[i]);
    assert_true(kept <= CONTROL_CLIENTS);
    serve_for(&lab, CONTROL_SECONDS + 0.2);
    for (int i = 0; i < 100; i++) {
        assert_true(has_ended(silent[i]));
        close(silent[i]);
    }
    close(half);
    close(babbler);
    assert_string_equal(lab.asked, "status status ");
    close_lab(&lab);
}

static void test_when_all_wait_for_the_end_others_wait_for_a_place(void **state)
{
    int waiting[CONTROL_CLIENTS];
    struct inquiry one;
    struct lab lab;
    (void)state;
    open_lab(&lab, 0);
    for (int i = 0; i < CONTROL_CLIENTS; i++) {
        waiting[i] = connect_to(&lab);
        say(waiting[i], "stop\n");
    }
    serve_for(&lab, 0.1);
    begin_asking(&one, &lab, "status");
    double began = time_now();
    control_wait(&lab.control, -1, 0.3); /* and does not wake without cause */
    assert_true(time_now() > began + 0.2);
    assert_false(atomic_load(&one.done));
    close(waiting[3]);
    while (!atomic_load(&one.done))
        serve_for(&lab, 0.01);
    end_asking(&one, 0, "fine\n");
    close_lab(&lab);
    for (int i = 0; i < CONTROL_CLIENTS; i++)
        if (i != 3)
            close(waiting[i]);
}

static void test_a_long_reply_waits_for_who_reads_it(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab, 0);
    memset(str_extend(&lab.large, 3 << 20), 'x', 3 << 20);
    str_append_char(&lab.large, '\n');
    int mute = connect_to(&lab);
    say(mute, "large\n");
    serve_for(&lab, 0.1);
    expect(&lab, "large", 0, lab.large.data);
    expect(&lab, "status", 0, "fine\n");
    close(mute);
    close_lab(&lab);
}

static void test_a_path_may_be_long(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab, 6);
    assert_true(strlen(lab.folder) > 300);
    expect(&lab, "status", 0, "fine\n");
    close_lab(&lab);
}

static void test_what_another_one_left_is_replaced_a_file_is_not(void **state)
{
    char path[600];
    struct error err = ERROR_INIT;
    struct control second;
    struct stat there;
    struct str none = STR_INIT;
    struct lab lab;
    (void)state;
    open_lab(&lab, 0);
    snprintf(path, sizeof path, "%s/control", lab.folder);
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(there.st_mode & 0777, 0600);
    control_close(&lab.control, "");
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(
        control_ask(lab.folder, "status", &(struct control_patience){.seconds = 1}, &none),
        ERR_NOINPUT);
    assert_int_equal(control_open(&lab.control, lab.folder, &err), 0);
    expect(&lab, "status", 0, "fine\n");
    assert_int_equal(unlink(path), 0);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(control_open(&second, lab.folder, &err), ERR_IO);
    control_wait(&second, -1, 0);
    control_serve(&second, reply, &lab);
    control_close(&second, "");
    control_remove(lab.folder);
    assert_int_equal(unlink(path), 0);
    close_lab(&lab);
    str_release(&none);
}

static void test_it_waits_for_another_descriptor_too(void **state)
{
    struct error err = ERROR_INIT;
    struct control control;
    int ends[2];
    (void)state;
    assert_int_equal(control_open(&control, NULL, &err), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    double began = time_now();
    control_wait(&control, ends[0], 0.1);
    assert_true(time_now() >= began + 0.09);
    assert_int_equal(write(ends[1], "x", 1), 1);
    control_wait(&control, ends[0], PATIENCE);
    control_serve(&control, reply, NULL);
    assert_true(time_now() < began + PATIENCE / 2);
    control_close(&control, "");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_answered),
        cmocka_unit_test(test_who_waits_for_the_end_hears_of_it),
        cmocka_unit_test(test_nobody_holds_it_up),
        cmocka_unit_test(test_when_all_wait_for_the_end_others_wait_for_a_place),
        cmocka_unit_test(test_a_long_reply_waits_for_who_reads_it),
        cmocka_unit_test(test_a_path_may_be_long),
        cmocka_unit_test(test_what_another_one_left_is_replaced_a_file_is_not),
        cmocka_unit_test(test_it_waits_for_another_descriptor_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
