/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that are no peers: each kind is refused with its reason, counted, and harms no link.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/time.h"
#include "lib/links.h"

static char folder[64];
static char key_a[128], key_b[128];

static void write_key(char path[128], const char *name, char digit)
{
    snprintf(path, 128, "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    char text[65];
    memset(text, digit, 64);
    text[64] = '\n';
    assert_int_equal(write(fd, text, 65), 65);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    end_folder(folder);
    write_key(key_a, "a", 'a');
    write_key(key_b, "b", 'b');
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(key_a);
    unlink(key_b);
    return rmdir(folder);
}

static struct peers_options options_of(const char *task, const char *key)
{
    return (struct peers_options){
        .task = task, .producer = "test", .key_file = key, .no_key = !key, .hello = 0.3};
}

static void check_alive(struct end *server, const char *key)
{
    struct peers_options options = options_of("", key);
    struct named_tensor x = {.name = "x"};
    struct end client;
    make_tensor(&x.tensor, FLOAT32, &(struct shape){.rank = 1, .dims = {100000}});
    end_start(&client, &options);
    end_connect(&client, server, "ps:0");
    end_request(&client, 7, &x, 1);
    assert_true(end_pump(&client, end_has_records, 1, 10));
    assert_true(tensor_equal(&client.kept.tensor, &x.tensor));
    tensor_release(&x.tensor);
    end_stop(&client);
}

/* Checks a client that is refused: the code of its error, and a part of the text. */
static void refused(struct end *server, struct peers_options options, int code, const char *text)
{
    struct error err = ERROR_INIT;
    struct end client;
    end_start(&client, &options);
    must(peers_connect(client.peers, "ps:0", end_address(server), 0.5, &err), &err);
    int status = peers_wait(client.peers, &err);
    if (status != code || !strstr(err.text, text))
        fail_msg("%d: %s", status, err.text);
    assert_int_equal(strncmp(err.text, "ps:0 at 127.0.0.1:", 18), 0);
    assert_int_equal(client.n_failed, 1);
    assert_int_equal(client.n_opened, 0);
    end_stop(&client);
}

static void test_tls(void **state)
{
    (void)state;
    struct end server;
    end_serve(&server, options_of("ps:0", key_a), "127.0.0.1:0");
    for (int i = 0; i < 3; i++)
        check_alive(&server, key_a);
    end_stop(&server);
    assert_int_equal(server.n_opened, 3);
}

static void test_wrong_key(void **state)
{
    (void)state;
    struct end server;
    end_serve(&server, options_of("ps:0", key_a), "127.0.0.1:0");
    refused(&server, options_of("worker:0", key_b), ERR_DENIED,
            "/b is not the key of this cluster");
    refused(&server, options_of("worker:0", NULL), ERR_CONFIG, "a key is needed there");
    check_alive(&server, key_a);
    assert_int_equal(peers_refused(server.peers), 2);
    end_stop(&server);
    end_serve(&server, options_of("ps:0", NULL), "127.0.0.1:0");
    refused(&server, options_of("worker:0", key_a), ERR_PROTOCOL,
            "no TLS there: the other side has no key");
    check_alive(&server, NULL);
    assert_int_equal(peers_refused(server.peers), 1);
    end_stop(&server);
}

static void key_error(const char *path, int code, const char *text)
{
    struct error err = ERROR_INIT;
    struct loop *loop = loop_new(&err);
    struct peers_options options = options_of("ps:0", path);
    struct peers_handler handler = {0};
    assert_null(peers_new(loop, &options, &handler, &err));
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.text, text));
    loop_free(loop);
}

static void test_key_files(void **state)
{
    (void)state;
    char path[128];
    write_key(path, "c", 'c');
    chmod(path, 0640);
    key_error(path, ERR_DENIED, "others may read this key");
    write_key(path, "c", 'x');
    chmod(path, 0600);
    key_error(path, ERR_CONFIG, "is no key");
    assert_int_equal(truncate(path, 30), 0);
    key_error(path, ERR_CONFIG, "is no key");
    unlink(path);
    key_error(path, ERR_NOINPUT, "No such file");
}

static void test_listening_needs_a_key(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct peers_options options = options_of("ps:0", NULL);
    struct end end;
    end_start(&end, &options);
    assert_int_equal(peers_listen(end.peers, "0.0.0.0:0", NULL, &err), ERR_CONFIG);
    assert_string_equal(err.text, "0.0.0.0:0: --no-key is for the loopback only");
    end_stop(&end);
    options.no_key = false;
    end_start(&end, &options);
    assert_int_equal(peers_listen(end.peers, "127.0.0.1:0", NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "--key-file FILE is needed"));
    end_stop(&end);
}

static void test_wrong_task(void **state)
{
    (void)state;
    struct end server;
    end_serve(&server, options_of("ps:3", NULL), "127.0.0.1:0");
    refused(&server, options_of("worker:0", NULL), ERR_CONFIG, "'ps:3' is there instead of 'ps:0'");
    end_stop(&server);
}

static int dial_raw(const struct end *server)
{
    int fd = socket(server->at.socket.ss_family, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&server->at.socket, server->at.length),
                     0);
    return fd;
}

/* Sends the bytes, and reads until the server closes; returns the seconds that this took. */
static double close_after(const struct end *server, const void *bytes, size_t n)
{
    char sink[4096];
    int fd = dial_raw(server);
    double start = time_now();
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (poll(&readable, 1, 5000) == 1 && read(fd, sink, sizeof sink) > 0)
        ;
    close(fd);
    return time_now() - start;
}

