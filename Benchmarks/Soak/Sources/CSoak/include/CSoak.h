// What Glibc's module does not show to Swift.
#pragma once
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

/// Opens a pipe whose ends are closed by exec; -1 on failure.
static inline int soak_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

/// How many bytes the program has allocated and not freed.
static inline size_t soak_allocated(void) {
    struct mallinfo2 information = mallinfo2();
    return information.uordblks + information.hblkhd;
}

/// Gives memory that the allocator keeps back to the system.
static inline void soak_trim_memory(void) { malloc_trim(0); }
