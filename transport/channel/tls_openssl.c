/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS by OpenSSL, in a module of its own. The socket is read and written here and not by OpenSSL,
 * which would raise SIGPIPE and write each record of 16 KiB by itself.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "transport/channel/link_refusal.h"
#include "transport/channel/tls_private.h"

#define IDENTITY "tf-tools"
#define READ_BYTES ((size_t)64 << 10)
#define WRITE_BYTES ((size_t)256 << 10)
#define OUT_BYTES (WRITE_BYTES + ((size_t)32 << 10)) /* including what TLS adds */
#define PLAIN_BYTES ((size_t)16 << 10)               /* in a TLS record */

/* A key encrypts at most this much before it is replaced: far below the limit of AES-GCM (RFC 8446,
 * section 5.5: 2^24.5 records). */
#ifndef REKEY_BYTES
#define REKEY_BYTES ((uint64_t)16 << 30)
#endif

struct tls_context {
    SSL_CTX *ssl;
    BIO_METHOD *method;
    const unsigned char *key; /* TLS_KEY_BYTES, owned by the caller */
    char *name;
};

struct tls_channel {
    struct channel channel;
    struct tls_context *context;
    SSL *ssl;
    pthread_mutex_t lock; /* OpenSSL allows one thread at a time */
    bool server, looked;
    unsigned char out[OUT_BYTES]; /* encrypted, not yet sent: [sent, ready) */
    size_t sent, ready;
    uint64_t encrypted; /* with this key */
    size_t owed; /* encrypted bytes that are not yet reported as written, as they are unsent */
};

/* The last failure in this thread: reading and writing may be concurrent. */
static _Thread_local char failure_text[256];

/* Sends encrypted bytes. Returns false if some are left; errno says why. */
static bool send_ready(struct tls_channel *tls)
{
    while (tls->sent < tls->ready) {
        ssize_t n = send(tls->channel.fd, tls->out + tls->sent, tls->ready - tls->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        tls->sent += (size_t)n;
    }
    tls->sent = tls->ready = 0;
    return true;
}

static int bio_write(BIO *bio, const char *bytes, int n)
{
    struct tls_channel *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if ((size_t)n > OUT_BYTES - tls->ready) {
        BIO_set_retry_write(bio);
        return -1;
    }
    memcpy(tls->out + tls->ready, bytes, (size_t)n);
    tls->ready += (size_t)n;
    return n;
}

static int bio_read(BIO *bio, char *bytes, int n)
{
    struct tls_channel *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got = recv(tls->channel.fd, bytes, (size_t)n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)got;
}

/* Flushing is left to the channel, which knows when the socket has room. */
static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static SSL_SESSION *make_session(SSL *ssl)
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    struct tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    SSL_SESSION *session = SSL_SESSION_new();
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    if (session && cipher && SSL_SESSION_set1_master_key(session, context->key, TLS_KEY_BYTES) &&
        SSL_SESSION_set_cipher(session, cipher) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int use_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *n,
                   SSL_SESSION **session)
{
    (void)digest;
    *identity = (const unsigned char *)IDENTITY;
    *n = sizeof IDENTITY - 1;
    *session = make_session(ssl);
    return *session != NULL;
}

static int find_key(SSL *ssl, const unsigned char *identity, size_t n, SSL_SESSION **session)
{
    *session = NULL;
    if (n == sizeof IDENTITY - 1 && !memcmp(identity, IDENTITY, n))
        *session = make_session(ssl);
    return 1; /* without a session the handshake has no alternative, and fails */
}

static void context_free(void *argument)
{
    struct tls_context *context = argument;
    SSL_CTX_free(context->ssl);
    BIO_meth_free(context->method);
    mem_free(context->name);
    mem_free(context);
}

static bool set_up(struct tls_context *context)
{
    context->ssl = SSL_CTX_new(TLS_method());
    context->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tf-tools");
    if (!context->ssl || !context->method)
        return false;
    SSL_CTX *ssl = context->ssl;
    SSL_CTX_set_app_data(ssl, context);
    SSL_CTX_set_psk_use_session_callback(ssl, use_key);
    SSL_CTX_set_psk_find_session_callback(ssl, find_key);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_default_read_buffer_len(ssl, READ_BYTES);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) &&
           SSL_CTX_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256") &&
           SSL_CTX_set_num_tickets(ssl, 0) && BIO_meth_set_write(context->method, bio_write) &&
           BIO_meth_set_read(context->method, bio_read) &&
           BIO_meth_set_ctrl(context->method, bio_control);
}

