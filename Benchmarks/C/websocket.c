#define _GNU_SOURCE
// WebSocket (RFC 6455) in C: `serve -` is the echo server of all contenders, and `get URL file=PATH [NAME=VALUE ...]` a
// bare client, the floor below them. Both have one thread.
//
// The server listens on a free port of 127.0.0.1 to 127.0.0.4, prints it, and ends with its standard input. It unmasks
// a payload in place and returns it from there. It accepts permessage-deflate without a compressor of its own: returned
// unchanged, the messages of a client are those of a server that compresses as this client does.
#include "contender.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    int descriptor, isOpen, isClosing;
    unsigned char *bytes;
    // Received bytes start at `unread` and end at `end`; those from `output` to `outputEnd` are to be sent before.
    size_t size, unread, end, output, outputEnd;
} Connection;

typedef struct {
    unsigned char *payload;
    size_t head, count;
    int first;
} Frame;

static int poller;

static void watch(Connection *connection, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(poller, operation, connection->descriptor, &event) != 0) fail("epoll_ctl");
}

static Connection *add(int descriptor) {
    Connection *connection = calloc(1, sizeof *connection);
    connection->descriptor = descriptor;
    int yes = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    watch(connection, EPOLL_CTL_ADD, EPOLLIN);
    return connection;
}

