// The limit of small requests and of new connections: a loop of epoll_wait, recv and send, or of OpenSSL for https.
// With pool=N the loop's thread hands each ready connection to one of N threads, as a client with a thread pool does.
// get URL connections=N [pool=N] [authority=FILE] [seconds=N] [warm=N]
#include <errno.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http.h"

enum { bufferSize = 16384, sessionLimit = 256 };

struct connection {
    int socket;
    SSL *tls;
    int isSent;
    size_t have, whole;
    // The number of events that no thread has looked at. Whoever raises it from zero has the connection served.
    atomic_int news;
    struct connection *next;
    char buffer[bufferSize + 1];
};

static char request[1024];
static int requestSize, poller;
static SSL_CTX *context;
static atomic_long done, resumed;

// TLS 1.3 tickets, each of which opens one connection.
static pthread_mutex_t sessionLock = PTHREAD_MUTEX_INITIALIZER;
static SSL_SESSION *sessions[sessionLimit];
static int sessionCount;

static int keepSession(SSL *tls, SSL_SESSION *session) {
    (void)tls;
    pthread_mutex_lock(&sessionLock);
    int isKept = sessionCount < sessionLimit;
    if (isKept) sessions[sessionCount++] = session;
    pthread_mutex_unlock(&sessionLock);
    return isKept;
}

static SSL_SESSION *takeSession(void) {
    pthread_mutex_lock(&sessionLock);
    SSL_SESSION *session = sessionCount > 0 ? sessions[--sessionCount] : NULL;
    pthread_mutex_unlock(&sessionLock);
    return session;
}

static void makeContext(void) {
    context = SSL_CTX_new(TLS_client_method());
    if (!text("authority") || !SSL_CTX_load_verify_locations(context, text("authority"), NULL)) fail("no authority");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    X509_VERIFY_PARAM_set1_ip_asc(SSL_CTX_get0_param(context), "127.0.0.1");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keepSession);
}

static void openConnection(struct connection *connection) {
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(connection->socket, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
        fail("cannot connect");
    connection->isSent = 0;
    connection->have = connection->whole = 0;
    if (context) {
        connection->tls = SSL_new(context);
        SSL_set_fd(connection->tls, connection->socket);
        SSL_set_connect_state(connection->tls);
        SSL_SESSION *session = takeSession();
        if (session) {
            SSL_set_session(connection->tls, session);
            SSL_SESSION_free(session);
        }
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event) != 0) fail("cannot watch");
}

static void closeConnection(struct connection *connection) {
    if (connection->tls) {
        // Without this mark, OpenSSL would not let the session be resumed.
        SSL_set_shutdown(connection->tls, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(connection->tls);
        connection->tls = NULL;
    }
    close(connection->socket);
}

// Returns the number of bytes, or 0 if the socket has to become ready first.
static int attempt(struct connection *connection, int count) {
    if (count > 0) return count;
    int error = connection->tls ? SSL_get_error(connection->tls, count) : 0;
    int isWaiting = connection->tls ? error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE
                                    : count < 0 && errno == EAGAIN;
    if (!isWaiting) fail("the connection ended early");
    return 0;
}

// Returns whether the whole response has arrived.
static int receive(struct connection *connection) {
    while (!connection->whole || connection->have < connection->whole) {
        size_t room = bufferSize - connection->have;
        char *place = connection->buffer + connection->have;
        if (room == 0) fail("the response is larger than 16 KiB");
        int count = attempt(connection, connection->tls ? SSL_read(connection->tls, place, room)
                                                        : (int)recv(connection->socket, place, room, 0));
        if (count == 0) return 0;
        connection->have += count;
        connection->buffer[connection->have] = 0;
        if (connection->whole) continue;
        size_t size;
        char *body = bodyOf(connection->buffer, &size);
        if (body) connection->whole = body - connection->buffer + size;
    }
    return 1;
}

// Continues with a connection until its socket has to become ready.
static void serve(struct connection *connection) {
    while (1) {
        if (!connection->isSent) {
            // The first write of OpenSSL makes the handshake.
            int count =
                attempt(connection, connection->tls ? SSL_write(connection->tls, request, requestSize)
                                                    : (int)send(connection->socket, request, requestSize, MSG_NOSIGNAL));
            if (count == 0) return;
            if (count != requestSize) fail("cannot write");
            connection->isSent = 1;
        }
        if (!receive(connection)) return;
        if (connection->tls && SSL_session_reused(connection->tls)) resumed++;
        done++;
        int isLast = strstr(connection->buffer, "Connection: close") != NULL;
        connection->have = connection->whole = 0;
        connection->isSent = 0;
        if (isLast) {
            closeConnection(connection);
            openConnection(connection);
        }
    }
}

static pthread_mutex_t queueLock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queueChanged = PTHREAD_COND_INITIALIZER;
static struct connection *first, **last = &first;

static void enqueue(struct connection *connection) {
    connection->next = NULL;
    pthread_mutex_lock(&queueLock);
    *last = connection;
    last = &connection->next;
    pthread_cond_signal(&queueChanged);
    pthread_mutex_unlock(&queueLock);
}

static void *work(void *unused) {
    while (1) {
        pthread_mutex_lock(&queueLock);
        while (!first) pthread_cond_wait(&queueChanged, &queueLock);
        struct connection *connection = first;
        first = connection->next;
        if (!first) last = &first;
        pthread_mutex_unlock(&queueLock);
        int seen = atomic_load(&connection->news);
        while (seen > 0) {
            serve(connection);
            seen = atomic_fetch_sub(&connection->news, seen) - seen;
        }
    }
    return unused;
}

int main(int count, char **arguments) {
    wordCount = count;
    words = arguments;
    if (count < 3 || strcmp(words[1], "get") != 0) fail("usage: get URL [NAME=VALUE ...]");
    if (readURL()) makeContext();
    requestSize = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", path, port);
    poller = epoll_create1(EPOLL_CLOEXEC);

    int connections = number("connections", 1), pool = number("pool", 0);
    for (int index = 0; index < pool; index++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) fail("cannot start a thread");
    }
    struct connection *all = calloc(connections, sizeof *all);
    struct period period = beginPeriod();
    for (int index = 0; index < connections; index++) openConnection(&all[index]);
    int isStart;
    while (goesOn(&period, &isStart)) {
        if (isStart) done = resumed = 0;
        struct epoll_event events[256];
        int ready = epoll_wait(poller, events, 256, 100);
        for (int index = 0; index < ready; index++) {
            struct connection *connection = events[index].data.ptr;
            if (!pool)
                serve(connection);
            else if (atomic_fetch_add(&connection->news, 1) == 0)
                enqueue(connection);
        }
    }
    report(done, resumed, 0, now() - period.start, processorTime() - period.used);
    fflush(stdout);
    _exit(0);
}
