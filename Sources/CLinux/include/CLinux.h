#ifndef MARTLET_CLINUX_H
#define MARTLET_CLINUX_H


/* What Linux offers and Swift's Glibc module does not show. Headers only, but for the few macros wrapped below. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <net/if.h>
#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* prctl is variadic, which Swift does not import. */
static inline int martlet_set_thread_name(const char *name) {
    return prctl(PR_SET_NAME, name, 0, 0, 0);
}

/* renameat2 is declared only for GNU sources. Flag 1 is RENAME_NOREPLACE. */
static inline int martlet_renameat2(const char *from, const char *to, unsigned int flags) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* fallocate is declared only for GNU sources. Mode 1 is FALLOC_FL_KEEP_SIZE. */
static inline int martlet_fallocate(int descriptor, int mode, long long offset, long long length) {
    return (int)syscall(SYS_fallocate, descriptor, mode, offset, length);
}

/* accept4 is declared only for GNU sources; the call itself is Linux's. */
static inline int martlet_accept4(int descriptor, int flags) {
    return (int)syscall(SYS_accept4, descriptor, (void *)0, (void *)0, flags);
}

#endif