// Reads once. Returns 0 at the end of the connection.
static int fill(Connection *connection) {
    if (connection->unread > 0) {
        memmove(connection->bytes, connection->bytes + connection->unread, connection->end - connection->unread);
        connection->end -= connection->unread;
        connection->unread = 0;
    }
    if (connection->size - connection->end < 2048) {
        connection->size = connection->size ? connection->size * 4 : 4096;
        connection->bytes = realloc(connection->bytes, connection->size);
    }
    ssize_t count = recv(connection->descriptor, connection->bytes + connection->end,
                         connection->size - connection->end - 1, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (count <= 0) return 0;
    connection->end += count;
    return 1;
}

// XORs eight bytes at a time.
static void mask(unsigned char *bytes, size_t count, const unsigned char *key) {
    uint64_t wide, word;
    memcpy(&wide, key, 4);
    memcpy((char *)&wide + 4, key, 4);
    size_t index = 0;
    for (; index + 8 <= count; index += 8) {
        memcpy(&word, bytes + index, 8);
        word ^= wide;
        memcpy(bytes + index, &word, 8);
    }
    for (; index < count; index++) bytes[index] ^= key[index & 3];
}

// Finds the next whole frame, and unmasks it.
static int nextFrame(Connection *connection, Frame *frame) {
    unsigned char *bytes = connection->bytes + connection->unread;
    size_t have = connection->end - connection->unread;
    if (have < 2) return 0;
    int isMasked = bytes[1] >> 7, size = bytes[1] & 127;
    int extended = size == 126 ? 2 : size == 127 ? 8 : 0;
    frame->head = 2 + extended + 4 * isMasked;
    if (have < frame->head) return 0;
    frame->count = extended ? 0 : size;
    for (int index = 0; index < extended; index++) frame->count = frame->count << 8 | bytes[2 + index];
    if (have - frame->head < frame->count) return 0;
    frame->first = bytes[0];
    frame->payload = bytes + frame->head;
    if (isMasked) mask(frame->payload, frame->count, frame->payload - 4);
    connection->unread += frame->head + frame->count;
    return 1;
}

// Writes the head of a frame, without a key, up to `end`, and returns its size.
static size_t head(unsigned char *end, int first, size_t count, int maskBit) {
    int extended = count < 126 ? 0 : count < 65536 ? 2 : 8;
    unsigned char *bytes = end - 2 - extended;
    bytes[0] = first;
    bytes[1] = maskBit | (extended == 0 ? count : extended == 2 ? 126 : 127);
    for (int index = 0; index < extended; index++) bytes[2 + index] = count >> 8 * (extended - 1 - index);
    return 2 + extended;
}

// Sends the output. Returns whether all of it was sent, or -1 for a lost connection.
static int flush(Connection *connection) {
    while (connection->output < connection->outputEnd) {
        ssize_t count = send(connection->descriptor, connection->bytes + connection->output,
                             connection->outputEnd - connection->output, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) return errno == EAGAIN ? 0 : -1;
        connection->output += count;
    }
    return 1;
}

static void parameter(const char *offer, const char *name, char *reply) {
    const char *found = strstr(offer, name);
    if (!found) return;
    size_t length = strcspn(found, ";,\r");
    // A parameter without a value is only a permission.
    if (strstr(name, "bits") && !memchr(found, '=', length)) return;
    sprintf(reply + strlen(reply), "; %.*s", (int)length, found);
}

// Answers the opening handshake. Returns -1 for anything else, and 0 without the end of the request.
static int handshake(Connection *connection) {
    connection->bytes[connection->end] = 0;
    char *request = (char *)connection->bytes, *end = strstr(request, "\r\n\r\n");
    if (!end) return connection->end < 2048 ? 0 : -1;
    end[2] = 0;
    const char *key = strcasestr(request, "\r\nsec-websocket-key: ");
    if (!key) return -1;
    char text[128], accept[64], reply[512], extension[256] = "";
    snprintf(text, sizeof text, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key + 21);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size;
    EVP_Digest(text, strlen(text), digest, &size, EVP_sha1(), NULL);
    EVP_EncodeBlock((unsigned char *)accept, digest, size);
    char *offer = strcasestr(request, "\r\nsec-websocket-extensions: permessage-deflate");
    if (offer) {
        offer += 2;
        offer[strcspn(offer, ",\r")] = 0;
        if (strlen(offer) > 180) return -1;
        strcpy(extension, "Sec-WebSocket-Extensions: permessage-deflate");
        const char *names[] = {"server_no_context_takeover", "client_no_context_takeover", "server_max_window_bits",
                               "client_max_window_bits"};
        for (int index = 0; index < 4; index++) parameter(offer, names[index], extension);
        strcat(extension, "\r\n");
    }
    int count = snprintf(reply, sizeof reply, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                         "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n", accept, extension);
    connection->unread = end + 4 - request;
    connection->isOpen = 1;
    return send(connection->descriptor, reply, count, MSG_NOSIGNAL) == count ? 1 : -1;
}

// Serves a connection whose descriptor is ready. Returns 0 at its end.
static int serve(Connection *connection) {
    int isWaiting = connection->output < connection->outputEnd;
    if (!isWaiting && !fill(connection)) return 0;
    if (!connection->isOpen) {
        int state = handshake(connection);
        if (state <= 0) return state == 0;
    }
    while (1) {
        int state = flush(connection);
        if (state < 0) return 0;
        if ((state == 0) != isWaiting) watch(connection, EPOLL_CTL_MOD, state ? EPOLLIN : EPOLLOUT);
        isWaiting = state == 0;
        if (isWaiting) return 1;
        Frame frame;
        if (connection->isClosing || !nextFrame(connection, &frame)) return 1;
        int opcode = frame.first & 15;
        if (opcode == 10) continue;
        connection->isClosing = opcode == 8;
        size_t size = head(frame.payload, opcode == 9 ? 0x8A : frame.first, frame.count, 0);
        connection->output = frame.payload - size - connection->bytes;
        connection->outputEnd = connection->output + size + frame.count;
    }
}

static void closeConnection(Connection *connection) {
    close(connection->descriptor);
    free(connection->bytes);
    free(connection);
}

static void serveAll(void) {
    static Connection listeners[4], input;
    int port = 0;
    for (int index = 0; index < 4; index++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + index);
        socklen_t size = sizeof address;
        int descriptor = listeners[index].descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (bind(descriptor, (struct sockaddr *)&address, size) != 0 || listen(descriptor, SOMAXCONN) != 0)
            fail("cannot listen");
        getsockname(descriptor, (struct sockaddr *)&address, &size);
        port = ntohs(address.sin_port);
        watch(&listeners[index], EPOLL_CTL_ADD, EPOLLIN);
    }
    watch(&input, EPOLL_CTL_ADD, EPOLLIN);
    printf("%d\n", port);
    fclose(stdout);
    struct epoll_event events[256];
    while (1) {
        int count = epoll_wait(poller, events, 256, -1);
        for (int index = 0; index < count; index++) {
            Connection *connection = events[index].data.ptr;
            if (connection == &input) exit(0);
            if (connection >= listeners && connection < listeners + 4) {
                int descriptor;
                while ((descriptor = accept(connection->descriptor, NULL, NULL)) >= 0) add(descriptor);
            } else if (!serve(connection)) {
                closeConnection(connection);
            }
        }
    }
}

