// The limit of bulk transfers: only a loop of recv, or of SSL_read for https.
// discard URL [count=N] [authority=FILE]
#include <openssl/ssl.h>
#include <unistd.h>

#include "http.h"

enum { bufferSize = 256 * 1024 };
static char buffer[bufferSize];
static int connection;
static SSL *tls;

static int readSome(size_t size) {
    int count = tls ? SSL_read(tls, buffer, size) : recv(connection, buffer, size, 0);
    if (count <= 0) fail("the body ended early");
    return count;
}

static void writeAll(const char *bytes, int count) {
    if ((tls ? SSL_write(tls, bytes, count) : send(connection, bytes, count, 0)) != count) fail("cannot write");
}

static long long fetch(const char *request) {
    writeAll(request, strlen(request));
    size_t have = 0;
    size_t size = 0;
    char *body = NULL;
    // The head arrives separately: the server sends it before it reads the file.
    while (!body) {
        int count = tls ? SSL_read(tls, buffer + have, 16384) : recv(connection, buffer + have, 16384, 0);
        if (count <= 0) fail("no answer");
        have += count;
        buffer[have] = 0;
        body = bodyOf(buffer, &size);
        if (!body && have > 65536) fail("no head");
    }
    long long left = size - (buffer + have - body);
    while (left > 0) left -= readSome(left < bufferSize ? left : bufferSize);
    return size;
}

int main(int count, char **arguments) {
    wordCount = count;
    words = arguments;
    if (count < 3 || strcmp(words[1], "discard") != 0) fail("usage: discard URL [NAME=VALUE ...]");
    int secure = readURL();
    char request[1024];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", path, port);
    connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    double used = processorTime(), begin = now();
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");
    if (secure) {
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        if (!SSL_CTX_load_verify_locations(context, text("authority"), NULL)) fail("no authority");
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        tls = SSL_new(context);
        SSL_set_fd(tls, connection);
        if (SSL_connect(tls) != 1) fail("no TLS");
    }
    long long bytes = 0;
    long fetches = number("count", 1);
    for (long index = 0; index < fetches; index++) bytes += fetch(request);
    report(fetches, 0, bytes, now() - begin, processorTime() - used);
    close(connection);
    return 0;
}
