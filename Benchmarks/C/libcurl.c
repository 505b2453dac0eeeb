// libcurl as a contender: used for files as by the curl program, and with multi_socket and epoll for many connections.
// get|discard|save|upload URL [NAME=VALUE ...]
#include <curl/curl.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contender.h"

struct transfer {
    CURL *easy;
    char body[64];
    size_t byteCount;
};

static CURLM *multi;
static int poller;
static long timeoutMilliseconds = -1;

static size_t collect(char *bytes, size_t size, size_t count, void *user) {
    struct transfer *transfer = user;
    for (size_t index = 0; index < size * count && transfer->byteCount < sizeof transfer->body; index++)
        transfer->body[transfer->byteCount++] = bytes[index];
    return size * count;
}

static size_t drop(char *bytes, size_t size, size_t count, void *user) {
    (void)bytes;
    *(long long *)user += size * count;
    return size * count;
}

static size_t readFile(char *bytes, size_t size, size_t count, void *user) {
    ssize_t got = read(*(int *)user, bytes, size * count);
    return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static CURL *makeEasy(void) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, words[2]);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 102400L);  // As the program curl sets it.
    if (text("authority")) curl_easy_setopt(easy, CURLOPT_CAINFO, text("authority"));
    return easy;
}

static int watch(CURL *easy, curl_socket_t descriptor, int what, void *user, void *known) {
    (void)easy, (void)user;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poller, EPOLL_CTL_DEL, descriptor, NULL);
        return 0;
    }
    struct epoll_event event = {.data.fd = descriptor};
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (epoll_ctl(poller, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) != 0)
        epoll_ctl(poller, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
    curl_multi_assign(multi, descriptor, &poller);
    return 0;
}

static int setTimer(CURLM *handle, long milliseconds, void *user) {
    (void)handle, (void)user;
    timeoutMilliseconds = milliseconds;
    return 0;
}

// Requests on all connections until a time has passed.
static long rush(struct transfer *transfers, int connections, double seconds, long limit, long *resumed) {
    double end = now() + seconds;
    long done = 0, started = connections;
    int running = 0, busy = connections;
    for (int index = 0; index < connections; index++) curl_multi_add_handle(multi, transfers[index].easy);
    while (busy > 0) {
        struct epoll_event events[256];
        int count = epoll_wait(poller, events, 256, timeoutMilliseconds < 0 ? 1000 : (int)timeoutMilliseconds);
        if (count == 0) curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        for (int index = 0; index < count; index++) {
            int mask = 0;
            if (events[index].events & EPOLLIN) mask |= CURL_CSELECT_IN;
            if (events[index].events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
            if (events[index].events & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
            curl_multi_socket_action(multi, events[index].data.fd, mask, &running);
        }
        CURLMsg *message;
        int left;
        while ((message = curl_multi_info_read(multi, &left))) {
            if (message->msg != CURLMSG_DONE) continue;
            if (message->data.result != CURLE_OK) fail(curl_easy_strerror(message->data.result));
            struct transfer *transfer;
            CURL *easy = message->easy_handle;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&transfer);
            if (transfer->byteCount > 0 && transfer->body[0] == 'r') ++*resumed;
            transfer->byteCount = 0;
            done++;
            curl_multi_remove_handle(multi, easy);
            if (now() < end && started < limit) {
                started++;
                curl_multi_add_handle(multi, easy);
            } else {
                busy--;
            }
        }
    }
    return done;
}

static void get(void) {
    int connections = number("connections", 1);
    struct transfer *transfers = calloc(connections, sizeof *transfers);
    multi = curl_multi_init();
    poller = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, setTimer);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)connections + 1);
    for (int index = 0; index < connections; index++) {
        CURL *easy = transfers[index].easy = makeEasy();
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfers[index]);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfers[index]);
    }
    long resumed = 0, limit = number("count", 0);
    if (limit == 0) limit = 1L << 60;
    if (number("warm", 0) > 0) rush(transfers, connections, number("warm", 0), limit, &resumed);
    resumed = 0;
    double used = processorTime(), begin = now();
    long count = rush(transfers, connections, limit < 1L << 60 ? 600 : number("seconds", 1), limit, &resumed);
    report(count, resumed, 0, now() - begin, processorTime() - used);
}

static void transferFiles(void) {
    CURL *easy = makeEasy();
    long long bytes = 0;
    long count = number("count", 1);
    double used = processorTime(), begin = now();
    for (long index = 0; index < count; index++) {
        FILE *file = NULL;
        int input = -1;
        if (strcmp(words[1], "discard") == 0) {
            curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
            curl_easy_setopt(easy, CURLOPT_WRITEDATA, &bytes);
        } else if (strcmp(words[1], "save") == 0) {
            if (!(file = fopen(text("file"), "wb"))) fail("cannot open the file");
            curl_easy_setopt(easy, CURLOPT_WRITEDATA, file);
        } else {
            struct stat information;
            if ((input = open(text("file"), O_RDONLY | O_CLOEXEC)) < 0 || fstat(input, &information) != 0)
                fail("cannot open the file");
            curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
            curl_easy_setopt(easy, CURLOPT_READFUNCTION, readFile);
            curl_easy_setopt(easy, CURLOPT_READDATA, &input);
            curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)information.st_size);
        }
        CURLcode code = curl_easy_perform(easy);
        if (code != CURLE_OK) fail(curl_easy_strerror(code));
        if (file) {
            if (fflush(file) != 0) fail("cannot write the file");
            if (number("sync", 0) && fsync(fileno(file)) != 0) fail("cannot sync the file");
            fclose(file);
        }
        if (input >= 0) close(input);
    }
    report(count, 0, bytes, now() - begin, processorTime() - used);
}

int main(int count, char **arguments) {
    wordCount = count;
    words = arguments;
    if (count < 3) fail("usage: get|discard|save|upload URL [NAME=VALUE ...]");
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (strcmp(words[1], "get") == 0)
        get();
    else
        transferFiles();
    return 0;
}
