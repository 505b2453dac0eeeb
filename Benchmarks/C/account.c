// Runs a program and reports its resources as the operating system accounts them: account DESCRIPTOR PROGRAM [ARGUMENT ...]
//
// It is minimal, because the peak memory of a process includes the memory before its program was loaded. It first writes
// the process ID to the descriptor. At the end it writes the seconds of the program, the seconds of the kernel, the peak of
// resident memory in kilobytes, and the exit status (128 plus the signal if one ended it).
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 3) return 64;
    int descriptor = atoi(words[1]);
    pid_t child = fork();
    if (child < 0) return 71;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(descriptor);
        execvp(words[2], words + 2);
        perror(words[2]);
        _exit(127);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dprintf(descriptor, "%d\n", (int)child);
    int status;
    struct rusage used;
    if (wait4(child, &status, 0, &used) < 0) return 71;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    dprintf(descriptor, "%ld.%06ld %ld.%06ld %ld %d\n", (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec,
            (long)used.ru_stime.tv_sec, (long)used.ru_stime.tv_usec, used.ru_maxrss, code);
    return code;
}
