// The limit of downloading many small files: eight threads, each a loop of send, recv and of what makes a complete file:
// open, write, fsync, rename. sync=0 omits the fsync.
// save URL count=N directory=DIRECTORY [sync=0]
// The URL is the common part of the files' URLs, which end in their number.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "http.h"

enum { threads = 8, bufferSize = 65536 };
static const char *directory;
static int fileCount, syncs;
static atomic_int next;

static void store(int index, const char *body, size_t size) {
    char part[1024], name[1024];
    snprintf(part, sizeof part, "%s/%d.part", directory, index);
    snprintf(name, sizeof name, "%s/%d", directory, index);
    int file = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 || write(file, body, size) != (ssize_t)size || (syncs && fsync(file) != 0) || close(file) != 0 ||
        rename(part, name) != 0)
        fail("cannot store");
}

static void *download(void *unused) {
    char request[1024], *buffer = malloc(bufferSize + 1);
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");
    for (int index = next++; index < fileCount; index = next++) {
        int size = snprintf(
            request, sizeof request, "GET %s%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", path, index, port);
        if (send(connection, request, size, MSG_NOSIGNAL) != size) fail("cannot write");
        size_t have = 0, bodySize = 0;
        char *body = NULL;
        while (!body || buffer + have < body + bodySize) {
            ssize_t count = recv(connection, buffer + have, bufferSize - have, 0);
            if (count <= 0) fail("the response ended early, or is larger than 64 KiB");
            have += count;
            buffer[have] = 0;
            if (!body) body = bodyOf(buffer, &bodySize);
        }
        store(index, body, bodySize);
    }
    close(connection);
    free(buffer);
    return unused;
}

int main(int count, char **arguments) {
    wordCount = count;
    words = arguments;
    if (count < 3 || strcmp(words[1], "save") != 0) fail("usage: save URL count=N directory=DIRECTORY [sync=0]");
    if (readURL()) fail("the URL is not of http");
    directory = text("directory");
    fileCount = number("count", 1);
    syncs = number("sync", 1);
    double used = processorTime(), begin = now();
    pthread_t all[threads];
    for (int index = 0; index < threads; index++)
        if (pthread_create(&all[index], NULL, download, NULL) != 0) fail("cannot start a thread");
    for (int index = 0; index < threads; index++) pthread_join(all[index], NULL);
    if (syncs) {
        // One sync of the directory makes all the renames durable.
        int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || fsync(folder) != 0 || close(folder) != 0) fail("cannot sync the directory");
    }
    report(fileCount, 0, 0, now() - begin, processorTime() - used);
    return 0;
}
