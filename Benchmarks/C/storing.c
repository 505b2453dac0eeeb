// The limit of storing received bodies: only a loop of recv into one buffer. Each body is written to a new file that
// replaces the previous one. Without a file name nothing is written.
// get URL [cache=FILE] [seconds=N] [warm=N]
#include <fcntl.h>
#include <unistd.h>

#include "http.h"

enum { bufferSize = 4 << 20 };
static char buffer[bufferSize + 1];
static int connection;

/* Reads the whole response into the buffer. Returns the start of its body, and the body's length. */
static char *fetch(const char *request, size_t *size) {
    if (send(connection, request, strlen(request), 0) != (ssize_t)strlen(request)) fail("cannot write");
    size_t have = 0, whole = 0;
    char *body = NULL;
    while (!body || have < whole) {
        size_t room = bufferSize - have;
        ssize_t count = recv(connection, buffer + have, room < 262144 ? room : 262144, 0);
        if (count <= 0) fail("the body ended early, or is larger than 4 MiB");
        have += count;
        if (body) continue;
        buffer[have] = 0;
        body = bodyOf(buffer, size);
        if (body) whole = body - buffer + *size;
    }
    return body;
}

static void store(const char *name, const char *body, size_t size) {
    char new[1024], entry[1024];
    snprintf(new, sizeof new, "%s.new", name);
    snprintf(entry, sizeof entry, "%s.entry", name);
    int file = open(new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || pwrite(file, body, size, 0) != (ssize_t)size || close(file) != 0 || rename(new, entry) != 0)
        fail("cannot store");
}

int main(int count, char **arguments) {
    wordCount = count;
    words = arguments;
    if (count < 3 || strcmp(words[1], "get") != 0) fail("usage: get URL [NAME=VALUE ...]");
    if (readURL()) fail("the URL is not of http");
    char request[1024];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", path, port);
    connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");

    const char *name = text("cache");
    long fetches = 0;
    long long bytes = 0;
    struct period period = beginPeriod();
    int isStart;
    while (goesOn(&period, &isStart)) {
        if (isStart) fetches = bytes = 0;
        size_t size = 0;
        char *body = fetch(request, &size);
        if (name) store(name, body, size);
        fetches += 1;
        bytes += size;
    }
    report(fetches, 0, bytes, now() - period.start, processorTime() - period.used);
    close(connection);
    return 0;
}
