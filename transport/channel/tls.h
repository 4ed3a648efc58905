/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.3 with a pre-shared key over a socket: both sides prove that they hold the key, and each
 * connection has keys of its own. OpenSSL is loaded when the first connection needs it: it costs
 * milliseconds and a megabyte, which a job does without whose tasks are all on one host.
 */
#ifndef TF_TRANSPORT_TLS_H
#define TF_TRANSPORT_TLS_H

#include <stdbool.h>

#include "transport/channel/channel.h"

struct tls;

/* Reads the key: 64 hexadecimal digits. ERR_NOINPUT, ERR_DENIED (others may read it), ERR_CONFIG
 * (no key). */
struct tls *tls_new(const char *key_file, struct error *err);
void tls_free(struct tls *tls);

/* Loads OpenSSL, if it is not: who is about to listen or to dial hears first that there is none.
 * ERR_CONFIG. */
int tls_load(struct tls *tls, struct error *err);

/* A channel over the connected, non-blocking socket, with OpenSSL. The tls outlives it. */
struct channel *tls_channel_new(struct tls *tls, int fd, bool server, struct error *err);

#endif
