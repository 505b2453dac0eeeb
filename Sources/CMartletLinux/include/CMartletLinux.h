#ifndef MARTLET_CLINUX_H
#define MARTLET_CLINUX_H

/* Interfaces of Linux that Swift's Glibc module does not contain, and wrappers for those that Swift cannot import. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <net/if.h>
#include <arpa/inet.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* Swift does not import prctl, which is variadic. */
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

/* glibc has no wrapper for futex. Waits while the word has the expected value, at most for some nanoseconds. */
static inline int martlet_futex_wait(const void *word, unsigned int expected, long nanoseconds) {
    struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    return (int)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &limit, (void *)0, 0);
}

/* Wakes one thread that waits for the word. */
static inline int martlet_futex_wake(const void *word) {
    return (int)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, (void *)0, (void *)0, 0);
}

/* memmem is declared only for GNU sources. */
extern void *memmem(const void *text, size_t length, const void *part, size_t partLength);

/* glibc has no wrapper for openat2 (Linux 5.6). Flag 0x20 is RESOLVE_CACHED (Linux 5.12): the call fails with EAGAIN if
   it would block. */
static inline int martlet_open_cached(const char *path, unsigned long long flags) {
    struct { unsigned long long flags, mode, resolve; } how = {flags, 0, 0x20};
    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

/* preadv2 is declared only for GNU sources. Flag 8 is RWF_NOWAIT. The argument after the offset is its upper half,
   which the kernel ignores where a long has 64 bits. */
static inline long martlet_read_cached(int descriptor, void *bytes, unsigned long count, long offset) {
    struct iovec vector = {bytes, count};
    return syscall(SYS_preadv2, descriptor, &vector, 1, offset, 0, 8);
}

/* accept4 is declared only for GNU sources. */
static inline int martlet_accept4(int descriptor, int flags) {
    return (int)syscall(SYS_accept4, descriptor, (void *)0, (void *)0, flags);
}

/* CRC-32C by the processor's instruction, for which Swift has no intrinsic. Lengths are multiples of 8 bytes. The
   function for quarters interleaves four checksums, because each step of one checksum waits for its previous step. */
#if defined(__x86_64__)
#include <cpuid.h>
#define MARTLET_CRC32C __attribute__((target("sse4.2")))
#define MARTLET_CRC32C_STEP(value, word) __builtin_ia32_crc32di(value, word)
static inline int martlet_has_crc32c(void) {
    unsigned int a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 20 & 1);
}
#elif defined(__aarch64__)
#include <sys/auxv.h>
#define MARTLET_CRC32C __attribute__((target("crc")))
#define MARTLET_CRC32C_STEP(value, word) __builtin_arm_crc32cd((unsigned int)(value), word)
static inline int martlet_has_crc32c(void) { return getauxval(AT_HWCAP) >> 7 & 1; }
#else
#define MARTLET_CRC32C
#define MARTLET_CRC32C_STEP(value, word) ((value) ^ (word))
static inline int martlet_has_crc32c(void) { return 0; }
#endif

static inline unsigned long long martlet_crc32c_word(const unsigned char *bytes) {
    unsigned long long word;
    __builtin_memcpy(&word, bytes, sizeof word);
    return word;
}

MARTLET_CRC32C static inline unsigned int martlet_crc32c(
    unsigned int start, const unsigned char *bytes, unsigned long count) {
    unsigned long long value = start;
    for (unsigned long at = 0; at < count; at += 8)
        value = MARTLET_CRC32C_STEP(value, martlet_crc32c_word(bytes + at));
    return (unsigned int)value;
}

MARTLET_CRC32C static inline void martlet_crc32c_quarters(
    unsigned int start, const unsigned char *bytes, unsigned long quarter, unsigned int *first,
    unsigned int *second, unsigned int *third, unsigned int *fourth) {
    unsigned long long a = start, b = 0, c = 0, d = 0;
    for (unsigned long at = 0; at < quarter; at += 8) {
        a = MARTLET_CRC32C_STEP(a, martlet_crc32c_word(bytes + at));
        b = MARTLET_CRC32C_STEP(b, martlet_crc32c_word(bytes + quarter + at));
        c = MARTLET_CRC32C_STEP(c, martlet_crc32c_word(bytes + 2 * quarter + at));
        d = MARTLET_CRC32C_STEP(d, martlet_crc32c_word(bytes + 3 * quarter + at));
    }
    *first = (unsigned int)a;
    *second = (unsigned int)b;
    *third = (unsigned int)c;
    *fourth = (unsigned int)d;
}

#endif