static void *context_new(const unsigned char key[TLS_KEY_BYTES], const char *name,
                         struct error *err)
{
    struct tls_context *context = mem_alloc(sizeof *context);
    context->key = key;
    context->name = mem_strdup(name);
    if (set_up(context))
        return context;
    error_set(err, ERR_CONFIG, "OpenSSL refuses TLS 1.3 with a pre-shared key: %s",
              ERR_reason_error_string(ERR_peek_error()));
    ERR_clear_error();
    context_free(context);
    return NULL;
}

/* Examines what a peer sent instead of starting TLS. Returns 0 if it did start, or nothing came
 * yet. */
static int check_start(struct tls_channel *tls, struct error *err)
{
    unsigned char start[8];
    ssize_t n = recv(tls->channel.fd, start, sizeof start, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0)
        return 0;
    tls->looked = true;
    if (start[0] == 0x16)
        return 0;
    if (start[0] == 0xce) {
        tls_tell_plain(tls->channel.fd);
        return error_set(err, ERR_DENIED, "a hello without TLS");
    }
    link_guess(start, (size_t)n, err);
    return err->code;
}

static int handshake(struct channel *channel, struct error *err)
{
    struct tls_channel *tls = (struct tls_channel *)channel;
    if (tls->server && !tls->looked && check_start(tls, err))
        return err->code;
    pthread_mutex_lock(&tls->lock);
    ERR_clear_error();
    int status = SSL_do_handshake(tls->ssl);
    int what = status == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, status);
    if (status == 1) {
        /* The link now uses secrets derived from the key: erase the key. */
        static const unsigned char nothing[TLS_KEY_BYTES];
        SSL_SESSION *session = SSL_get_session(tls->ssl);
        if (session)
            SSL_SESSION_set1_master_key(session, nothing, TLS_KEY_BYTES);
    }
    bool sent = send_ready(tls) || errno == EAGAIN; /* sends an alert, too */
    pthread_mutex_unlock(&tls->lock);
    if (what == SSL_ERROR_NONE && sent)
        return 0;
    if (sent && (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE))
        return CHANNEL_AGAIN;
    /* Report why the handshake failed, in terms of keys. */
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    int number = ERR_GET_REASON(code);
    ERR_clear_error();
    if (!code)
        return error_set(err, ERR_UNAVAILABLE, "the connection was closed during the handshake");
    if (number == SSL_R_WRONG_VERSION_NUMBER || number == SSL_R_UNSUPPORTED_PROTOCOL ||
        number == SSL_R_HTTP_REQUEST || number == SSL_R_UNEXPECTED_MESSAGE)
        return error_set(err, ERR_PROTOCOL, "no TLS there: the other side has no key");
    if (tls->server)
        return error_set(err, ERR_DENIED, "the peer's key is another one (%s)", reason);
    return error_set(err, ERR_DENIED, "%s is not the key of this cluster", tls->context->name);
}

/* Converts the result of SSL_read or SSL_write to that of a system call. */
static ssize_t ssl_result(struct tls_channel *tls, int status)
{
    int what = SSL_get_error(tls->ssl, status);
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    if (what == SSL_ERROR_ZERO_RETURN || (what == SSL_ERROR_SYSCALL && !errno))
        return 0;
    if (what == SSL_ERROR_SYSCALL)
        return -1;
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    bool end = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    snprintf(failure_text, sizeof failure_text, "TLS: %s", reason ? reason : "damaged");
    ERR_clear_error();
    errno = EBADMSG;
    return end ? 0 : -1;
}