static Connection *dial(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port;
    if (sscanf(words[2], "ws://127.0.0.1:%d", &port) != 1) fail("the URL is not of 127.0.0.1");
    address.sin_port = htons(port);
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");
    const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    char reply[512];
    if (send(descriptor, request, sizeof request - 1, 0) < 0 || recv(descriptor, reply, sizeof reply, 0) < 12 ||
        strncmp(reply, "HTTP/1.1 101", 12) != 0)
        fail("no handshake");
    return add(descriptor);
}

static unsigned char *message;
static size_t messageSize;
static int messageOpcode;

static void sendMessage(Connection *connection) {
    static uint64_t random = 88172645463325252;
    static unsigned char *frame;
    if (!frame) frame = malloc(16 + messageSize);
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    unsigned char *payload = frame + 16;
    memcpy(payload - 4, &random, 4);
    memcpy(payload, message, messageSize);
    mask(payload, messageSize, payload - 4);
    // The key is between the head and the payload.
    size_t size = head(payload - 4, 0x80 | messageOpcode, messageSize, 0x80) + 4, count = size + messageSize;
    for (size_t sent = 0; sent < count;) {
        ssize_t step = send(connection->descriptor, payload - size + sent, count - sent, MSG_NOSIGNAL);
        if (step < 0) fail("cannot send");
        sent += step;
    }
}

static long exchange(double seconds) {
    long count = 0;
    double end = now() + seconds;
    struct epoll_event events[64];
    int running = number("connections", 1);
    while (running > 0) {
        int ready = epoll_wait(poller, events, 64, -1);
        for (int index = 0; index < ready; index++) {
            Connection *connection = events[index].data.ptr;
            if (!fill(connection)) fail("the server closed a connection");
            Frame frame;
            if (!nextFrame(connection, &frame)) continue;
            if (frame.count != messageSize) fail("another message was returned");
            count++;
            if (now() < end) sendMessage(connection);
            else running--;
        }
    }
    return count;
}

static void contend(void) {
    FILE *file = fopen(text("file") ? text("file") : "", "r");
    if (!file) fail("no file");
    message = malloc(1 << 20);
    messageSize = fread(message, 1, 1 << 20, file);
    messageOpcode = text("kind") && strcmp(text("kind"), "binary") == 0 ? 2 : 1;
    // The first line: the others are as long.
    if (messageOpcode == 1) messageSize = (unsigned char *)memchr(message, '\n', messageSize) - message;
    int connections = number("connections", 1);
    Connection **all = calloc(connections, sizeof *all);
    for (int index = 0; index < connections; index++) all[index] = dial();
    double begin = 0, used = 0;
    long count = 0;
    for (int round = 0; round < 2; round++) {
        begin = now();
        used = processorTime();
        for (int index = 0; index < connections; index++) sendMessage(all[index]);
        count = exchange(round ? number("seconds", 1) : number("warm", 0.1));
    }
    report(count, 0, count * (long long)messageSize, now() - begin, processorTime() - used);
}

int main(int count, char **arguments) {
    wordCount = count;
    words = arguments;
    poller = epoll_create1(0);
    if (count < 3) fail("usage: serve - | get URL file=PATH [NAME=VALUE ...]");
    if (strcmp(words[1], "serve") == 0) serveAll();
    if (strcmp(words[1], "get") != 0) fail("unsupported scenario");
    contend();
    return 0;
}