static void strangers(const char *key)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const uint8_t huge[] = {0xce, 0xff, 0xff, 0xff, 0xff, 0, 0, 0};
    static const uint8_t limit[] = {0xce, 0, 0, 0x10, 0x01, 0, 0, 0};
    struct end server;
    end_serve(&server, options_of("ps:0", key), "127.0.0.1:0");
    assert_true(close_after(&server, http, sizeof http - 1) < 0.2);
    assert_true(close_after(&server, "\x93\x01\x02\x03\x04\x05\x06\x07", 8) < 0.2);
    assert_true(close_after(&server, huge, sizeof huge) < 0.2);
    assert_true(close_after(&server, limit, sizeof limit) < 0.2);
    double silent = close_after(&server, "", 0); /* sends nothing */
    assert_true(silent > 0.25 && silent < 1);
    assert_int_equal(peers_refused(server.peers), 5);
    check_alive(&server, key);
    end_stop(&server);
    assert_int_equal(server.n_opened, 1); /* by check_alive */
    assert_int_equal(server.n_closed, 1);
}

static void test_strangers(void **state)
{
    (void)state;
    strangers(NULL);
    strangers(key_a);
}

static bool has_ended(int fd)
{
    char sink[4096];
    ssize_t n;
    while ((n = recv(fd, sink, sizeof sink, MSG_DONTWAIT)) > 0)
        ;
    return !n || errno != EAGAIN;
}

/* A byte every 50 ms does not postpone the deadline. */
static void test_slow_loris(void **state)
{
    (void)state;
    struct end server;
    uint8_t prefix[5] = {0xce, 0, 0, 0x0f, 0};
    end_serve(&server, options_of("ps:0", NULL), "127.0.0.1:0");
    int fd = dial_raw(&server), sent = 0;
    assert_int_equal(send(fd, prefix, 5, MSG_NOSIGNAL), 5);
    while (sent < 40 && !has_ended(fd) && send(fd, "\xde", 1, MSG_NOSIGNAL) == 1) {
        usleep(50000);
        sent++;
    }
    assert_true(sent >= 4 && sent < 20);
    close(fd);
    check_alive(&server, NULL);
    assert_int_equal(peers_refused(server.peers), 1);
    end_stop(&server);
}

static void test_random_bytes(void **state)
{
    (void)state;
    struct end server;
    uint8_t bytes[600];
    uint64_t seed = 1;
    end_serve(&server, options_of("ps:0", NULL), "127.0.0.1:0");
    for (int i = 0; i < 100; i++) {
        for (size_t j = 0; j < sizeof bytes; j++)
            bytes[j] = (uint8_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 56);
        if (i % 2) /* a right length first */
            memcpy(bytes, "\xce\x00\x00\x02\x00", 5);
        close_after(&server, bytes, sizeof bytes);
    }
    check_alive(&server, NULL);
    assert_int_equal(peers_refused(server.peers), 100);
    end_stop(&server);
}

/* A hello like ours, of another version. */
static void test_wrong_version(void **state)
{
    (void)state;
    struct end server;
    struct str header = STR_INIT;
    char reply[1024];
    end_serve(&server, options_of("ps:0", NULL), "127.0.0.1:0");
    str_append_bytes(&header, "\xce\x00\x00\x00\x00\x85", 6);
    str_append(&header, "\xa4kind\xa5hello\xa5major\x07\xa5minor\x02\xa3job\xa0\xa3sum");
    size_t n = header.n - 5;
    uint64_t sum = hash_bytes(header.data + 5, n, 0);
    str_append_char(&header, (char)0xcf);
    for (int i = 7; i >= 0; i--)
        str_append_char(&header, (char)(sum >> (8 * i)));
    header.data[4] = (char)(n + 9);
    int fd = dial_raw(&server);
    assert_int_equal(send(fd, header.data, header.n, 0), (ssize_t)header.n);
    ssize_t got = recv(fd, reply, sizeof reply, MSG_WAITALL);
    assert_true(got > 0); /* the server's hello, and the reason why it leaves */
    const char *text = "format 7.2, but this program speaks 1.0";
    assert_non_null(memmem(reply, (size_t)got, text, strlen(text)));
    close(fd);
    str_release(&header);
    assert_int_equal(peers_refused(server.peers), 1);
    end_stop(&server);
}

/* At most 256 silent connections are kept: the oldest ones are closed to make room, and links are
 * not affected. */
static void test_too_many(void **state)
{
    (void)state;
    struct peers_options options = options_of("ps:0", NULL);
    struct end server;
    int fds[300];
    options.hello = 60; /* no deadline may make room, however slow the test is */
    end_serve(&server, options, "127.0.0.1:0");
    for (int i = 0; i < 300; i++)
        fds[i] = dial_raw(&server);
    for (int i = 0; i < 1000 && peers_refused(server.peers) < 44; i++)
        usleep(10000);
    for (int i = 0; i < 300; i++)
        close(fds[i]);
    check_alive(&server, NULL);
    assert_true(peers_refused(server.peers) >= 44);
    end_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls),           cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_key_files),     cmocka_unit_test(test_listening_needs_a_key),
        cmocka_unit_test(test_wrong_task),    cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_slow_loris),    cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_wrong_version), cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
