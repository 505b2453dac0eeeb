// The shared code of the contenders in C that speak HTTP without a library.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "contender.h"

static struct sockaddr_in address;
static char path[512];
static int port;

// Reads the URL of the command line. Returns whether it is of https.
static int readURL(void) {
    int isSecure = strncmp(words[2], "https:", 6) == 0;
    if (sscanf(words[2] + (isSecure ? 8 : 7), "127.0.0.1:%d%511s", &port, path) != 2)
        fail("the URL is not of 127.0.0.1");
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return isSecure;
}

// Returns the start of the body in the bytes of a response, which end in 0, and the length of the body; NULL if the head
// is incomplete.
static char *bodyOf(char *response, size_t *size) {
    char *end = strstr(response, "\r\n\r\n");
    if (!end) return NULL;
    const char *length = strstr(response, "Content-Length: ");
    if (strncmp(response, "HTTP/1.1 200", 12) != 0 || !length || length > end) fail("the response is not as expected");
    *size = strtoul(length + 16, NULL, 10);
    return end + 4;
}