static ssize_t tls_read(struct channel *channel, const struct iovec *vectors, int n)
{
    struct tls_channel *tls = (struct tls_channel *)channel;
    size_t total = 0, got = 0;
    int status = 1;
    pthread_mutex_lock(&tls->lock);
    for (int i = 0; i < n && status == 1; i++) {
        for (size_t at = 0; at < vectors[i].iov_len; at += got, total += got) {
            ERR_clear_error();
            errno = 0;
            status = SSL_read_ex(tls->ssl, (char *)vectors[i].iov_base + at,
                                 vectors[i].iov_len - at, &got);
            if (status != 1)
                break;
        }
    }
    ssize_t result = total || status == 1 ? (ssize_t)total : ssl_result(tls, status);
    pthread_mutex_unlock(&tls->lock);
    return result;
}

/* Encrypts until there is enough for one system call. */
static size_t encrypt(struct tls_channel *tls, const struct iovec *vectors, int n, int *status)
{
    size_t total = 0, written = 0;
    for (int i = 0; i < n; i++) {
        for (size_t at = 0; at < vectors[i].iov_len; at += written, total += written) {
            if (tls->ready + 2 * PLAIN_BYTES > OUT_BYTES)
                return total;
            size_t left = vectors[i].iov_len - at;
            *status = SSL_write_ex(tls->ssl, (const char *)vectors[i].iov_base + at,
                                   left < PLAIN_BYTES ? left : PLAIN_BYTES, &written);
            if (*status != 1)
                return total;
            tls->encrypted += written;
        }
    }
    return total;
}

/* Bytes are reported as written only once sent: after EAGAIN the same bytes are offered again. */
static ssize_t tls_write(struct channel *channel, const struct iovec *vectors, int n)
{
    struct tls_channel *tls = (struct tls_channel *)channel;
    int status = 1;
    ssize_t result = 0;
    pthread_mutex_lock(&tls->lock);
    ERR_clear_error();
    errno = 0;
    if (tls->encrypted >= REKEY_BYTES && SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
        tls->encrypted = 0;
    if (!tls->owed)
        tls->owed = encrypt(tls, vectors, n, &status);
    if (status != 1 && !tls->owed) {
        result = ssl_result(tls, status);
    } else if (!send_ready(tls)) {
        result = -1;
    } else {
        result = (ssize_t)tls->owed;
        tls->owed = 0;
    }
    if (!result && status != 1) {
        errno = EPIPE;
        result = -1;
    }
    pthread_mutex_unlock(&tls->lock);
    return result;
}

static const char *error_text(struct channel *channel, int number)
{
    (void)channel;
    return number == EBADMSG ? failure_text : errno_text(number);
}

static void channel_free(struct channel *channel)
{
    struct tls_channel *tls = (struct tls_channel *)channel;
    SSL_free(tls->ssl); /* with its BIO */
    pthread_mutex_destroy(&tls->lock);
    mem_free(tls);
}

static const struct channel_type tls_type = {.handshake = handshake,
                                             .read = tls_read,
                                             .write = tls_write,
                                             .error_text = error_text,
                                             .free = channel_free};

static struct channel *channel_new(void *argument, int fd, bool server, struct error *err)
{
    struct tls_context *context = argument;
    struct tls_channel *tls = mem_alloc(sizeof *tls);
    tls->channel = (struct channel){
        .type = &tls_type, .fd = fd, .read_bytes = READ_BYTES, .write_bytes = WRITE_BYTES};
    tls->context = context;
    tls->server = server;
    pthread_mutex_init(&tls->lock, NULL);
    tls->ssl = SSL_new(context->ssl);
    BIO *bio = tls->ssl ? BIO_new(context->method) : NULL;
    if (!bio) {
        error_set(err, ERR_OS, "no memory for TLS");
        ERR_clear_error();
        channel_free(&tls->channel);
        return NULL;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    if (server)
        SSL_set_accept_state(tls->ssl);
    else
        SSL_set_connect_state(tls->ssl);
    return &tls->channel;
}

const struct tls_module tls_module = {context_new, context_free, channel_new};
