// The limit of bulk transfers: only a loop of recv, or of SSL_read for https.
// discard URL [count=N] [authority=FILE]
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contender.h"

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
    char *end = NULL;
    // The head arrives separately: the server sends it before it reads the file.
    while (!end) {
        int count = tls ? SSL_read(tls, buffer + have, 16384) : recv(connection, buffer + have, 16384, 0);
        if (count <= 0) fail("no answer");
        have += count;
        buffer[have] = 0;
        end = strstr(buffer, "\r\n\r\n");
        if (!end && have > 65536) fail("no head");
    }
    if (strncmp(buffer, "HTTP/1.1 200", 12) != 0) fail("the status is not 200");
    const char *length = strstr(buffer, "Content-Length: ");
    if (!length || length > end) fail("no Content-Length");
    long long size = atoll(length + 16);
    long long left = size - (long long)(buffer + have - end - 4);
    while (left > 0) left -= readSome(left < bufferSize ? left : bufferSize);
    return size;
}

int main(int count, char **arguments) {
    wordCount = count;
    words = arguments;
    if (count < 3 || strcmp(words[1], "discard") != 0) fail("usage: discard URL [NAME=VALUE ...]");
    int port, start = 0;
    int secure = strncmp(words[2], "https:", 6) == 0;
    if (sscanf(words[2] + (secure ? 8 : 7), "127.0.0.1:%d%n", &port, &start) != 1) fail("the URL is not of 127.0.0.1");
    char request[1024];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
             words[2] + (secure ? 8 : 7) + start, port);

    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
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
